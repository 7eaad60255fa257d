//! Unix sockets. What is sent is in the queue of the receiver at once, and counts against the send
//! buffer of the sender until it is read.

use std::collections::{BTreeSet, VecDeque};

use super::readiness::{FAILED, HANG_UP, PEER_CLOSED, READABLE, WRITABLE_BAND};
use super::{Body, Errno, Kind, Network, Result, Socket, SocketId, UnixName};

mod calls;
mod transfer;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Listening,
    Established,
}

#[derive(Debug)]
pub(super) struct Unix {
    pub(super) name: UnixName,
    pub(super) peer_name: Option<UnixName>,
    state: State,
    /// It may not exist any more.
    peer: Option<SocketId>,
    queue: VecDeque<Message>,
    /// What others have in their queues from this socket.
    outstanding: usize,
    pub(super) error: Option<Errno>,
    read_shut: bool,
    write_shut: bool,
    backlog: usize,
    /// Ends of connections that wait for `accept`.
    waiting: VecDeque<SocketId>,
    /// Sockets of datagrams that are connected to this one.
    followers: BTreeSet<SocketId>,
}

/// A datagram, or a piece of a stream.
#[derive(Debug)]
struct Message {
    data: VecDeque<u8>,
    sender: SocketId,
    from: UnixName,
}

impl Default for Unix {
    fn default() -> Self {
        Self {
            name: UnixName::Unnamed,
            peer_name: None,
            state: State::Closed,
            peer: None,
            queue: VecDeque::new(),
            outstanding: 0,
            error: None,
            read_shut: false,
            write_shut: false,
            backlog: 0,
            waiting: VecDeque::new(),
            followers: BTreeSet::new(),
        }
    }
}

impl Unix {
    pub(super) fn unread(&self, kind: Kind) -> Result<usize> {
        if self.state == State::Listening {
            return Err(Errno(libc::EINVAL));
        }
        let mut lengths = self.queue.iter().map(|message| message.data.len());
        Ok(if kind == Kind::UnixDatagram {
            lengths.next().unwrap_or(0)
        } else {
            lengths.sum()
        })
    }

    /// A quarter of the send buffer, so that writers are not woken for every byte.
    fn has_space(&self, send_buffer: usize) -> bool {
        self.outstanding * 4 <= send_buffer
    }
}

impl Network {
    fn unix_mut(&mut self, id: SocketId) -> Option<&mut Unix> {
        match &mut self.sockets.get_mut(&id)?.body {
            Body::Unix(unix) => Some(unix),
            _ => None,
        }
    }

    fn unix_ref(&self, id: SocketId) -> Option<&Unix> {
        match &self.sockets.get(&id)?.body {
            Body::Unix(unix) => Some(unix),
            _ => None,
        }
    }

    fn unix(&mut self, id: SocketId) -> Result<&mut Unix> {
        self.get(id)?;
        self.unix_mut(id).ok_or(Errno(libc::EINVAL))
    }

    /// Whether datagrams of `id` find the queue of `other` full. Those of its own peer are limited
    /// by the send buffer alone.
    fn unix_queue_is_full(&self, id: SocketId, other: SocketId) -> bool {
        self.unix_ref(other).is_some_and(|unix| {
            other != id && unix.peer != Some(id) && unix.queue.len() > self.unix_queue
        })
    }

    /// Sets `net.unix.max_dgram_qlen`, 10 at first.
    pub(crate) fn set_unix_queue(&mut self, datagrams: usize) {
        self.unix_queue = datagrams;
    }

    pub(super) fn unix_readiness(&self, id: SocketId, socket: &Socket, unix: &Unix) -> i16 {
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
