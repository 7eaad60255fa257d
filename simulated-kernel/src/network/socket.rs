//! The record of a socket.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use super::address::{NodeId, SocketId, Time};
use super::kind::{Kind, Protocol};
use super::tcp::Connection;
use super::udp_socket::Udp;
use super::unix_socket::Unix;

/// Bytes that a connection holds in each direction unless its buffers are set, where Linux adapts
/// them to the connection. Half of a buffer is for what the kernel adds.
const TCP_BUFFER: usize = 256 << 10;
/// `net.core.wmem_default` and `rmem_default`.
const DEFAULT_BUFFER: usize = 212_992;

/// Options that calls set. Buffers are in bytes, as `SO_SNDBUF` and `SO_RCVBUF` report them.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) reuse_address: bool,
    pub(super) reuse_port: bool,
    pub(super) broadcast: bool,
    /// `SO_LINGER` with a time of zero: closing resets the connection.
    pub(super) resets_on_close: bool,
    pub(super) send_buffer: usize,
    pub(super) receive_buffer: usize,
}

impl Options {
    pub(super) fn new(kind: Kind) -> Self {
        let default = match kind.protocol() {
            Protocol::Tcp => 2 * TCP_BUFFER,
            _ => DEFAULT_BUFFER,
        };
        Self {
            reuse_address: false,
            reuse_port: false,
            broadcast: false,
            resets_on_close: false,
            send_buffer: default,
            receive_buffer: default,
        }
    }

    /// Bytes of data that a connection holds, to send and received.
    pub(super) fn tcp_buffers(&self) -> (usize, usize) {
        (self.send_buffer / 2, self.receive_buffer / 2)
    }
}

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) node: NodeId,
    pub(super) kind: Kind,
    /// Where it is bound, in canonical form.
    pub(super) local: Option<SocketAddr>,
    /// The port is in the table of ports.
    pub(super) is_bound: bool,
    /// By a call to `bind`.
    pub(super) was_bound: bool,
    /// The call chose the port, which is kept when a connection ends.
    pub(super) keeps_port: bool,
    pub(super) peer: Option<SocketAddr>,
    pub(super) options: Options,
    pub(super) body: Body,
    /// It is in the list of sockets that have changed.
    pub(super) is_changed: bool,
    /// Its owner has closed it; the connection may live on.
    pub(super) is_closed: bool,
    /// When the last packet to a node arrives, so that the next one does not overtake it.
    pub(super) arrivals: Vec<(NodeId, Time)>,
    /// The deadline of the connection, as it is in the queue of events.
    pub(super) timer: Option<(Time, u64)>,
    /// The listener that has not handed the connection out yet.
    pub(super) listener: Option<SocketId>,
}

#[derive(Debug)]
pub(super) enum Body {
    Tcp(Box<Connection>),
    Listener(Listener),
    Udp(Udp),
    Unix(Unix),
}

#[derive(Debug, Default)]
pub(super) struct Listener {
    pub(super) backlog: usize,
    /// Handshakes under way.
    pub(super) starting: BTreeSet<SocketId>,
    /// Connections that wait for `accept`.
    pub(super) waiting: VecDeque<SocketId>,
}

impl Listener {
    /// Linux takes one more than the backlog.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() > self.backlog
    }
}

impl Socket {
    pub(super) fn new(node: NodeId, kind: Kind, body: Body, options: Options) -> Self {
        Self {
            node,
            kind,
            local: None,
            is_bound: false,
            was_bound: false,
            keeps_port: false,
            peer: None,
            options,
            body,
            is_changed: false,
            is_closed: false,
            arrivals: Vec::new(),
            timer: None,
            listener: None,
        }
    }

    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        match &mut self.body {
            Body::Tcp(connection) => Some(connection),
            _ => None,
        }
    }

    pub(super) fn listener(&mut self) -> Option<&mut Listener> {
        match &mut self.body {
            Body::Listener(listener) => Some(listener),
            _ => None,
        }
    }
}
