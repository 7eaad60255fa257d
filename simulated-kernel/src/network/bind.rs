//! Sockets take ports and give them back.

use std::net::{IpAddr, SocketAddr};

use super::address::{NodeId, Result, SocketId};
use super::kind::Protocol;
use super::ports::covers;
use super::socket::Body;
use super::state::Network;

/// `net.ipv4.ip_local_port_range`.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32768..=60999;

impl Network {
    /// Takes the port of `address`, or a free one if it is 0.
    pub(super) fn bind_port(&mut self, id: SocketId, address: SocketAddr) -> Result<()> {
        let (node, protocol) = self.port_space(id)?;
        let address = match address.port() {
            0 => SocketAddr::new(address.ip(), self.free_port(node, protocol)?),
            _ => address,
        };
        if self.conflicts(id, address) {
            return Err(libc::EADDRINUSE);
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
            .ok_or(libc::EADDRNOTAVAIL)?;
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
        self.ports.occupy(node, protocol, address.port(), id);
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
        let (node, protocol) = (socket.node, socket.kind.protocol());
        let is_listener = matches!(socket.body, Body::Listener(_));
        self.ports.release(node, protocol, local.port(), id);
        if is_listener {
            self.ports.remove_listener(node, local.port(), id);
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
            .ok_or(libc::EADDRINUSE)
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
                let overlap = covers(address.ip(), local.ip()) || covers(local.ip(), address.ip());
                let listens = matches!(other.body, Body::Listener(_));
                let shares_address = socket.options.reuse_address
                    && other.options.reuse_address
                    && (protocol == Protocol::Udp || !listens);
                let shares_port = socket.options.reuse_port && other.options.reuse_port;
                overlap && !shares_address && !shares_port
            })
    }
}
