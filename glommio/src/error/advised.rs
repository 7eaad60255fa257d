//! An error of the operating system with advice in front of it.

use std::error::Error;
use std::{fmt, io};

/// An error of this kind that says what to change, and keeps the system's own error as its source.
pub(crate) fn advised(kind: io::ErrorKind, advice: String, source: io::Error) -> io::Error {
    io::Error::new(kind, Advised { advice, source })
}

/// Whether the system call is one that the kernel does not have, or a sandbox forbids.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM))
}

struct Advised {
    advice: String,
    source: io::Error,
}

/// As it is displayed: this is what a program prints that unwraps it or returns it from `main`.
impl fmt::Debug for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.advice, self.source)
    }
}

impl Error for Advised {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
