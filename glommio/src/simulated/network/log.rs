//! What happens on the network, as a digest and, if wanted, as a list.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use super::address::{NodeId, Time};

/// A packet, and what became of it at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(|node| node))
    }
}

/// So many are kept.
const LATEST: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) is_kept: bool,
    pub(super) entries: Vec<Entry>,
    /// The latest ones.
    pub(super) latest: VecDeque<Entry>,
    pub(super) digest: u64,
}

impl Log {
    pub(super) fn add(&mut self, entry: impl FnOnce() -> Entry) {
        let entry = entry();
        for word in entry.words() {
            // The step of FNV-1a, by words.
            self.digest = (self.digest ^ word)
                .wrapping_mul(0x0000_0100_0000_01b3)
                .rotate_left(23);
        }
        if self.is_kept {
            self.entries.push(entry.clone());
        }
        if self.latest.len() == LATEST {
            self.latest.pop_front();
        }
        self.latest.push_back(entry);
    }
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

    fn words(&self) -> [u64; 6] {
        let (number, time) = match self.happening {
            Happening::Sent { arrives } => (1, arrives),
            Happening::Duplicated { arrives } => (2, arrives),
            Happening::Delivered => (3, Time::ZERO),
            Happening::Lost => (4, Time::ZERO),
            Happening::Congested => (5, Time::ZERO),
            Happening::Partitioned => (6, Time::ZERO),
            Happening::NoPower => (7, Time::ZERO),
            Happening::NoSpace => (8, Time::ZERO),
            Happening::Refused => (9, Time::ZERO),
        };
        [
            self.at.as_nanos() as u64,
            u64::from(self.from.0) << 32 | u64::from(self.to.0),
            u64::from(self.source.port()) << 16 | u64::from(self.destination.port()),
            self.what.as_bytes()[0].into(),
            self.len as u64,
            number << 60 ^ time.as_nanos() as u64,
        ]
    }
}
