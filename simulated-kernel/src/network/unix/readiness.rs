//! Access to Unix sockets, and their readiness.

use super::super::address::{Result, SocketId};
use super::super::kind::Kind;
use super::super::readiness::{FAILED, HANG_UP, PEER_CLOSED, READABLE, WRITABLE_BAND};
use super::super::socket::{Body, Socket};
use super::super::state::Network;
use super::super::unix_socket::{State, Unix};

impl Network {
    pub(super) fn unix_mut(&mut self, id: SocketId) -> Option<&mut Unix> {
        match &mut self.sockets.get_mut(&id)?.body {
            Body::Unix(unix) => Some(unix),
            _ => None,
        }
    }

    pub(super) fn unix_ref(&self, id: SocketId) -> Option<&Unix> {
        match &self.sockets.get(&id)?.body {
            Body::Unix(unix) => Some(unix),
            _ => None,
        }
    }

    pub(super) fn unix(&mut self, id: SocketId) -> Result<&mut Unix> {
        self.get(id)?;
        self.unix_mut(id).ok_or(libc::EINVAL)
    }

    /// Whether datagrams of `id` find the queue of `other` full. Those of its own peer are limited
    /// by the send buffer alone.
    pub(super) fn unix_queue_is_full(&self, id: SocketId, other: SocketId) -> bool {
        self.unix_ref(other).is_some_and(|unix| {
            other != id && unix.peer != Some(id) && unix.queue.len() > self.unix_queue
        })
    }

    pub(in super::super) fn unix_readiness(
        &self,
        id: SocketId,
        socket: &Socket,
        unix: &Unix,
    ) -> i16 {
        let mut mask = 0;
        if unix.error.is_some() {
            mask |= FAILED;
        }
        if unix.read_shut {
            mask |= READABLE | PEER_CLOSED;
        }
        if unix.read_shut && unix.write_shut {
            mask |= HANG_UP;
        }
        if !unix.queue.is_empty() || !unix.waiting.is_empty() {
            mask |= READABLE;
        }
        if unix.state == State::Closed && socket.kind != Kind::UnixDatagram {
            mask |= HANG_UP;
        }
        let has_space =
            unix.state != State::Listening && unix.has_space(socket.options.send_buffer);
        let is_held_up = socket.kind != Kind::UnixStream
            && unix
                .peer
                .is_some_and(|peer| self.unix_queue_is_full(id, peer));
        if has_space && !is_held_up {
            mask |= WRITABLE_BAND;
        }
        mask
    }
}
