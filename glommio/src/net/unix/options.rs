//! Options of Unix sockets.

#![forbid(unsafe_code)]

use super::{UnixDatagram, UnixListener, UnixStream};
use crate::net::RxBuf;
use crate::net::options::socket_options;

/// Options. There are more; the crate `socket2` sets them, through its `SockRef`.
impl<B: RxBuf> UnixStream<B> {
    socket_options!();
}

/// Options. There are more; the crate `socket2` sets them, through its `SockRef`.
impl UnixListener {
    socket_options!();
}

/// Options. There are more; the crate `socket2` sets them, through its `SockRef`.
impl UnixDatagram {
    socket_options!();
}
