//! The network of a simulation: nodes, links, and sockets that behave as those of Linux do when
//! they do not block.
//!
//! It is a state machine without clock, threads or system calls. Its owner tells it the time with
//! [`Network::advance`], which delivers what is due by then, and makes calls between that which
//! take no time.
//!
//! ```text
//!   calls ──▶ socket ──▶ tcp, udp ──▶ route: loss, latency, ... ──▶ queue of events
//!                │                                                       │ advance(now)
//!                └──▶ unix: at once                                      ▼
//!   take_changed ◀── socket ◀── tcp, udp ◀────────────────── delivery to a node
//! ```
//!
//! - The same calls with the same seed give the same results. Random numbers are drawn only for
//!   links that have something random, for ports and for first sequence numbers.
//! - Packets of a node to itself arrive within the call that sends them, as on Linux, and are never
//!   lost.
//! - A call on a socket that does not exist, or that vanished in a power cut, fails with `EBADF`.
//! - Addresses of IPv4 that IPv6 sockets see are mapped (`::ffff:a.b.c.d`), and inside are not.
//!
//! What differs from Linux: buffers count the bytes of streams alone, and those of TCP do not grow
//! with the connection; delayed acknowledgements, Nagle's algorithm and `SO_LINGER` with a time
//! above zero have no effect. Packets of TCP are never cut into fragments.
//!
//! Not simulated: urgent data, multicast, broadcast, routing tables, path MTU discovery,
//! keep-alives.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

mod address;
mod calls;
mod establish;
mod fault;
mod log;
mod node;
mod options;
mod ports;
mod readiness;
mod route;
mod socket;
mod tcp;
mod transfer;
mod udp;
mod unix;

#[cfg(test)]
mod tests;

pub(crate) use address::{Address, Errno, NodeId, Result, SocketId, UnixName};
pub(crate) use fault::{Fault, Latency, Link};
pub(crate) use log::{Entry, Happening};
use node::Node;
use ports::Ports;
use route::{Packet, Routes};
pub(crate) use socket::Kind;
use socket::{Body, Options, Socket};
use tcp::{Connection, Output, State};
pub(crate) use transfer::Received;

/// Since the start of the simulation.
pub(crate) type Time = Duration;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Network {
    now: Time,
    random: fastrand::Rng,
    nodes: Vec<Node>,
    names: BTreeMap<String, NodeId>,
    addresses: BTreeMap<IpAddr, NodeId>,
    routes: Routes,
    ports: Ports,
    sockets: BTreeMap<SocketId, Socket>,
    next_socket: u64,
    events: BTreeMap<(Time, u64), Event>,
    next_event: u64,
    /// Packets of nodes to themselves, delivered before a call returns.
    local: VecDeque<Packet>,
    changed: Vec<SocketId>,
    log: log::Log,
    /// Longest queue of a Unix socket of datagrams, `net.unix.max_dgram_qlen`.
    unix_queue: usize,
}

