//! Connections begin and end: listen, connect, accept, and the way of segments to their socket.

use std::net::{IpAddr, SocketAddr};

use super::address::{
    Address, NodeId, Result, SocketId, is_broadcast, loopback, shown, unspecified,
};
use super::kind::Protocol;
use super::log::Happening;
use super::packet::{Packet, Payload};
use super::ports::covers;
use super::socket::{Body, Listener, Socket};
use super::state::Network;
use super::tcp::{Connection, Flags, Output, Segment, State};

/// `net.core.somaxconn`.
const LONGEST_BACKLOG: usize = 4096;

impl Network {
    /// A connection that waits beyond the backlog is not accepted: its SYN is dropped, and repeated
    /// by the peer. Called again, it changes the backlog.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`, `EINVAL` for a connected socket, `EADDRINUSE`.
    pub fn listen(&mut self, id: SocketId, backlog: usize) -> Result<()> {
        let backlog = backlog.min(LONGEST_BACKLOG);
        let socket = self.get_mut(id)?;
        match &mut socket.body {
            Body::Listener(listener) => {
                listener.backlog = backlog;
                return Ok(());
            }
            Body::Tcp(connection) if connection.is_fresh() => {}
            Body::Tcp(_) => return Err(libc::EINVAL),
            Body::Udp(_) => return Err(libc::EOPNOTSUPP),
            Body::Unix(_) => return self.unix_listen(id, backlog),
        }
        let is_v6 = socket.kind.is_v6();
        if !socket.is_bound {
            let ip = socket
                .local
                .filter(|_| socket.was_bound)
                .map_or(unspecified(is_v6), |local| local.ip());
            self.bind_port(id, SocketAddr::new(ip, 0))?;
        }
        let socket = self.get(id)?;
        let (node, local) = (socket.node, socket.local.ok_or(libc::EINVAL)?);
        if self.conflicts(id, local) {
            return Err(libc::EADDRINUSE);
        }
        self.get_mut(id)?.body = Body::Listener(Listener {
            backlog,
            ..Listener::default()
        });
        self.ports.add_listener(node, local.port(), id);
        self.touch(id);
        Ok(())
    }

    /// # Errors
    ///
    /// TCP: `EINPROGRESS` when the handshake has begun, `EALREADY` while it goes on, then once the
    /// result, and `EISCONN`. `EADDRNOTAVAIL` if no port is free, `ENETUNREACH`,
    /// `EAFNOSUPPORT`. Unix: `ENOENT`, `ECONNREFUSED`, `EAGAIN` if the backlog is full,
    /// `EPROTOTYPE`.
    pub fn connect(&mut self, id: SocketId, address: &Address) -> Result<()> {
        let socket = self.get_mut(id)?;
        let result = match &mut socket.body {
            Body::Listener(_) => Err(libc::EISCONN),
            Body::Udp(_) => self.udp_connect(id, address),
            Body::Unix(_) => self.unix_connect(id, address),
            // A step: one that has ended frees its addresses.
            Body::Tcp(_) => match self.step(id, |connection, _, _| connection.may_connect())? {
                Ok(true) => self.start_connection(id, address),
                Ok(false) => Ok(()),
                Err(error) => {
                    self.touch(id);
                    Err(error)
                }
            },
        };
        self.deliver_local();
        result
    }

    fn start_connection(&mut self, id: SocketId, address: &Address) -> Result<()> {
        let (local, peer) = self.ends(id, address)?;
        let socket = self.get(id)?;
        let node = socket.node;
        if peer.ip().is_multicast() || is_broadcast(peer.ip()) {
            return Err(libc::ENETUNREACH);
        }
        match socket.local.filter(|_| socket.is_bound) {
            None => self.bind_for_connection(id, local, peer)?,
            Some(bound) => {
                let local = SocketAddr::new(local, bound.port());
                if self.ports.connection(node, local, peer).is_some() {
                    return Err(libc::EADDRNOTAVAIL);
                }
                self.occupy(id, local)?;
            }
        }
        let socket = self.get_mut(id)?;
        socket.peer = Some(peer);
        let local = socket.local.ok_or(libc::EADDRNOTAVAIL)?;
        self.ports.add_connection(node, local, peer, id);
        let (mss, first) = (self.mss(node, peer.ip()), self.first_number());
        self.step(id, |connection, now, output| {
            connection.connect(mss, first, now, output)
        })?;
        self.touch(id);
        Err(libc::EINPROGRESS)
    }

