//! All that a network is made of, and access to it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::address::{NodeId, Passed, Result, SocketId, Time};
use super::log::Entry;
use super::node::Node;
use super::packet::Packet;
use super::ports::Ports;
use super::routes::Routes;
use super::socket::Socket;

/// See the [module](super).
#[derive(Debug)]
pub struct Network {
    pub(super) now: Time,
    pub(super) random: fastrand::Rng,
    pub(super) nodes: Vec<Node>,
    pub(super) names: BTreeMap<String, NodeId>,
    pub(super) addresses: BTreeMap<IpAddr, NodeId>,
    pub(super) routes: Routes,
    pub(super) ports: Ports,
    pub(super) sockets: BTreeMap<SocketId, Socket>,
    pub(super) next_socket: u64,
    pub(super) events: BTreeMap<(Time, u64), Event>,
    pub(super) next_event: u64,
    /// Packets of nodes to themselves, delivered before a call returns.
    pub(super) local: VecDeque<Packet>,
    pub(super) changed: Vec<SocketId>,
    /// Descriptors on their way that nothing will receive.
    pub(super) lost_passed: Vec<Passed>,
    pub(super) log: Vec<Entry>,
    /// Longest queue of a Unix socket of datagrams, `net.unix.max_dgram_qlen`.
    pub(super) unix_queue: usize,
}

#[derive(Debug)]
pub(super) enum Event {
    Arrival(Packet),
    /// The deadline of a connection.
    Deadline(SocketId),
}

impl Network {
    /// A network without nodes.
    pub fn new(seed: u64) -> Self {
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
            lost_passed: Vec::new(),
            log: Vec::new(),
            unix_queue: 10,
        }
    }

    /// When the next packet arrives or the next time-out passes.
    pub fn next_event(&self) -> Option<Time> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn schedule(&mut self, at: Time, event: Event) -> (Time, u64) {
        let key = (at, self.next_event);
        self.next_event += 1;
        self.events.insert(key, event);
        key
    }

    /// Sockets whose readiness may have changed since the last call, each once, in the order of the
    /// first change. A socket is also listed if something new came while it was readable already,
    /// as the kernel wakes those who poll then. It may have been closed meanwhile, or not be
    /// accepted yet.
    pub fn take_changed(&mut self) -> Vec<SocketId> {
        for id in &self.changed {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.is_changed = false;
            }
        }
        std::mem::take(&mut self.changed)
    }

    /// Descriptors on their way that nothing will receive, since this was last called.
    pub fn take_lost_passed(&mut self) -> Vec<Passed> {
        std::mem::take(&mut self.lost_passed)
    }

    /// Has the socket be among those that have changed, for a new wait.
    pub fn look_again(&mut self, id: SocketId) {
        self.touch(id);
    }

    pub(super) fn touch(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && !socket.is_changed
        {
            socket.is_changed = true;
            self.changed.push(id);
        }
    }

    pub(super) fn get(&self, id: SocketId) -> Result<&Socket> {
        self.sockets
            .get(&id)
            .filter(|socket| !socket.is_closed)
            .ok_or(libc::EBADF)
    }

    pub(super) fn get_mut(&mut self, id: SocketId) -> Result<&mut Socket> {
        self.sockets
            .get_mut(&id)
            .filter(|socket| !socket.is_closed)
            .ok_or(libc::EBADF)
    }

    pub(super) fn insert(&mut self, socket: Socket) -> SocketId {
        let id = SocketId(self.next_socket);
        self.next_socket += 1;
        self.sockets.insert(id, socket);
        id
    }

    /// The record of a socket goes, with its port and its timer.
    pub(super) fn remove(&mut self, id: SocketId) -> Option<Socket> {
        self.ports.forget_connection(&self.sockets, id);
        self.unbind(id);
        let socket = self.sockets.remove(&id)?;
        if let Some(key) = socket.timer {
            self.events.remove(&key);
        }
        Some(socket)
    }

    /// What has happened to packets since this was last called.
    pub fn take_log(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.log)
    }
}
