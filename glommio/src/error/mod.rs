//! The errors of the whole crate: one enum, the kinds it refers to, and the
//! conversions to and from [`std::io::Error`].
//!
//! ```text
//!   io::Error ──From──▶ GlommioError<T> ──From──▶ io::Error
//!   (io::Error, ResourceType<T>) ──▲      │
//!                                         ├─ into_inner ──▶ Option<T>
//!                                         └─ without_item ─▶ GlommioError<()>
//! ```
//!
//! Why one enum and not `io::Error`: it tells "closed" from "would block" and
//! still hands back the item that a channel did not take, and it carries the
//! operation, path and descriptor next to an OS error.
//!
//! Invariants:
//! - `GlommioError<T>` is `Send` when `T` is and `Sync` when `T` is, so it fits into `Box<dyn Error
//!   + Send + Sync>`.
//! - The item of a channel is never printed, so no impl here bounds `T`.
//! - An errno is never lost: it survives both conversions.
//!
//! Cost: making an error allocates only what its fields own; converting one that
//! does not merely wrap an `io::Error` into `io::Error` allocates one box.

#![forbid(unsafe_code)]

mod advised;
mod kind;
mod panic_payload;

use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;
use std::{error, fmt, io};

pub(crate) use self::advised::{advised, is_missing};
pub use self::kind::{
    BuilderErrorKind, ExecutorErrorKind, QueueErrorKind, ReactorErrorKind, ResourceType,
};
pub use self::panic_payload::PanicPayload;

/// The result of an operation that may fail with a [`GlommioError`].
///
/// `T` is the value on success. `V` is the type of the item that comes back in
/// the error when a channel could not take it, and `()` everywhere else.
pub type Result<T, V> = std::result::Result<T, GlommioError<V>>;

/// Everything that can go wrong in this crate.
///
/// `T` is the type of an item that a channel did not accept and hands back; for
/// all other operations it is `()`. No impl needs anything of `T`, so a
/// `Result<(), T>` can be unwrapped for any `T`.
///
/// # Examples
///
/// ```
/// use glommio::{GlommioError, ResourceType};
/// use std::io;
///
/// let error: GlommioError<()> = io::Error::from_raw_os_error(libc::EBADF).into();
/// assert_eq!(error.raw_os_error(), Some(libc::EBADF));
///
/// let rejected = GlommioError::WouldBlock(ResourceType::Channel("item"));
/// assert_eq!(rejected.into_inner(), Some("item"));
/// ```
pub enum GlommioError<T> {
    /// The operation did not complete within this time.
    TimedOut(Duration),

    /// The operation could not complete now, and was asked not to wait.
    WouldBlock(ResourceType<T>),

