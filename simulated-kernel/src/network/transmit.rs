//! The way of a packet: partition, bandwidth, loss, latency.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::address::{NodeId, SocketId, Time, loopback};
use super::kind::Protocol;
use super::log::Happening;
use super::packet::{Packet, Payload, TCP_HEADER};
use super::state::{Event, Network};

/// Of the loopback device.
const LOCAL_MTU: u32 = 65536;
/// No link carries less (RFC 791).
const SMALLEST_MTU: u32 = 576;
/// When a host that does not answer is given up.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(3);

impl Network {
    /// The node that has an address, as `node` sees it.
    pub(super) fn destination(&self, node: NodeId, address: IpAddr) -> Option<NodeId> {
        if address.is_loopback() {
            return Some(node);
        }
        self.addresses.get(&address).copied()
    }

    /// The address from which `node` sends to `address`.
    pub(super) fn source_for(&self, node: NodeId, address: IpAddr) -> Option<IpAddr> {
        if address.is_loopback() {
            return Some(loopback(address));
        }
        if self.addresses.get(&address) == Some(&node) {
            return Some(address);
        }
        self.address_of(node, address)
    }

    /// The largest packet from `node` to `address`.
    pub(super) fn mtu(&self, node: NodeId, address: IpAddr) -> u32 {
        match self.destination(node, address) {
            Some(to) if to == node => LOCAL_MTU,
            Some(to) => self.routes.link(node, to).mtu.max(SMALLEST_MTU),
            None => self.routes.default.mtu.max(SMALLEST_MTU),
        }
    }

    pub(super) fn mss(&self, node: NodeId, address: IpAddr) -> u32 {
        let headers = if address.is_ipv4() { 20 } else { 40 } + TCP_HEADER as u32;
        self.mtu(node, address) - headers
    }

    /// Sends a packet of a node. `socket` is the one that sends, whose packets stay in order.
    pub(super) fn transmit(
        &mut self,
        socket: Option<SocketId>,
        from: NodeId,
        source: SocketAddr,
        destination: SocketAddr,
        payload: Payload,
    ) {
        let Some(to) = self.destination(from, destination.ip()) else {
            self.report_unknown_host(from, source, destination, &payload);
            return;
        };
        let packet = Packet {
            from,
            to,
            source,
            destination,
            payload,
        };
        if from == to {
            self.record(&packet, Happening::Sent { arrives: self.now });
            self.local.push_back(packet);
        } else if self.routes.is_parted(from, to) {
            self.record(&packet, Happening::Partitioned);
        } else {
            self.transmit_in_parts(socket, packet);
        }
    }

    fn transmit_in_parts(&mut self, socket: Option<SocketId>, mut packet: Packet) {
        let split = self.routes.link(packet.from, packet.to).split;
        let second = match &mut packet.payload {
            Payload::Tcp(segment)
                if segment.data.len() > 1 && split > 0.0 && self.random.f64() < split =>
            {
                let first = self.random.usize(1..segment.data.len());
                let second = segment.split_off(first);
                Some(Packet {
                    payload: Payload::Tcp(second),
                    ..packet
                })
            }
            _ => None,
        };
        self.transmit_on_link(socket, packet, false);
        if let Some(second) = second {
            self.transmit_on_link(socket, second, true);
        }
    }

