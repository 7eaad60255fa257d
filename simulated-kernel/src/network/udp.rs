//! Calls and packets of UDP.

use std::net::{IpAddr, SocketAddr};

use super::address::{
    Address, NodeId, Received, Result, SocketId, canonical, is_broadcast, shown, unspecified,
};
use super::kind::{Kind, Protocol};
use super::log::Happening;
use super::packet::{Packet, Payload, UDP_HEADER};
use super::ports::covers;
use super::socket::Body;
use super::state::Network;
use super::udp_socket::{DATAGRAM_OVERHEAD, Udp};

const LARGEST_PACKET: usize = 65535;

impl Network {
    fn udp(&mut self, id: SocketId) -> Result<&mut Udp> {
        match &mut self.get_mut(id)?.body {
            Body::Udp(udp) => Ok(udp),
            _ => Err(libc::EOPNOTSUPP),
        }
    }

    pub(super) fn udp_connect(&mut self, id: SocketId, address: &Address) -> Result<()> {
        let (local, peer) = self.ends(id, address)?;
        self.check_broadcast(id, peer)?;
        let bound = self
            .get(id)?
            .local
            .filter(|_| self.get(id).is_ok_and(|socket| socket.is_bound));
        match bound {
            Some(bound) => self.occupy(id, SocketAddr::new(local, bound.port()))?,
            None => self.bind_port(id, SocketAddr::new(local, 0))?,
        }
        self.get_mut(id)?.peer = Some(peer);
        Ok(())
    }

    fn check_broadcast(&self, id: SocketId, peer: SocketAddr) -> Result<()> {
        if is_broadcast(peer.ip()) && !self.get(id)?.options.broadcast {
            return Err(libc::EACCES);
        }
        Ok(())
    }

    pub(super) fn udp_send(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        address: Option<&Address>,
    ) -> Result<usize> {
        let socket = self.get(id)?;
        let is_v6 = socket.kind.is_v6();
        // Also by a call that fails.
        if !socket.is_bound {
            self.bind_port(id, SocketAddr::new(unspecified(is_v6), 0))?;
        }
        let socket = self.get(id)?;
        if bytes.len() > LARGEST_PACKET {
            return Err(libc::EMSGSIZE);
        }
        let given = address
            .map(|address| self.udp_address(socket.kind, address))
            .transpose()?;
        if given.is_some_and(|address| address.port() == 0) {
            return Err(libc::EINVAL);
        }
        let target = given.or(socket.peer).ok_or(libc::EDESTADDRREQ)?;
        let (source, target) = self.ends(id, &Address::Ip(shown(target, is_v6)))?;
        self.check_broadcast(id, target)?;
        Self::check_len(bytes.len(), target)?;
        let udp = self.udp(id)?;
        if let Some(error) = udp.error.take() {
            return Err(error);
        }
        if udp.write_shut {
            return Err(libc::EPIPE);
        }
        let socket = self.get(id)?;
        let node = socket.node;
        let source = SocketAddr::new(source, socket.local.map_or(0, |local| local.port()));
        if !is_broadcast(target.ip()) && !target.ip().is_multicast() {
            self.transmit(Some(id), node, source, target, Payload::Udp(bytes.to_vec()));
        }
        Ok(bytes.len())
    }

    /// Sockets of IPv6 may be told addresses of IPv4 here.
    pub(super) fn udp_address(&self, kind: Kind, address: &Address) -> Result<SocketAddr> {
        match address {
            Address::Ip(address @ SocketAddr::V4(_)) => Ok(canonical(*address)),
            _ => kind.accepts(address),
        }
    }

    fn check_len(len: usize, target: SocketAddr) -> Result<()> {
        let all = match target {
            SocketAddr::V4(_) => len + 20 + UDP_HEADER as usize,
            // The length of IPv6 is that of the payload.
            SocketAddr::V6(_) => len + UDP_HEADER as usize,
        };
        match all > LARGEST_PACKET {
            true => Err(libc::EMSGSIZE),
            false => Ok(()),
        }
    }

    pub(super) fn udp_receive(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        peek: bool,
    ) -> Result<Received> {
        let is_v6 = self.get(id)?.kind.is_v6();
        let udp = self.udp(id)?;
        if let Some(error) = udp.error.take() {
            return Err(error);
        }
        let (data, from) = udp.next(peek).ok_or(libc::EAGAIN)?;
        let len = data.len().min(buffer.len());
        buffer[..len].copy_from_slice(&data[..len]);
        Ok(Received {
            len,
            full: data.len(),
            from: Some(Address::Ip(shown(from, is_v6))),
        })
    }

    pub(super) fn datagram_arrives(&mut self, packet: Packet) {
        let Some(id) = self.find_udp(packet.to, packet.destination, packet.source) else {
            self.record(&packet, Happening::Refused);
            let refusal = Payload::Icmp(Protocol::Udp, libc::ECONNREFUSED);
            self.transmit(None, packet.to, packet.destination, packet.source, refusal);
            return;
        };
        let Payload::Udp(data) = &packet.payload else {
            return;
        };
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let capacity = socket.options.receive_buffer;
        let Body::Udp(udp) = &mut socket.body else {
            return;
        };
        let size = data.len() + DATAGRAM_OVERHEAD;
        // One is always taken.
        if !udp.queue.is_empty() && udp.queued + size > capacity {
            self.record(&packet, Happening::NoSpace);
            return;
        }
        self.record(&packet, Happening::Delivered);
        let Payload::Udp(data) = packet.payload else {
            return;
        };
        if let Ok(udp) = self.udp(id) {
            udp.queued += size;
            udp.queue.push_back((data, packet.source));
            self.touch(id);
        }
    }

    /// The socket whose addresses fit best; of equal ones the latest, or one of a group by the
    /// sender's port.
    fn find_udp(&self, node: NodeId, local: SocketAddr, peer: SocketAddr) -> Option<SocketId> {
        let fit = |id: SocketId| {
            let socket = self.sockets.get(&id)?;
            let bound: IpAddr = socket.local?.ip();
            let is_connected = socket.peer == Some(peer);
            let fits = covers(bound, local.ip()) && (is_connected || socket.peer.is_none());
            fits.then_some((
                is_connected,
                !bound.is_unspecified(),
                bound.is_ipv4() == local.is_ipv4(),
            ))
        };
        let bound = || self.ports.bound(node, Protocol::Udp, local.port());
        let best = bound().filter_map(fit).max()?;
        let equals: Vec<_> = bound().filter(|id| fit(*id) == Some(best)).collect();
        let latest = *equals.last()?;
        if self.sockets.get(&latest)?.options.reuse_port {
            return Some(equals[usize::from(peer.port()) % equals.len()]);
        }
        Some(latest)
    }

    /// Only connected sockets hear of refusals.
    pub(super) fn udp_error(&mut self, packet: &Packet, error: i32) {
        if error != libc::ECONNREFUSED {
            return;
        }
        let Some(id) = self.find_udp(packet.to, packet.destination, packet.source) else {
            return;
        };
        let Some(socket) = self
            .sockets
            .get_mut(&id)
            .filter(|socket| socket.peer == Some(packet.source))
        else {
            return;
        };
        if let Body::Udp(udp) = &mut socket.body {
            udp.error = Some(error);
            self.touch(id);
        }
    }
}
