//! What can be asked of the kernel, each operation with the memory that it needs to live.

#[cfg(test)]
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use socket2::SockAddr;

use crate::ring::{Outcome, Submission};

/// One operation. Whatever the kernel reads or writes on its behalf is owned here, behind a stable
/// address; the in-flight table keeps the value until the completion is reaped.
#[derive(Debug)]
pub(crate) enum Op {
    /// Nothing: a trip through the ring.
    #[cfg(any(feature = "bench", test))]
    Nop,
    /// Completes when one of `events` (`POLLIN`, ...) holds for `fd`.
    Poll { fd: RawFd, events: libc::c_short },
    /// Completes each time that one of `events` comes to hold for `fd`. Multishot.
    Watch { fd: RawFd, events: libc::c_short },
    /// Accepts a connection on `listener`; the result is the new descriptor.
    Accept { listener: RawFd },
    /// Accepts the connections of `listener` as they come; the results are the new descriptors. Multishot;
    /// for kernels with [`Feature::AcceptMulti`](crate::ring::Feature::AcceptMulti).
    AcceptMany { listener: RawFd },
    /// Connects `socket`, which is closed if nobody claims the operation.
    Connect {
        socket: OwnedFd,
        address: Box<SockAddr>,
    },
    /// Opens or creates a file; the result is the new descriptor.
    #[cfg(test)]
    Open { path: CString, flags: libc::c_int },
    /// Reads into `buffer`, from where the file stands.
    #[cfg(test)]
    Read { fd: RawFd, buffer: Vec<u8> },
    /// Writes `buffer` to where the file stands.
    #[cfg(test)]
    Write { fd: RawFd, buffer: Vec<u8> },
    /// Closes a descriptor.
    #[cfg(test)]
    Close { fd: RawFd },
}

impl Op {
    pub(super) fn submission(&mut self, user_data: u64) -> Submission {
        match self {
            #[cfg(any(feature = "bench", test))]
            Op::Nop => Submission::nop(user_data),
            Op::Poll { fd, events } => {
                Submission::poll_once(*fd, u32::from(events.cast_unsigned()), user_data)
            }
            Op::Watch { fd, events } => {
                Submission::poll_always(*fd, u32::from(events.cast_unsigned()), user_data)
            }
            Op::Accept { listener } => Submission::accept(*listener, user_data),
            Op::AcceptMany { listener } => Submission::accept_many(*listener, user_data),
            Op::Connect { socket, address } => Submission::connect(
                socket.as_raw_fd(),
                address.as_ptr().cast(),
                address.len(),
                user_data,
            ),
            #[cfg(test)]
            Op::Open { path, flags } => Submission::open(path.as_ptr(), *flags, user_data),
            #[cfg(test)]
            Op::Read { fd, buffer } => {
                let bytes = u32::try_from(buffer.len()).expect("tests read little");
                Submission::read(*fd, buffer.as_mut_ptr(), bytes, user_data)
            }
            #[cfg(test)]
            Op::Write { fd, buffer } => {
                let bytes = u32::try_from(buffer.len()).expect("tests write little");
                Submission::write(*fd, buffer.as_ptr(), bytes, user_data)
            }
            #[cfg(test)]
            Op::Close { fd } => Submission::close(*fd, user_data),
        }
    }

    /// Whether the kernel may complete it several times.
    pub(super) fn is_multishot(&self) -> bool {
        matches!(self, Op::Watch { .. } | Op::AcceptMany { .. })
    }
}

/// Receives completions in place of a waiting task: an operation that serves several waiters, or one
/// whose result has to be cared for although nobody waits.
pub(crate) trait Sink {
    /// Takes a completion of the operation: the only one, unless it [has more](Outcome::has_more). Called
    /// with nothing borrowed, in the order of the completions, also after the operation was given
    /// up; what the outcome brings, such as a descriptor, is the sink's from here on.
    fn complete(&self, outcome: Outcome);
}

/// Names one operation for as long as it is in the table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Completions that nobody wants to hear of.
pub(super) const IGNORED: u64 = 0;
/// The end of the slice.
pub(super) const PREEMPTION: u64 = u64::MAX;
/// The wake-up descriptor.
pub(super) const WAKE_UP: u64 = u64::MAX - 1;
/// The end of a long sleep.
pub(super) const ALARM_CLOCK: u64 = u64::MAX - 2;

/// Indexes stay below this, so that no key collides with the names above.
pub(super) const MAX_IN_FLIGHT: usize = (u32::MAX - 2) as usize;

impl OpKey {
    /// Of no operation: generations start at 1.
    pub(super) const NONE: OpKey = OpKey {
        index: 0,
        generation: 0,
    };

    pub(super) fn user_data(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.index)
    }

    pub(super) fn from_user_data(user_data: u64) -> Self {
        OpKey {
            index: user_data as u32,
            generation: (user_data >> 32) as u32,
        }
    }
}