    /// The address that a socket sends from, and the one that it sends to when the call says
    /// `address`.
    pub(super) fn ends(&self, id: SocketId, address: &Address) -> Result<(IpAddr, SocketAddr)> {
        let socket = self.get(id)?;
        let mut peer = match socket.kind.protocol() {
            Protocol::Udp => self.udp_address(socket.kind, address)?,
            _ => socket.kind.accepts(address)?,
        };
        if peer.ip().is_unspecified() {
            peer.set_ip(loopback(peer.ip()));
        }
        let source = self
            .source_for(socket.node, peer.ip())
            .ok_or(libc::ENETUNREACH)?;
        let bound = socket
            .local
            .map(|local| local.ip())
            .filter(|ip| socket.is_bound && !ip.is_unspecified());
        match bound {
            Some(bound) if bound.is_ipv4() != peer.is_ipv4() => Err(libc::ENETUNREACH),
            // The loopback address of a node means nothing to others.
            Some(bound) if bound.is_loopback() && !self.is_local(socket.node, peer.ip()) => {
                Err(libc::EINVAL)
            }
            Some(bound) => Ok((bound, peer)),
            None => Ok((source, peer)),
        }
    }

    fn first_number(&mut self) -> u64 {
        // Not 0, from which no number could be taken.
        u64::from(self.random.u32(..)) + 1
    }

    /// # Errors
    ///
    /// `EAGAIN` if no connection waits, `EINVAL` if the socket does not listen, `EOPNOTSUPP`.
    pub fn accept(&mut self, id: SocketId) -> Result<(SocketId, Address)> {
        let socket = self.get_mut(id)?;
        let is_v6 = socket.kind.is_v6();
        let listener = match &mut socket.body {
            Body::Listener(listener) => listener,
            Body::Tcp(_) => return Err(libc::EINVAL),
            Body::Udp(_) => return Err(libc::EOPNOTSUPP),
            Body::Unix(_) => return self.unix_accept(id),
        };
        let child = listener.waiting.pop_front().ok_or(libc::EAGAIN)?;
        let socket = self.get_mut(child)?;
        socket.listener = None;
        let peer = socket.peer.ok_or(libc::ECONNABORTED)?;
        Ok((child, Address::Ip(shown(peer, is_v6))))
    }

    pub(super) fn send_segment(&mut self, id: SocketId, segment: Segment) {
        if let Some(socket) = self.sockets.get(&id)
            && let (Some(local), Some(peer)) = (socket.local, socket.peer)
        {
            let node = socket.node;
            self.transmit(Some(id), node, local, peer, Payload::Tcp(segment));
        }
    }

    pub(super) fn segment_arrives(&mut self, packet: Packet) {
        let Payload::Tcp(segment) = &packet.payload else {
            return;
        };
        let opens = segment.flags == Flags::Syn && segment.ack.is_none();
        match self
            .ports
            .connection(packet.to, packet.destination, packet.source)
        {
            Some(id) if opens && self.state_of(id) == State::TimeWait => {
                // A new connection with the same ports.
                let _ = self.step(id, |connection, _, output| connection.abort(output));
                self.open(packet);
            }
            Some(id) => self.segment_for_connection(id, packet),
            None if opens => self.open(packet),
            None => self.refuse(packet),
        }
    }

    fn state_of(&mut self, id: SocketId) -> State {
        self.sockets
            .get_mut(&id)
            .and_then(Socket::connection)
            .map_or(State::Closed, |connection| connection.state)
    }

    fn segment_for_connection(&mut self, id: SocketId, packet: Packet) {
        let listener = self.sockets.get(&id).and_then(|socket| socket.listener);
        let is_starting = listener.is_some() && self.state_of(id) == State::SynReceived;
        let Payload::Tcp(segment) = &packet.payload else {
            return;
        };
        if is_starting
            && segment.flags != Flags::Rst
            && segment.ack.is_some()
            && self.is_full(listener)
        {
            // The peer takes the connection for established, and is answered again later.
            self.record(&packet, Happening::NoSpace);
            return;
        }
        self.record(&packet, Happening::Delivered);
        let Payload::Tcp(segment) = packet.payload else {
            return;
        };
        let _ = self.step(id, |connection, now, output| {
            connection.segment(segment, now, output)
        });
        if is_starting && self.state_of(id) != State::SynReceived {
            self.started(id, listener);
        }
    }

    fn is_full(&mut self, listener: Option<SocketId>) -> bool {
        listener
            .and_then(|id| self.sockets.get_mut(&id))
            .and_then(Socket::listener)
            .is_some_and(|l| l.is_full())
    }

