//! Which sockets have which ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::socket::Protocol;
use super::{Body, Errno, Network, NodeId, Result, Socket, SocketId};

/// `net.ipv4.ip_local_port_range`.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

#[derive(Debug, Default)]
pub(super) struct Ports {
    bound: BTreeMap<(NodeId, Protocol, u16), BTreeSet<SocketId>>,
    connections: BTreeMap<(NodeId, SocketAddr, SocketAddr), SocketId>,
    listeners: BTreeMap<(NodeId, u16), Vec<SocketId>>,
}

impl Ports {
    pub(super) fn connection(
        &self,
        node: NodeId,
        local: SocketAddr,
        peer: SocketAddr,
    ) -> Option<SocketId> {
        self.connections.get(&(node, local, peer)).copied()
    }

    pub(super) fn add_connection(
        &mut self,
        node: NodeId,
        local: SocketAddr,
        peer: SocketAddr,
        id: SocketId,
    ) {
        self.connections.insert((node, local, peer), id);
    }

    /// Segments find the connection no more.
    pub(super) fn forget_connection(&mut self, sockets: &BTreeMap<SocketId, Socket>, id: SocketId) {
        if let Some(socket) = sockets.get(&id)
            && let (Some(local), Some(peer)) = (socket.local, socket.peer)
            && self.connections.get(&(socket.node, local, peer)) == Some(&id)
        {
            self.connections.remove(&(socket.node, local, peer));
        }
    }

    pub(super) fn add_listener(&mut self, node: NodeId, port: u16, id: SocketId) {
        self.listeners.entry((node, port)).or_default().push(id);
    }

    pub(super) fn remove_listener(&mut self, node: NodeId, port: u16, id: SocketId) {
        if let Some(ids) = self.listeners.get_mut(&(node, port)) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.listeners.remove(&(node, port));
            }
        }
    }

    pub(super) fn listeners(&self, node: NodeId, port: u16) -> &[SocketId] {
        self.listeners.get(&(node, port)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn bound(
        &self,
        node: NodeId,
        protocol: Protocol,
        port: u16,
    ) -> impl DoubleEndedIterator<Item = SocketId> {
        self.bound
            .get(&(node, protocol, port))
            .into_iter()
            .flatten()
            .copied()
    }

    fn is_free(&self, node: NodeId, protocol: Protocol, port: u16) -> bool {
        !self.bound.contains_key(&(node, protocol, port))
    }
}

/// Whether a socket that is bound to `local` takes packets to `address`.
pub(super) fn covers(local: IpAddr, v6_only: bool, address: IpAddr) -> bool {
    local == address
        || match (local, address) {
            (IpAddr::V4(local), IpAddr::V4(_)) => local.is_unspecified(),
            (IpAddr::V6(local), IpAddr::V6(_)) => local.is_unspecified(),
            (IpAddr::V6(local), IpAddr::V4(_)) => local.is_unspecified() && !v6_only,
            (IpAddr::V4(_), IpAddr::V6(_)) => false,
        }
}

impl Network {
    /// Takes the port of `address`, or a free one if it is 0.
    pub(super) fn bind_port(&mut self, id: SocketId, address: SocketAddr) -> Result<()> {
        let (node, protocol) = self.port_space(id)?;
        let address = match address.port() {
            0 => SocketAddr::new(address.ip(), self.free_port(node, protocol)?),
            _ => address,
        };
        if self.conflicts(id, address) {
            return Err(Errno(libc::EADDRINUSE));
        }
        self.occupy(id, address)
    }

    /// Takes a free port for a connection from `ip` to `peer`.
    pub(super) fn bind_for_connection(
        &mut self,
        id: SocketId,
        ip: IpAddr,
        peer: SocketAddr,
    ) -> Result<()> {
        let (node, protocol) = self.port_space(id)?;
        let address = self
            .random_ports()
            .map(|port| SocketAddr::new(ip, port))
            .find(|local| {
                self.ports.connection(node, *local, peer).is_none()
                    && self
                        .ports
                        .bound(node, protocol, local.port())
                        .all(|other| self.is_mere_connection(other))
            })
            .ok_or(Errno(libc::EADDRNOTAVAIL))?;
        self.occupy(id, address)
    }

    fn is_mere_connection(&self, id: SocketId) -> bool {
        self.sockets.get(&id).is_some_and(|socket| {
            matches!(socket.body, Body::Tcp(_)) && !socket.was_bound && socket.listener.is_none()
        })
    }

    fn port_space(&self, id: SocketId) -> Result<(NodeId, Protocol)> {
        self.get(id)
            .map(|socket| (socket.node, socket.kind.protocol()))
    }

    pub(super) fn occupy(&mut self, id: SocketId, address: SocketAddr) -> Result<()> {
        let (node, protocol) = self.port_space(id)?;
        self.ports
            .bound
            .entry((node, protocol, address.port()))
            .or_default()
            .insert(id);
        let socket = self.get_mut(id)?;
        socket.local = Some(address);
        socket.is_bound = true;
        Ok(())
    }

    /// Gives the port back. The address stays known.
    pub(super) fn unbind(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if !std::mem::take(&mut socket.is_bound) {
            return;
        }
        let Some(local) = socket.local else { return };
        let key = (socket.node, socket.kind.protocol(), local.port());
        let is_listener = matches!(socket.body, Body::Listener(_));
        if let Some(ids) = self.ports.bound.get_mut(&key) {
            ids.remove(&id);
            if ids.is_empty() {
                self.ports.bound.remove(&key);
            }
        }
        if is_listener {
            self.ports.remove_listener(key.0, key.2, id);
        }
    }

    /// All ephemeral ports, from a random one on.
    fn random_ports(&mut self) -> impl Iterator<Item = u16> + use<> {
        let start = self.random.u16(EPHEMERAL);
        (start..=*EPHEMERAL.end()).chain(*EPHEMERAL.start()..start)
    }

    fn free_port(&mut self, node: NodeId, protocol: Protocol) -> Result<u16> {
        self.random_ports()
            .find(|port| self.ports.is_free(node, protocol, *port))
            .ok_or(Errno(libc::EADDRINUSE))
    }

    /// Whether another socket has the port, so that `id` cannot have it, too.
    pub(super) fn conflicts(&self, id: SocketId, address: SocketAddr) -> bool {
        let Ok(socket) = self.get(id) else {
            return false;
        };
        let protocol = socket.kind.protocol();
        self.ports
            .bound(socket.node, protocol, address.port())
            .any(|other_id| {
                let Some(other) = self.sockets.get(&other_id).filter(|_| other_id != id) else {
                    return false;
                };
                let Some(local) = other.local else {
                    return false;
                };
                let overlap = covers(address.ip(), socket.options.v6_only, local.ip())
                    || covers(local.ip(), other.options.v6_only, address.ip());
                let listens = matches!(other.body, Body::Listener(_));
                let shares_address = socket.options.reuse_address
                    && other.options.reuse_address
                    && (protocol == Protocol::Udp || !listens);
                let shares_port = socket.options.reuse_port && other.options.reuse_port;
                overlap && !shares_address && !shares_port
            })
    }
}