    /// The resource could not be closed, and why.
    CanNotBeClosed(ResourceType<T>, &'static str),

    /// The resource is closed.
    Closed(ResourceType<T>),

    /// An error of the operating system or the standard library.
    IoError(io::Error),

    /// An I/O error together with what was being attempted.
    EnhancedIoError {
        /// What was attempted, as a short verb phrase such as `"Reading"`.
        op: &'static str,
        /// The file descriptor, if there is one.
        fd: Option<RawFd>,
        /// The path of the file, if known.
        path: Option<PathBuf>,
        /// What the operating system said.
        source: io::Error,
    },

    /// An error of the I/O machinery.
    ReactorError(ReactorErrorKind),

    /// An error in setting up executors or in the threads that run them.
    BuilderError(BuilderErrorKind),

    /// An error in an executor that already runs.
    ExecutorError(ExecutorErrorKind),
}

impl<T> GlommioError<T> {
    /// The error number of the operating system, if there is one.
    ///
    /// `Some` only for [`IoError`](GlommioError::IoError) and
    /// [`EnhancedIoError`](GlommioError::EnhancedIoError), and only if their
    /// `io::Error` came from the operating system.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            GlommioError::IoError(source) | GlommioError::EnhancedIoError { source, .. } => {
                source.raw_os_error()
            }
            _ => None,
        }
    }

    /// Takes back the item that a channel did not accept.
    ///
    /// `None` for errors that carry no item.
    pub fn into_inner(self) -> Option<T> {
        match self {
            GlommioError::Closed(ResourceType::Channel(item))
            | GlommioError::CanNotBeClosed(ResourceType::Channel(item), _)
            | GlommioError::WouldBlock(ResourceType::Channel(item)) => Some(item),
            _ => None,
        }
    }

    /// This error, with the item dropped.
    ///
    /// For functions that return `Result<_, ()>` and send on channels of other
    /// types: `?` alone cannot convert between two `GlommioError`s.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, ResourceType};
    ///
    /// fn send(item: String) -> glommio::Result<(), String> {
    ///     Err(GlommioError::Closed(ResourceType::Channel(item)))
    /// }
    ///
    /// fn greet() -> glommio::Result<(), ()> {
    ///     send("hello".to_owned()).map_err(GlommioError::without_item)?;
    ///     Ok(())
    /// }
    ///
    /// assert!(matches!(
    ///     greet(),
    ///     Err(GlommioError::Closed(ResourceType::Channel(())))
    /// ));
    /// ```
    pub fn without_item(self) -> GlommioError<()> {
        match self {
            GlommioError::IoError(source) => GlommioError::IoError(source),
            GlommioError::EnhancedIoError {
                source,
                op,
                path,
                fd,
            } => GlommioError::EnhancedIoError {
                source,
                op,
                path,
                fd,
            },
            GlommioError::ExecutorError(kind) => GlommioError::ExecutorError(kind),
            GlommioError::BuilderError(kind) => GlommioError::BuilderError(kind),
            GlommioError::Closed(resource) => GlommioError::Closed(resource.without_item()),
            GlommioError::CanNotBeClosed(resource, why) => {
                GlommioError::CanNotBeClosed(resource.without_item(), why)
            }
            GlommioError::WouldBlock(resource) => GlommioError::WouldBlock(resource.without_item()),
            GlommioError::ReactorError(kind) => GlommioError::ReactorError(kind),
            GlommioError::TimedOut(timeout) => GlommioError::TimedOut(timeout),
        }
    }

    /// The kind of the `io::Error` that this error becomes; code above this
    /// crate branches on it.
    fn io_kind(&self) -> io::ErrorKind {
        match self {
            GlommioError::IoError(source) | GlommioError::EnhancedIoError { source, .. } => {
                source.kind()
            }
            GlommioError::WouldBlock(_) => io::ErrorKind::WouldBlock,
            GlommioError::Closed(_) | GlommioError::CanNotBeClosed(..) => io::ErrorKind::BrokenPipe,
            GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(_)) => {
                io::ErrorKind::InvalidInput
            }
            GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
                kind: QueueErrorKind::NotFound,
                ..
            }) => io::ErrorKind::NotFound,
            GlommioError::ReactorError(ReactorErrorKind::IncorrectSourceType(_)) => {
                io::ErrorKind::InvalidData
            }
            GlommioError::TimedOut(_) => io::ErrorKind::TimedOut,
            GlommioError::ExecutorError(_)
            | GlommioError::BuilderError(_)
            | GlommioError::ReactorError(_) => io::ErrorKind::Other,
        }
    }
}

/// Always [`GlommioError::IoError`], whatever the kind.
impl<T> From<io::Error> for GlommioError<T> {
    fn from(source: io::Error) -> Self {
        GlommioError::IoError(source)
    }
}

/// `BrokenPipe` becomes [`Closed`](GlommioError::Closed) and `WouldBlock` becomes
/// [`WouldBlock`](GlommioError::WouldBlock), both with the resource; any other kind
/// becomes [`IoError`](GlommioError::IoError) and the resource is dropped.
impl<T> From<(io::Error, ResourceType<T>)> for GlommioError<T> {
    fn from((source, resource): (io::Error, ResourceType<T>)) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => GlommioError::Closed(resource),
            io::ErrorKind::WouldBlock => GlommioError::WouldBlock(resource),
            _ => GlommioError::IoError(source),
        }
    }
}

