//! Which sockets have which ports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::address::{NodeId, SocketId};
use super::kind::Protocol;
use super::socket::Socket;

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

    pub(super) fn occupy(&mut self, node: NodeId, protocol: Protocol, port: u16, id: SocketId) {
        self.bound
            .entry((node, protocol, port))
            .or_default()
            .insert(id);
    }

    pub(super) fn release(&mut self, node: NodeId, protocol: Protocol, port: u16, id: SocketId) {
        if let Some(ids) = self.bound.get_mut(&(node, protocol, port)) {
            ids.remove(&id);
            if ids.is_empty() {
                self.bound.remove(&(node, protocol, port));
            }
        }
    }

    pub(super) fn is_free(&self, node: NodeId, protocol: Protocol, port: u16) -> bool {
        !self.bound.contains_key(&(node, protocol, port))
    }
}

/// Whether a socket that is bound to `local` takes packets to `address`.
pub(super) fn covers(local: IpAddr, address: IpAddr) -> bool {
    local == address
        || match (local, address) {
            (IpAddr::V4(_), IpAddr::V6(_)) => false,
            (local, _) => local.is_unspecified(),
        }
}
