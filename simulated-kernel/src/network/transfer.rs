//! Data goes in and comes out.

use super::address::{Address, Passed, Received, Result, SocketId};
use super::socket::Body;
use super::state::Network;

impl Network {
    /// Sends to the peer, and returns how many bytes are taken.
    ///
    /// # Errors
    ///
    /// `EAGAIN`, `EPIPE`, `ENOTCONN` or `EDESTADDRREQ`, `EMSGSIZE`, or the pending error of the
    /// socket.
    pub fn send(&mut self, id: SocketId, bytes: &[u8]) -> Result<usize> {
        self.send_with(id, bytes, None)
    }

    /// Sends to an address, which connections of TCP ignore.
    pub fn send_to(&mut self, id: SocketId, bytes: &[u8], address: &Address) -> Result<usize> {
        self.send_with(id, bytes, Some(address))
    }

    fn send_with(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        address: Option<&Address>,
    ) -> Result<usize> {
        let bytes = match self.get(id)?.kind.is_stream() {
            true => self.part_of(bytes),
            false => bytes,
        };
        let result = match &self.get(id)?.body {
            Body::Tcp(_) => self.step(id, |connection, now, output| {
                connection.send(bytes, now, output)
            })?,
            Body::Listener(_) => Err(libc::EPIPE),
            Body::Udp(_) => self.udp_send(id, bytes, address),
            Body::Unix(_) => self.unix_send(id, bytes, address),
        };
        self.deliver_local();
        result
    }

    /// What a write takes at most: by chance not all.
    fn part_of<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let split = self.routes.default.split;
        if bytes.len() > 1 && split > 0.0 && self.random.f64() < split {
            &bytes[..self.random.usize(1..bytes.len())]
        } else {
            bytes
        }
    }

    /// As [`send`](Self::send), with descriptors at the first byte, which go only if some bytes do.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not a stream of Unix sockets.
    pub fn send_passing(&mut self, id: SocketId, bytes: &[u8], passed: Passed) -> Result<usize> {
        self.unix_send_passing(id, bytes, passed)
    }

    /// As [`recv`](Self::recv), with the descriptors that were sent with the bytes. Never goes beyond the
    /// bytes of one send with descriptors.
    pub fn recv_passed(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
    ) -> Result<(Received, Option<Passed>)> {
        match &self.get(id)?.body {
            Body::Unix(_) => self.unix_receive_passed(id, buffer),
            _ => Ok((self.recv(id, buffer, false)?, None)),
        }
    }

    /// Receives into `buffer`; what `peek` leaves is received again. No bytes from a stream mean
    /// its end.
    ///
    /// # Errors
    ///
    /// `EAGAIN`, `ENOTCONN`, or the pending error of the socket.
    pub fn recv(&mut self, id: SocketId, buffer: &mut [u8], peek: bool) -> Result<Received> {
        let result = match &self.get(id)?.body {
            Body::Tcp(_) => self
                .step(id, |connection, now, output| {
                    connection.receive(buffer, peek, now, output)
                })?
                .map(Received::bytes),
            Body::Listener(_) => Err(libc::ENOTCONN),
            Body::Udp(_) => self.udp_receive(id, buffer, peek),
            Body::Unix(_) => self.unix_receive(id, buffer, peek),
        };
        self.deliver_local();
        result
    }
}