/// An error of the operating system stays one, with its
/// [`raw_os_error`](io::Error::raw_os_error): [`IoError`](GlommioError::IoError) and
/// [`EnhancedIoError`](GlommioError::EnhancedIoError) give their `io::Error` unchanged. An `io::Error`
/// that has an errno has no place for a text, so the operation and the path are lost: print or wrap
/// the `GlommioError` where they matter. Everything else becomes an `io::Error` of a fitting kind
/// around the `GlommioError<()>`, which [`io::Error::get_ref`] and [`io::Error::downcast`] reach; an
/// item is dropped.
///
/// # Examples
///
/// ```
/// use glommio::GlommioError;
/// use std::io;
///
/// let enhanced: GlommioError<()> = GlommioError::EnhancedIoError {
///     source: io::Error::from_raw_os_error(libc::ENOENT),
///     op: "Opening",
///     path: Some("missing".into()),
///     fd: None,
/// };
/// let converted = io::Error::from(enhanced);
/// assert_eq!(converted.kind(), io::ErrorKind::NotFound);
/// assert_eq!(converted.raw_os_error(), Some(libc::ENOENT));
/// ```
impl<T> From<GlommioError<T>> for io::Error {
    fn from(error: GlommioError<T>) -> Self {
        match error {
            GlommioError::IoError(source) => source,
            // An `io::Error` has either a number or a text, and programs decide by the number.
            GlommioError::EnhancedIoError { source, .. } if source.raw_os_error().is_some() => {
                source
            }
            // Without the item, which need not be `Send` as `io::Error` demands.
            error => io::Error::new(error.io_kind(), error.without_item()),
        }
    }
}

impl<T> error::Error for GlommioError<T> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            GlommioError::IoError(source) | GlommioError::EnhancedIoError { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }
}

impl<T> fmt::Display for GlommioError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GlommioError::EnhancedIoError {
                fd,
                op,
                path,
                source,
            } => write!(f, "{source}, op: {op} path: {path:?} with fd: {fd:?}"),
            GlommioError::IoError(source) => write!(f, "I/O error: {source}"),
            GlommioError::ExecutorError(kind) => write!(f, "Executor error: {kind}"),
            GlommioError::BuilderError(kind) => write!(f, "Executor builder error: {kind}"),
            GlommioError::Closed(resource) => {
                write!(f, "{resource} is closed")?;
                resource.fmt_detail(f)
            }
            GlommioError::CanNotBeClosed(resource, why) => {
                write!(f, "{resource} can not be closed: {why}")
            }
            GlommioError::WouldBlock(resource) => {
                write!(f, "{resource} operation would block")?;
                resource.fmt_detail(f)
            }
            GlommioError::ReactorError(kind) => write!(f, "Reactor error: {kind}"),
            GlommioError::TimedOut(timeout) => {
                write!(f, "Operation timed out after {timeout:#?}")
            }
        }
    }
}

// By hand: a derived impl would demand `T: Debug`, and `unwrap` on the result of
// a channel operation with it.
impl<T> fmt::Debug for GlommioError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GlommioError::IoError(source) => fmt::Debug::fmt(source, f),
            GlommioError::EnhancedIoError {
                source,
                op,
                path,
                fd,
            } => f
                .debug_struct("EnhancedIoError")
                .field("source", source)
                .field("op", op)
                .field("path", path)
                .field("fd", fd)
                .finish(),
            GlommioError::ExecutorError(kind) => {
                f.debug_tuple("ExecutorError").field(kind).finish()
            }
            GlommioError::BuilderError(kind) => f.debug_tuple("BuilderError").field(kind).finish(),
            GlommioError::Closed(resource) => {
                write!(f, "{resource} is closed")?;
                resource.fmt_detail_quoted(f)
            }
            GlommioError::CanNotBeClosed(resource, why) => {
                write!(f, "{resource} can not be closed")?;
                resource.fmt_detail_quoted(f)?;
                write!(f, ": {why:?}")
            }
            GlommioError::WouldBlock(resource) => {
                write!(f, "{resource} operation would block")?;
                resource.fmt_detail_quoted(f)
            }
            GlommioError::ReactorError(kind) => f.debug_tuple("ReactorError").field(kind).finish(),
            GlommioError::TimedOut(timeout) => write!(f, "TimedOut {{ dur {timeout:?} }}"),
        }
    }
}
