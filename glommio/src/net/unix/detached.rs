//! A connection on its way to another executor.

#![forbid(unsafe_code)]

use crate::net::detached::{Detached, detached_methods};
use crate::net::{NonBuffered, RxBuf};

/// A connection between Unix sockets with the state of its stream, which belongs to no executor:
/// what [`UnixStream::detach`](crate::net::UnixStream::detach) returns.
///
/// As a [`DetachedTcpStream`](crate::net::DetachedTcpStream), it may be sent to another thread, to
/// be [attached](Self::attach) there, and closes the connection when it is dropped.
pub struct DetachedUnixStream<B: RxBuf = NonBuffered> {
    pub(super) detached: Detached<B>,
}

detached_methods!(DetachedUnixStream);
