//! What a Unix socket holds.

use std::collections::{BTreeSet, VecDeque};

use super::address::{Passed, SocketId, UnixName};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Closed,
    Listening,
    Established,
}

#[derive(Debug)]
pub(super) struct Unix {
    pub(super) name: UnixName,
    pub(super) peer_name: Option<UnixName>,
    pub(super) state: State,
    /// It may not exist any more.
    pub(super) peer: Option<SocketId>,
    pub(super) queue: VecDeque<Message>,
    /// What others have in their queues from this socket.
    pub(super) outstanding: usize,
    pub(super) error: Option<i32>,
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
    pub(super) backlog: usize,
    /// Ends of connections that wait for `accept`.
    pub(super) waiting: VecDeque<SocketId>,
    /// Sockets of datagrams that are connected to this one.
    pub(super) followers: BTreeSet<SocketId>,
}

/// A datagram, or a piece of a stream.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) data: VecDeque<u8>,
    pub(super) sender: SocketId,
    pub(super) from: UnixName,
    /// What goes with the first byte.
    pub(super) passed: Option<Passed>,
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
    /// A quarter of the send buffer, so that writers are not woken for every byte.
    pub(super) fn has_space(&self, send_buffer: usize) -> bool {
        self.outstanding * 4 <= send_buffer
    }
}