    /// `follows`: it is the second part of one that has come apart.
    fn transmit_on_link(&mut self, socket: Option<SocketId>, packet: Packet, follows: bool) {
        let link = self
            .routes
            .links
            .get(&(packet.from, packet.to))
            .unwrap_or(&self.routes.default);
        let bytes = packet.bytes();
        let mut leaves = self.now;
        if let Some(bandwidth) = link.bandwidth {
            let busy = self
                .routes
                .busy
                .entry((packet.from, packet.to))
                .or_default();
            let time_of = |bytes: u64| {
                Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / bandwidth.max(1))
            };
            if busy.saturating_sub(self.now) > time_of(link.queue_bytes) {
                self.record(&packet, Happening::Congested);
                return;
            }
            *busy = self.now.max(*busy) + time_of(bytes);
            leaves = *busy;
        }
        // TCP follows the MTU of its path.
        let is_cut = matches!(packet.payload, Payload::Udp(_));
        let fragments = if is_cut {
            bytes.div_ceil(u64::from(link.mtu.max(SMALLEST_MTU)))
        } else {
            1
        };
        let random = &mut self.random;
        let mut happens = |probability: f64| probability > 0.0 && random.f64() < probability;
        let is_lost = (0..fragments).any(|_| happens(link.loss));
        let is_late = happens(link.reorder);
        let is_doubled = happens(link.duplicate);
        let mut arrives = leaves + link.draw_latency(&mut self.random);
        if follows {
            arrives += link.draw_latency(&mut self.random);
        }
        let second = is_doubled.then(|| arrives + link.draw_latency(&mut self.random));
        if is_late {
            arrives += link.draw_latency(&mut self.random);
        }
        if is_lost {
            self.record(&packet, Happening::Lost);
            return;
        }
        if let Some(socket) = socket
            .and_then(|id| self.sockets.get_mut(&id))
            .filter(|_| !is_late)
        {
            arrives = in_order(&mut socket.arrivals, packet.to, arrives);
        }
        self.record(&packet, Happening::Sent { arrives });
        if let Some(second) = second {
            self.record(&packet, Happening::Duplicated { arrives: second });
            self.schedule(second, Event::Arrival(packet.clone()));
        }
        self.schedule(arrives, Event::Arrival(packet));
    }

    /// No node has the address: the sender's own node says so after a while.
    fn report_unknown_host(
        &mut self,
        node: NodeId,
        source: SocketAddr,
        destination: SocketAddr,
        payload: &Payload,
    ) {
        let protocol = match payload {
            Payload::Tcp(_) => Protocol::Tcp,
            Payload::Udp(_) => Protocol::Udp,
            Payload::Icmp(..) => return,
        };
        let payload = Payload::Icmp(protocol, libc::EHOSTUNREACH);
        let packet = Packet {
            from: node,
            to: node,
            source: destination,
            destination: source,
            payload,
        };
        let arrives = self.now + UNREACHABLE_AFTER;
        self.record(&packet, Happening::Sent { arrives });
        self.schedule(arrives, Event::Arrival(packet));
    }

    pub(super) fn record(&mut self, packet: &Packet, happening: Happening) {
        self.log.push(packet.entry(self.now, happening));
    }

    /// A packet has come to its node.
    pub(super) fn arrive(&mut self, packet: Packet) {
        if self.routes.is_parted(packet.from, packet.to) {
            self.record(&packet, Happening::Partitioned);
        } else if !self.nodes[packet.to.0].is_up {
            self.record(&packet, Happening::NoPower);
        } else {
            match packet.payload {
                Payload::Tcp(_) => self.segment_arrives(packet),
                Payload::Udp(_) => self.datagram_arrives(packet),
                Payload::Icmp(protocol, error) => self.error_arrives(&packet, protocol, error),
            }
        }
    }

    /// Delivers packets of nodes to themselves, with those that they cause. At the end of every
    /// call that may send.
    pub(super) fn deliver_local(&mut self) {
        while let Some(packet) = self.local.pop_front() {
            self.arrive(packet);
        }
    }
}

/// The time at which a packet arrives that may not overtake earlier ones to the same node.
fn in_order(arrivals: &mut Vec<(NodeId, Time)>, to: NodeId, arrives: Time) -> Time {
    match arrivals.iter_mut().find(|(node, _)| *node == to) {
        Some((_, last)) => {
            *last = arrives.max(*last);
            *last
        }
        None => {
            arrivals.push((to, arrives));
            arrives
        }
    }
}
