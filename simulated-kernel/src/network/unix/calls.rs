//! Names and connections of Unix sockets.

use super::super::address::{Address, NodeId, Result, SocketId, UnixName};
use super::super::kind::Kind;
use super::super::socket::{Body, Options, Socket};
use super::super::state::Network;
use super::super::unix_socket::{State, Unix};

impl Network {
    /// Connects two sockets to each other.
    pub(in super::super) fn unix_join(&mut self, one: SocketId, other: SocketId) {
        for (id, peer) in [(one, other), (other, one)] {
            let name = self.unix_ref(peer).map(|unix| unix.name.clone());
            if let Some(unix) = self.unix_mut(id) {
                unix.state = State::Established;
                unix.peer = Some(peer);
                unix.peer_name = name;
                unix.followers.insert(peer);
            }
        }
    }

    pub(in super::super) fn unix_bind(&mut self, id: SocketId, address: &Address) -> Result<()> {
        let Address::Unix(name) = address else {
            return Err(libc::EINVAL);
        };
        let (node, kind) = (self.get(id)?.node, self.get(id)?.kind);
        let is_named = self.unix(id)?.name != UnixName::Unnamed;
        let names = &self.nodes[node.0].unix_names;
        let name = match name {
            UnixName::Unnamed if is_named => return Ok(()),
            UnixName::Unnamed => (0..=0xf_ffffu32)
                .map(|number| UnixName::Abstract(format!("{number:05x}").into_bytes()))
                .find(|name| !names.contains_key(&known_as(kind, name)))
                .ok_or(libc::ENOSPC)?,
            // The file would be made before the socket is looked at.
            UnixName::Path(_) if names.contains_key(name) => return Err(libc::EADDRINUSE),
            _ if is_named => return Err(libc::EINVAL),
            UnixName::Abstract(_) if names.contains_key(&known_as(kind, name)) => {
                return Err(libc::EADDRINUSE);
            }
            name => name.clone(),
        };
        self.nodes[node.0]
            .unix_names
            .insert(known_as(kind, &name), Some(id));
        let unix = self.unix(id)?;
        unix.name = name.clone();
        // Others know it by that, also those that were connected before, or have its datagrams.
        let peers: Vec<_> = unix.followers.iter().copied().chain(unix.peer).collect();
        for peer in peers {
            if let Some(unix) = self.unix_mut(peer).filter(|it| it.peer == Some(id)) {
                unix.peer_name = Some(name.clone());
            }
        }
        for socket in self.sockets.values_mut() {
            if let Body::Unix(unix) = &mut socket.body {
                let sent = unix.queue.iter_mut().filter(|it| it.sender == id);
                sent.for_each(|message| message.from = name.clone());
            }
        }
        Ok(())
    }

    pub(in super::super) fn unix_listen(&mut self, id: SocketId, backlog: usize) -> Result<()> {
        if self.get(id)?.kind == Kind::UnixDatagram {
            return Err(libc::EOPNOTSUPP);
        }
        let unix = self.unix(id)?;
        if unix.name == UnixName::Unnamed || unix.state == State::Established {
            return Err(libc::EINVAL);
        }
        unix.state = State::Listening;
        unix.backlog = backlog;
        self.touch(id);
        Ok(())
    }

    /// The socket that has the name, as `id` sees it.
    pub(super) fn unix_find(&self, id: SocketId, address: &Address) -> Result<SocketId> {
        let Address::Unix(name) = address else {
            return Err(libc::EINVAL);
        };
        let socket = self.get(id)?;
        let missing = match name {
            UnixName::Unnamed => return Err(libc::EINVAL),
            UnixName::Path(_) => libc::ENOENT,
            UnixName::Abstract(_) => libc::ECONNREFUSED,
        };
        let found = self.nodes[socket.node.0]
            .unix_names
            .get(&known_as(socket.kind, name))
            .ok_or(missing)?;
        let found = found.ok_or(libc::ECONNREFUSED)?;
        let other = self.sockets.get(&found).ok_or(libc::ECONNREFUSED)?;
        if other.kind != socket.kind {
            return Err(libc::EPROTOTYPE);
        }
        Ok(found)
    }

    pub(in super::super) fn unix_connect(&mut self, id: SocketId, address: &Address) -> Result<()> {
        let other = self.unix_find(id, address)?;
        if self.get(id)?.kind == Kind::UnixDatagram {
            return self.unix_follow(id, other);
        }
        match self.unix_ref(other) {
            Some(unix) if unix.state == State::Listening && !unix.read_shut => {
                if unix.waiting.len() > unix.backlog {
                    return Err(libc::EAGAIN);
                }
            }
            _ => return Err(libc::ECONNREFUSED),
        }
        match self.unix(id)?.state {
            State::Closed => {}
            State::Established => return Err(libc::EISCONN),
            State::Listening => return Err(libc::EINVAL),
        }
        let socket = self.get(id)?;
        let (node, kind) = (socket.node, socket.kind);
        let name = self
            .unix_ref(other)
            .map_or(UnixName::Unnamed, |unix| unix.name.clone());
        let end = Body::Unix(Unix {
            name,
            ..Unix::default()
        });
        let end = self.insert(Socket::new(node, kind, end, Options::new(kind)));
        self.unix_join(id, end);
        if let Some(unix) = self.unix_mut(other) {
            unix.waiting.push_back(end);
        }
        self.touch(id);
        self.touch(other);
        Ok(())
    }

