//! Options of Unix sockets.

#![forbid(unsafe_code)]

use super::{UnixDatagram, UnixListener, UnixStream};
use crate::net::RxBuf;
use crate::net::options::socket_options;

/// Options. There are more; the crate `socket2` sets them, through its `SockRef`.
/// Errors are those of `getsockopt(2)` and `setsockopt(2)`.
impl<B: RxBuf> UnixStream<B> {
    socket_options!();
}

/// Options. There are more; the crate `socket2` sets them, through its `SockRef`.
/// Errors are those of `getsockopt(2)` and `setsockopt(2)`.
impl UnixListener {
    socket_options!();
}

/// Options. There are more; the crate `socket2` sets them, through its `SockRef`.
/// Errors are those of `getsockopt(2)` and `setsockopt(2)`.
impl UnixDatagram {
    socket_options!();
}
