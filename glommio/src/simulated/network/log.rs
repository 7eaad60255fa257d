//! What happens to packets.

use std::fmt;
use std::net::SocketAddr;

use super::address::{NodeId, Time};

/// A packet, and what became of it at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) at: Time,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    /// `tcp`, `syn`, `fin`, `rst`, `udp` or `icmp`.
    pub(crate) what: &'static str,
    /// Bytes of the payload.
    pub(crate) len: usize,
    pub(crate) happening: Happening,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Happening {
    Sent {
        arrives: Time,
    },
    Duplicated {
        arrives: Time,
    },
    Delivered,
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
    pub(crate) fn told<N: fmt::Display>(&self, name: impl Fn(NodeId) -> N) -> String {
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