    /// Connects a socket of datagrams, which another one does not notice.
    fn unix_follow(&mut self, id: SocketId, other: SocketId) -> Result<()> {
        self.unix_may_send(id, other)?;
        let name = self.unix_ref(other).map(|unix| unix.name.clone());
        let unix = self.unix(id)?;
        let previous = unix.peer.replace(other);
        unix.peer_name = name;
        unix.state = State::Established;
        if let Some(previous) = previous.filter(|previous| *previous != other) {
            self.unix_unfollow(id, previous);
        }
        if let Some(unix) = self.unix_mut(other) {
            unix.followers.insert(id);
        }
        self.touch(id);
        Ok(())
    }

    /// A socket that has a peer takes datagrams from it alone.
    pub(super) fn unix_may_send(&self, id: SocketId, other: SocketId) -> Result<()> {
        match self.unix_ref(other).and_then(|unix| unix.peer) {
            Some(peer) if peer != id => Err(libc::EPERM),
            _ => Ok(()),
        }
    }

    /// The socket has another peer than `previous`: what came from that one is dropped, and if
    /// there was something, a peer that was connected to it, too, learns of it.
    fn unix_unfollow(&mut self, id: SocketId, previous: SocketId) {
        let has_lost = (self.unix_ref(id)).is_some_and(|unix| !unix.queue.is_empty());
        self.unix_purge(id);
        if let Some(unix) = self.unix_mut(previous) {
            unix.followers.remove(&id);
            if unix.peer == Some(id) && has_lost {
                unix.error = Some(libc::ECONNRESET);
                self.touch(previous);
            }
        }
    }

    /// A send has found that the peer is gone.
    pub(super) fn unix_lose_peer(&mut self, id: SocketId) {
        self.unix_purge(id);
        if let Some(unix) = self.unix_mut(id) {
            unix.peer = None;
            unix.peer_name = None;
            unix.state = State::Closed;
        }
        self.touch(id);
    }

    pub(in super::super) fn unix_accept(&mut self, id: SocketId) -> Result<(SocketId, Address)> {
        if self.get(id)?.kind == Kind::UnixDatagram {
            return Err(libc::EOPNOTSUPP);
        }
        let unix = self.unix(id)?;
        if unix.state != State::Listening {
            return Err(libc::EINVAL);
        }
        let end = unix.waiting.pop_front().ok_or(libc::EAGAIN)?;
        let name = self
            .unix_ref(end)
            .and_then(|unix| unix.peer_name.clone())
            .unwrap_or(UnixName::Unnamed);
        Ok((end, Address::Unix(name)))
    }

    pub(in super::super) fn unix_shutdown(&mut self, id: SocketId, read: bool, write: bool) {
        let Some(unix) = self.unix_mut(id) else {
            return;
        };
        unix.read_shut |= read;
        unix.write_shut |= write;
        let peer = unix.peer;
        self.touch(id);
        let is_connection = self
            .sockets
            .get(&id)
            .is_some_and(|socket| socket.kind != Kind::UnixDatagram);
        if let Some(peer) = peer.filter(|_| is_connection)
            && let Some(unix) = self.unix_mut(peer)
        {
            unix.read_shut |= write;
            unix.write_shut |= read;
            self.touch(peer);
        }
    }

    pub(in super::super) fn unix_end(&mut self, id: SocketId, was_waiting: bool) {
        let Some(socket) = self.sockets.get(&id) else {
            return;
        };
        let (node, kind) = (socket.node, socket.kind);
        let is_connection = kind != Kind::UnixDatagram;
        let Some(unix) = self.unix_mut(id) else {
            return;
        };
        let (name, peer) = (unix.name.clone(), unix.peer);
        let waiting = std::mem::take(&mut unix.waiting);
        let followers = std::mem::take(&mut unix.followers);
        let is_reset = !unix.queue.is_empty() || was_waiting;
        self.unix_purge(id);
        self.unix_release_name(node, &known_as(kind, &name), id);
        if let Some(peer) = peer
            && let Some(unix) = self.unix_mut(peer)
        {
            unix.followers.remove(&id);
            if is_connection {
                unix.read_shut = true;
                unix.write_shut = true;
                if is_reset {
                    unix.error = Some(libc::ECONNRESET);
                }
                self.touch(peer);
            }
        }
        self.remove(id);
        for follower in followers {
            self.touch(follower);
        }
        for end in waiting {
            self.unix_end(end, true);
        }
    }

    /// An abstract name goes with its socket; a path stays without one.
    fn unix_release_name(&mut self, node: NodeId, name: &UnixName, id: SocketId) {
        let names = &mut self.nodes[node.0].unix_names;
        if names.get(name) != Some(&Some(id)) {
            return;
        }
        match name {
            UnixName::Path(_) => names.insert(name.clone(), None),
            _ => names.remove(name),
        };
    }
}

/// What a name is known as: each kind of socket has abstract names of its own.
fn known_as(kind: Kind, name: &UnixName) -> UnixName {
    match name {
        UnixName::Abstract(name) => UnixName::Abstract([&[kind as u8], &**name].concat()),
        name => name.clone(),
    }
}
