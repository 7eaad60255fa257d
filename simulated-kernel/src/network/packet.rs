//! Packets as links carry them.

use std::net::SocketAddr;

use super::address::{NodeId, Time};
use super::kind::Protocol;
use super::log::{Entry, Happening};
use super::tcp::{Flags, Segment};

pub(super) const TCP_HEADER: u64 = 20;
pub(super) const UDP_HEADER: u64 = 8;

#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) payload: Payload,
}

#[derive(Clone, Debug)]
pub(super) enum Payload {
    Tcp(Segment),
    Udp(Vec<u8>),
    /// A packet from `destination` to `source` could not be delivered.
    Icmp(Protocol, i32),
}

impl Packet {
    pub(super) fn entry(&self, at: Time, happening: Happening) -> Entry {
        let (what, len) = match &self.payload {
            Payload::Tcp(segment) => (
                match segment.flags {
                    Flags::None => "tcp",
                    Flags::Syn => "syn",
                    Flags::Fin => "fin",
                    Flags::Rst => "rst",
                },
                segment.data.len(),
            ),
            Payload::Udp(data) => ("udp", data.len()),
            Payload::Icmp(..) => ("icmp", 0),
        };
        Entry {
            at,
            from: self.from,
            to: self.to,
            source: self.source,
            destination: self.destination,
            what,
            len,
            happening,
        }
    }

    /// With the headers.
    pub(super) fn bytes(&self) -> u64 {
        let headers = if self.source.is_ipv4() { 20 } else { 40 };
        headers
            + match &self.payload {
                Payload::Tcp(segment) => TCP_HEADER + segment.data.len() as u64,
                Payload::Udp(data) => UDP_HEADER + data.len() as u64,
                Payload::Icmp(..) => 48,
            }
    }
}
