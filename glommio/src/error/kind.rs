//! What an error is about: the resource, or what is wrong with what. Their texts
//! are the second half of the texts of [`GlommioError`](super::GlommioError).

use std::fmt;

use super::PanicPayload;

/// What was closed, or what would have blocked.
///
/// Its `Display` is the bare name of the resource.
#[derive(Debug)]
pub enum ResourceType<T> {
    /// A channel, and the item it did not take.
    Channel(T),
    /// A gate.
    Gate,
    /// A file, and what is the matter with it.
    File(String),
    /// A read-write lock.
    RwLock,
    /// A semaphore.
    Semaphore {
        /// How many permits were asked for.
        requested: u64,
        /// How many permits there were.
        available: u64,
    },
}

impl<T> ResourceType<T> {
    pub(super) fn without_item(self) -> ResourceType<()> {
        match self {
            ResourceType::Semaphore {
                requested,
                available,
            } => ResourceType::Semaphore {
                requested,
                available,
            },
            ResourceType::RwLock => ResourceType::RwLock,
            ResourceType::Channel(_) => ResourceType::Channel(()),
            ResourceType::File(message) => ResourceType::File(message),
            ResourceType::Gate => ResourceType::Gate,
        }
    }

    /// What follows the state in the text for users.
    pub(super) fn fmt_detail(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceType::File(message) => write!(f, " ({message})"),
            _ => self.fmt_detail_quoted(f),
        }
    }

    /// For `Debug`: a message is in quotes.
    pub(super) fn fmt_detail_quoted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceType::Semaphore {
                requested,
                available,
            } => write!(f, " (requested: {requested}, available: {available})"),
            ResourceType::File(message) => write!(f, " ({message:?})"),
            ResourceType::RwLock | ResourceType::Channel(_) | ResourceType::Gate => Ok(()),
        }
    }
}

impl<T> fmt::Display for ResourceType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ResourceType::Channel(_) => "Channel",
            ResourceType::Gate => "Gate",
            ResourceType::File(_) => "File",
            ResourceType::RwLock => "RwLock",
            ResourceType::Semaphore { .. } => "Semaphore",
        })
    }
}

/// What is wrong with a task queue.
#[derive(Debug, Clone, Copy, Eq, PartialEq)]
pub enum QueueErrorKind {
    /// The queue still has work, so it cannot be removed.
    StillActive,
    /// There is no such queue.
    NotFound,
}

impl fmt::Display for QueueErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QueueErrorKind::StillActive => "still active",
            QueueErrorKind::NotFound => "not found",
        })
    }
}

/// What is wrong in the I/O machinery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReactorErrorKind {
    /// The limit on locked memory (`RLIMIT_MEMLOCK`) that was found, and what suffices if other
    /// processes of the user lock no more than now, both in bytes.
    MemLockLimit(u64, u64),
    /// An operation completed as a different one than was submitted; the text
    /// describes what was found. A bug of this crate if it ever shows.
    IncorrectSourceType(String),
}

impl fmt::Display for ReactorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReactorErrorKind::MemLockLimit(found_bytes, wanted_bytes) => write!(
                f,
                "The memlock resource limit is too low: {found_bytes} bytes (recommended \
                 {wanted_bytes} bytes; RLIMIT_MEMLOCK, which `ulimit -l` sets in KiB, and \
                 `LimitMEMLOCK=` for a systemd unit, counts all io_urings of the user)"
            ),
            ReactorErrorKind::IncorrectSourceType(detail) => {
                write!(f, "incorrect source type: {detail}")
            }
        }
    }
}

/// What is wrong in a running executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorErrorKind {
    /// There is no executor of this id, or no id left to give.
    InvalidId(usize),
    /// A task queue is missing or busy.
    QueueError {
        /// Index of the queue, as [`TaskQueueHandle::index`](crate::TaskQueueHandle::index).
        index: usize,
        /// What is wrong with it.
        kind: QueueErrorKind,
    },
}

impl fmt::Display for ExecutorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecutorErrorKind::InvalidId(id) => write!(f, "executor id {id} is invalid"),
            ExecutorErrorKind::QueueError { index, kind } => write!(f, "Queue #{index} is {kind}"),
        }
    }
}

/// What went wrong in setting up executors, or in their threads.
#[derive(Debug)]
pub enum BuilderErrorKind {
    /// An executor thread panicked, and with what.
    ThreadPanic(PanicPayload),
    /// Too few shards were asked for.
    NrShards {
        /// The least that makes sense.
        minimum: usize,
        /// How many were asked for.
        shards: usize,
    },
    /// A placement has fewer CPUs than it needs.
    InsufficientCpus {
        /// How many are needed.
        required: usize,
        /// How many there are.
        available: usize,
    },
    /// A placement names a CPU that is not online.
    NonExistentCpus {
        /// The first such CPU.
        cpu: usize,
    },
}

impl fmt::Display for BuilderErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuilderErrorKind::ThreadPanic(payload) => match payload.message() {
                Some(message) => write!(f, "thread panicked: {message}"),
                None => f.write_str("thread panicked"),
            },
            BuilderErrorKind::NrShards { minimum, shards } => write!(
                f,
                "requested {shards} shards, but at least {minimum} required"
            ),
            BuilderErrorKind::InsufficientCpus {
                available,
                required,
            } => write!(f, "found {available} of {required} required CPUs"),
            BuilderErrorKind::NonExistentCpus { cpu } => {
                write!(
                    f,
                    "CPU {cpu} was asked for, but this host has no such CPU, or it is offline"
                )
            }
        }
    }
}