    /// The handshake of a child is over, unless it has been removed.
    fn started(&mut self, id: SocketId, listener: Option<SocketId>) {
        if !self.sockets.contains_key(&id) {
            return;
        }
        let Some(listener_id) = listener else { return };
        if let Some(listener) = self
            .sockets
            .get_mut(&listener_id)
            .and_then(Socket::listener)
        {
            listener.starting.remove(&id);
            listener.waiting.push_back(id);
            self.touch(listener_id);
        }
    }

    /// A SYN asks for a connection.
    fn open(&mut self, packet: Packet) {
        let Payload::Tcp(syn) = &packet.payload else {
            return;
        };
        let Some(listener_id) = self.find_listener(packet.to, packet.destination, packet.source)
        else {
            return self.refuse(packet);
        };
        if self.is_full(Some(listener_id)) {
            self.record(&packet, Happening::NoSpace);
            return;
        }
        self.record(&packet, Happening::Delivered);
        let Some(listener) = self.sockets.get(&listener_id) else {
            return;
        };
        let (node, kind, options) = (listener.node, listener.kind, listener.options.clone());
        let buffers = options.tcp_buffers();
        let (mss, first, now) = (
            self.mss(node, packet.source.ip()),
            self.first_number(),
            self.now,
        );
        let mut output = Output::default();
        let connection = Connection::accept(buffers, mss, first, syn, now, &mut output);
        let mut child = Socket::new(node, kind, Body::Tcp(Box::new(connection)), options);
        child.peer = Some(packet.source);
        child.listener = Some(listener_id);
        let id = self.insert(child);
        if let Some(listener) = self
            .sockets
            .get_mut(&listener_id)
            .and_then(Socket::listener)
        {
            listener.starting.insert(id);
        }
        // The child is there.
        let _ = self.occupy(id, packet.destination);
        self.ports
            .add_connection(node, packet.destination, packet.source, id);
        self.follow_up(id, output, true);
    }

    /// The listener with the most specific address, one of several by the addresses of the
    /// connection.
    fn find_listener(&self, node: NodeId, local: SocketAddr, peer: SocketAddr) -> Option<SocketId> {
        let specificity = |id: &SocketId| {
            let socket = self.sockets.get(id)?;
            let bound = socket.local?.ip();
            covers(bound, local.ip())
                .then_some((!bound.is_unspecified(), bound.is_ipv4() == local.is_ipv4()))
        };
        let listeners = self.ports.listeners(node, local.port());
        let best = listeners.iter().filter_map(specificity).max()?;
        let equals: Vec<_> = listeners
            .iter()
            .filter(|id| specificity(id) == Some(best))
            .collect();
        let number = u64::from(peer.port()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Some(*equals[number as usize % equals.len()])
    }

    fn refuse(&mut self, packet: Packet) {
        self.record(&packet, Happening::Refused);
        let Payload::Tcp(segment) = &packet.payload else {
            return;
        };
        if let Some(reset) = segment.refusal() {
            self.transmit(
                None,
                packet.to,
                packet.destination,
                packet.source,
                Payload::Tcp(reset),
            );
        }
    }

    /// An ICMP message tells what became of a packet from `packet.destination` to `packet.source`.
    pub(super) fn error_arrives(&mut self, packet: &Packet, protocol: Protocol, error: i32) {
        self.record(packet, Happening::Delivered);
        match protocol {
            Protocol::Tcp => {
                if let Some(id) =
                    self.ports
                        .connection(packet.to, packet.destination, packet.source)
                {
                    let _ = self.step(id, |connection, _, output| {
                        connection.unreachable(error, output)
                    });
                }
            }
            Protocol::Udp => self.udp_error(packet, error),
            Protocol::Unix => {}
        }
    }

    /// The connection is over: its addresses are free, and so is its record, if it is closed.
    pub(super) fn end_connection(&mut self, id: SocketId, is_orphan: bool) {
        self.ports.forget_connection(&self.sockets, id);
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if !socket.keeps_port {
            self.unbind(id);
        }
        let Some(socket) = self.sockets.get(&id) else {
            return;
        };
        let listener = socket.listener;
        let was_starting = listener
            .and_then(|listener| self.sockets.get_mut(&listener))
            .and_then(Socket::listener)
            .is_some_and(|listener| listener.starting.remove(&id));
        if is_orphan || was_starting {
            self.remove(id);
        }
    }
}
