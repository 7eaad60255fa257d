//! Options of sockets, and what they tell.

use std::time::Duration;

use super::address::{Result, SocketId};
use super::kind::{Kind, Protocol};
use super::readiness::READABLE;
use super::socket::Body;
use super::state::Network;

/// `net.core.wmem_max` and `rmem_max`.
const LARGEST_BUFFER: usize = 212_992;
const SMALLEST_SEND_BUFFER: usize = 4608;
const SMALLEST_RECEIVE_BUFFER: usize = 2304;

impl Network {
    /// Whether it is a socket of datagrams.
    pub fn is_datagram(&self, id: SocketId) -> bool {
        let kind = self.sockets.get(&id).map(|it| it.kind);
        matches!(kind, Some(Kind::UdpV4 | Kind::UdpV6 | Kind::UnixDatagram))
    }

    /// Whether it is a Unix socket.
    pub fn is_unix(&self, id: SocketId) -> bool {
        let socket = self.sockets.get(&id);
        socket.is_some_and(|it| it.kind.protocol() == Protocol::Unix)
    }

    /// Sets `SO_REUSEADDR`.
    pub fn set_reuse_address(&mut self, id: SocketId, reuse: bool) -> Result<()> {
        self.get_mut(id)
            .map(|socket| socket.options.reuse_address = reuse)
    }

    /// Sets `SO_REUSEPORT`.
    pub fn set_reuse_port(&mut self, id: SocketId, reuse: bool) -> Result<()> {
        self.get_mut(id)
            .map(|socket| socket.options.reuse_port = reuse)
    }

    /// Sets `SO_BROADCAST`.
    pub fn set_broadcast(&mut self, id: SocketId, allowed: bool) -> Result<()> {
        self.get_mut(id)
            .map(|socket| socket.options.broadcast = allowed)
    }

    /// Sets `SO_LINGER`. A time of zero makes `close` reset the connection. With another time
    /// `close` does not wait, as it would on Linux.
    pub fn set_linger(&mut self, id: SocketId, linger: Option<Duration>) -> Result<()> {
        self.get_mut(id)
            .map(|socket| socket.options.resets_on_close = linger == Some(Duration::ZERO))
    }

    /// Sets `TCP_USER_TIMEOUT`; none is that of Linux.
    ///
    /// # Errors
    ///
    /// `ENOPROTOOPT` if it is no connection of TCP.
    pub fn set_user_timeout(&mut self, id: SocketId, limit: Option<Duration>) -> Result<()> {
        let connection = self.get_mut(id)?.connection();
        let connection = connection.ok_or(libc::ENOPROTOOPT)?;
        connection.set_user_timeout(limit.filter(|it| !it.is_zero()));
        Ok(())
    }

    /// Sets `SO_SNDBUF`: Linux takes twice the number, within limits.
    pub fn set_send_buffer(&mut self, id: SocketId, bytes: usize) -> Result<()> {
        let socket = self.get_mut(id)?;
        socket.options.send_buffer = (bytes.min(LARGEST_BUFFER) * 2).max(SMALLEST_SEND_BUFFER);
        let capacity = socket.options.tcp_buffers().0;
        if let Some(connection) = socket.connection() {
            connection.set_send_capacity(capacity);
        }
        self.touch(id);
        Ok(())
    }

    /// Sets `SO_RCVBUF`: Linux takes twice the number, within limits.
    pub fn set_receive_buffer(&mut self, id: SocketId, bytes: usize) -> Result<()> {
        let socket = self.get_mut(id)?;
        socket.options.receive_buffer =
            (bytes.min(LARGEST_BUFFER) * 2).max(SMALLEST_RECEIVE_BUFFER);
        let capacity = socket.options.tcp_buffers().1;
        if let Some(connection) = socket.connection() {
            connection.set_receive_capacity(capacity);
        }
        Ok(())
    }

    /// What kind of socket it is.
    pub fn kind(&self, id: SocketId) -> Result<Kind> {
        self.get(id).map(|socket| socket.kind)
    }

    /// `SO_ERROR`: the pending error, which is not pending any more.
    pub fn take_error(&mut self, id: SocketId) -> Result<Option<i32>> {
        Ok(match &mut self.get_mut(id)?.body {
            Body::Tcp(connection) => connection.take_error(),
            Body::Listener(_) => None,
            Body::Udp(udp) => udp.error.take(),
            Body::Unix(unix) => unix.error.take(),
        })
    }

    /// What poll(2) reports: bits of `POLLIN`, `POLLRDNORM`, `POLLOUT`, `POLLWRNORM`, `POLLWRBAND`,
    /// `POLLRDHUP`, `POLLERR` and `POLLHUP`. `POLLNVAL` for a socket that does not exist.
    pub fn readiness(&self, id: SocketId) -> i16 {
        let Ok(socket) = self.get(id) else {
            return libc::POLLNVAL;
        };
        match &socket.body {
            Body::Tcp(connection) => connection.readiness(),
            Body::Listener(listener) if listener.waiting.is_empty() => 0,
            Body::Listener(_) => READABLE,
            Body::Udp(udp) => udp.readiness(),
            Body::Unix(unix) => self.unix_readiness(id, socket, unix),
        }
    }
}
