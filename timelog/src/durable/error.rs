//! What can go wrong with a log in files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use crate::{ConfigError, WriteErrorKind};

/// Why a durable log did not do what it was asked for. A clone is cheap: one failure may end many
/// commits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An operation on a file failed. Nothing that was confirmed is lost.
    Io {
        /// What was tried: "open", "write", ..
        operation: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: Arc<io::Error>,
    },
    /// Another process, or another log of this one, has the directory open.
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A file is damaged where only a defect of device, memory or software can have damaged it:
    /// what a crash leaves behind is cut off without an error. Or a file is missing, or is not of this
    /// log. Nothing was changed.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The files are whole, and not of this type of values, unit of time or version of the format.
    Format {
        /// The file.
        path: PathBuf,
        /// What was found and what is wanted.
        what: String,
    },
    /// A field of the configuration is out of range.
    Config(ConfigError),
    /// The write was refused, and has changed nothing.
    Write(WriteErrorKind),
    /// As many bytes as the configuration allows wait for the device: await a commit first.
    Busy {
        /// What waits, with this write, in bytes.
        needed_bytes: usize,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// A write or a sync of the write-ahead log failed before. It is not known what of it is on the
    /// device, and a sync that is tried again may succeed in vain: so nothing is accepted any
    /// more, and reads go on. Opening the log again shows what is there.
    Poisoned {
        /// The first failure.
        cause: Arc<Error>,
    },
    /// A value panicked in the middle of a write: memory and files may differ.
    Interrupted,
    /// The log was closed.
    Closed,
    /// A shard of a [`Sharded`](super::Sharded) log failed.
    Shard {
        /// Its number.
        shard: usize,
        /// Why: [`Closed`](Self::Closed) also if its executor has ended.
        cause: Arc<Error>,
    },
}

impl Error {
    pub(super) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io {
            operation,
            path,
            source: Arc::new(source),
        }
    }

    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The same, of the directory: the file is gone.
    pub(super) fn in_folder(mut self, folder: &Path) -> Self {
        if let Error::Io { path, .. } = &mut self {
            folder.clone_into(path);
        }
        self
    }

    pub(super) fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt {
            path: path.to_owned(),
            offset,
            what: what.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io {
                operation,
                path,
                source,
            } => write!(f, "cannot {operation} {}: {source}", path.display()),
            Error::Locked { path } => {
                write!(f, "{} is open in another log or process", path.display())
            }
            Error::Corrupt { path, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}", path.display())
            }
            Error::Format { path, what } => write!(f, "{}: {what}", path.display()),
            Error::Config(error) => error.fmt(f),
            Error::Write(kind) => kind.fmt(f),
            Error::Busy {
                needed_bytes,
                limit_bytes,
            } => write!(
                f,
                "{needed_bytes} bytes would wait for the device, the limit is {limit_bytes}: await a commit first"
            ),
            Error::Poisoned { cause } => write!(
                f,
                "the log takes no more writes since one failed, open it again to see what is durable: {cause}"
            ),
            Error::Interrupted => f.write_str("a value panicked in the middle of a write"),
            Error::Closed => f.write_str("the log is closed"),
            Error::Shard { shard, cause } => write!(f, "shard {shard}: {cause}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Poisoned { cause } | Error::Shard { cause, .. } => Some(cause),
            Error::Config(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Error::Config(error)
    }
}

/// A write that was refused, with what was to be written.
pub struct Refused<T> {
    /// Why.
    pub error: Error,
    /// What was to be written.
    pub rejected: T,
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<T> std::error::Error for Refused<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Leaves what was to be written behind.
impl<T> From<Refused<T>> for Error {
    fn from(refused: Refused<T>) -> Self {
        refused.error
    }
}

/// Says which shard failed.
pub(super) fn of_shard(shard: usize) -> impl Fn(Error) -> Error {
    move |cause| Error::Shard {
        shard,
        cause: Arc::new(cause),
    }
}

impl<T> Refused<T> {
    pub(super) fn of_shard(self, shard: usize) -> Self {
        Self {
            error: of_shard(shard)(self.error),
            rejected: self.rejected,
        }
    }
}
