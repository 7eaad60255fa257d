//! A connection between two executors.

#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A connected Unix stream socket that belongs to no executor yet.
///
/// As an [`AcceptedTcpStream`](crate::net::AcceptedTcpStream), it may be sent to another thread, to
/// be [bound](Self::bind_to_executor) there, and is closed when it is dropped.
#[derive(Debug)]
pub struct AcceptedUnixStream {
    pub(super) fd: OwnedFd,
}

impl AsFd for AcceptedUnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
