//! What happens to packets.

use std::fmt;
use std::net::SocketAddr;

use super::address::{NodeId, Time};

/// A packet, and what became of it at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The moment.
    pub at: Time,
    /// The node that has sent it.
    pub from: NodeId,
    /// The node that it is for.
    pub to: NodeId,
    /// The address of the sender.
    pub source: SocketAddr,
    /// The address of the receiver.
    pub destination: SocketAddr,
    /// `tcp`, `syn`, `fin`, `rst`, `udp` or `icmp`.
    pub what: &'static str,
    /// Bytes of the payload.
    pub len: usize,
    /// What became of it.
    pub happening: Happening,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// It is on its way.
    Sent {
        /// When it will be there.
        arrives: Time,
    },
    /// The same packet is on its way once more.
    Duplicated {
        /// When it will be there.
        arrives: Time,
    },
    /// The node has it.
    Delivered,
    /// The link has lost it.
    Lost,
    /// The queue of the link is full.
    Congested,
    /// Between groups of a partition.
    Partitioned,
    /// The node has no power.
    NoPower,
    /// The receive buffer or the accept queue is full.
    NoSpace,
    /// The answer is a reset or an ICMP message.
    Refused,
}

impl Entry {
    /// A line of the trace, with the names of nodes.
    pub fn told<N: fmt::Display>(&self, name: impl Fn(NodeId) -> N) -> String {
        let Self {
            at,
            from,
            to,
            source,
            destination,
            what,
            len,
            happening,
        } = self;
        let seconds = at.as_secs_f64();
        let (from, to) = (name(*from), name(*to));
        let happening = match happening {
            Happening::Sent { .. } => "sent",
            Happening::Duplicated { .. } => "sent twice",
            Happening::Delivered => "delivered",
            Happening::Lost => "lost",
            Happening::Congested => "lost: the link is congested",
            Happening::Partitioned => "lost: there is a partition",
            Happening::NoPower => "lost: the node has no power",
            Happening::NoSpace => "lost: the receiver has no space",
            Happening::Refused => "refused",
        };
        format!(
            "{seconds:>14.6} s {from:<10} {what} from {source} to {to} {destination}, {len} bytes: {happening}"
        )
    }
}