#[derive(Debug)]
enum Event {
    Arrival(Packet),
    /// The deadline of a connection.
    Deadline(SocketId),
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            random: fastrand::Rng::with_seed(seed),
            nodes: Vec::new(),
            names: BTreeMap::new(),
            addresses: BTreeMap::new(),
            routes: Routes::default(),
            ports: Ports::default(),
            sockets: BTreeMap::new(),
            next_socket: 0,
            events: BTreeMap::new(),
            next_event: 0,
            local: VecDeque::new(),
            changed: Vec::new(),
            log: log::Log::default(),
            unix_queue: 10,
        }
    }

    /// The time of the last [`advance`](Self::advance).
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// How many sockets there are, with connections that are not accepted yet, closed ones that
    /// still deliver data, and those in TIME_WAIT.
    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// When the next packet arrives or the next time-out passes.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Moves to `now` and delivers what is due by then, in order of time. An earlier time than the
    /// present one changes nothing.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(first) = self.events.first_entry() {
            if first.key().0 > now {
                break;
            }
            let ((at, _), event) = first.remove_entry();
            self.now = self.now.max(at);
            self.happen(event);
            self.deliver_local();
        }
        self.now = self.now.max(now);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival(packet) => {
                let node = &mut self.nodes[packet.to.0 as usize];
                if node.is_paused {
                    node.held.push(packet);
                } else {
                    self.arrive(packet);
                }
            }
            Event::Deadline(id) => self.expire(id),
        }
    }

    fn schedule(&mut self, at: Time, event: Event) -> (Time, u64) {
        let key = (at, self.next_event);
        self.next_event += 1;
        self.events.insert(key, event);
        key
    }

    /// Sockets whose readiness may have changed since the last call, each once, in the order of the
    /// first change. A socket is also listed if something new came while it was readable already,
    /// as the kernel wakes those who poll then. It may have been closed meanwhile, or not be
    /// accepted yet.
    pub(crate) fn take_changed(&mut self) -> Vec<SocketId> {
        for id in &self.changed {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.is_changed = false;
            }
        }
        std::mem::take(&mut self.changed)
    }

    /// Has the socket be among those that have changed, for a new wait.
    pub(crate) fn look_again(&mut self, id: SocketId) {
        self.touch(id);
    }

    fn touch(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && !socket.is_changed
        {
            socket.is_changed = true;
            self.changed.push(id);
        }
    }

    fn get(&self, id: SocketId) -> Result<&Socket> {
        self.sockets
            .get(&id)
            .filter(|socket| !socket.is_closed)
            .ok_or(Errno(libc::EBADF))
    }

    fn get_mut(&mut self, id: SocketId) -> Result<&mut Socket> {
        self.sockets
            .get_mut(&id)
            .filter(|socket| !socket.is_closed)
            .ok_or(Errno(libc::EBADF))
    }

    fn insert(&mut self, socket: Socket) -> SocketId {
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        self.sockets.insert(id, socket);
        id
    }

    /// Runs a step of a connection and does what follows from it.
    fn step<R>(
        &mut self,
        id: SocketId,
        step: impl FnOnce(&mut Connection, Time, &mut Output) -> R,
    ) -> Result<R> {
        let now = self.now;
        let mut output = Output::default();
        let socket = self.sockets.get_mut(&id).ok_or(Errno(libc::EBADF))?;
        let connection = socket.connection().ok_or(Errno(libc::EINVAL))?;
        let was_open = connection.state != State::Closed;
        let result = step(connection, now, &mut output);
        self.follow_up(id, output, was_open);
        Ok(result)
    }

    /// Sends the segments of a step, sets the timer, and removes a connection that is over and was
    /// not before.
    fn follow_up(&mut self, id: SocketId, output: Output, was_open: bool) {
        for segment in output.segments {
            self.send_segment(id, segment);
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if output.wakes && !socket.is_closed {
            self.touch(id);
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let Some(connection) = socket.connection() else {
            return;
        };
        let is_closed = connection.state == State::Closed;
        let is_orphan = connection.is_orphan;
        self.set_deadline(id);
        if is_closed && (was_open || is_orphan) {
            self.end_connection(id, is_orphan);
        }
    }

    /// Puts the deadline of a connection into the queue of events, in place of an earlier one.
    fn set_deadline(&mut self, id: SocketId) {
        let now = self.now;
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if self.nodes[socket.node.0 as usize].is_paused {
            // `resume` comes back to it.
            return;
        }
        let timer = socket.timer;
        let deadline = socket
            .connection()
            .and_then(|connection| connection.deadline())
            .map(|at| at.max(now));
        if timer.map(|(at, _)| at) == deadline {
            return;
        }
        if let Some(key) = timer {
            self.events.remove(&key);
        }
        let timer = deadline.map(|at| self.schedule(at, Event::Deadline(id)));
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.timer = timer;
        }
    }

    fn expire(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        socket.timer = None;
        if !self.nodes[socket.node.0 as usize].is_paused {
            // A socket without a connection has no deadline.
            let _ = self.step(id, |connection, now, output| connection.expire(now, output));
        }
    }

    /// The record of a socket goes, with its port and its timer.
    fn remove(&mut self, id: SocketId) -> Option<Socket> {
        self.ports.forget_connection(&self.sockets, id);
        self.unbind(id);
        let socket = self.sockets.remove(&id)?;
        if let Some(key) = socket.timer {
            self.events.remove(&key);
        }
        Some(socket)
    }
}
