//! The links between nodes, and the groups of a partition.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::address::{NodeId, Time};

/// One direction between two nodes.
///
/// Packets of one socket to one node arrive in the order in which they were sent, also if their
/// latencies differ, except for those that `reorder` chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// How long a packet is on its way: every time of the range is as likely as any other.
    pub latency: Range<Duration>,
    /// Probability that a packet is lost. A datagram larger than `mtu` is lost with any of its
    /// fragments.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet takes another latency longer, so that later ones overtake it.
    pub reorder: f64,
    /// Probability that a segment of TCP comes apart, whose second part takes another latency longer, and that a write
    /// takes a part of what it could.
    pub split: f64,
    /// Bytes a second, none for no limit.
    pub bandwidth: Option<u64>,
    /// How many bytes wait for a link of limited bandwidth; further packets are dropped.
    pub queue_bytes: u64,
    /// The largest packet in bytes, with the headers of IP and above. Less than 576 counts as 576.
    pub mtu: u32,
}

impl Default for Link {
    /// 100 µs, without loss, duplicates, reordering or a limit of bandwidth, and an MTU of 1500
    /// bytes.
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(100)..Duration::from_micros(100),
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            split: 0.0,
            bandwidth: None,
            queue_bytes: 1 << 20,
            mtu: 1500,
        }
    }
}

impl Link {
    pub(super) fn draw_latency(&self, random: &mut fastrand::Rng) -> Duration {
        let nanoseconds = |it: Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
        let (start, end) = (
            nanoseconds(self.latency.start),
            nanoseconds(self.latency.end),
        );
        match start < end {
            true => Duration::from_nanos(random.u64(start..end)),
            false => self.latency.start,
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "latency {:?}, loss {}, duplicate {}, reorder {}, split {}, ",
            self.latency, self.loss, self.duplicate, self.reorder, self.split
        )?;
        if let Some(bandwidth) = self.bandwidth {
            let queue = self.queue_bytes;
            write!(f, "{bandwidth} bytes/s, queue of {queue} bytes, ")?;
        }
        write!(f, "mtu {}", self.mtu)
    }
}

#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) default: Link,
    pub(super) links: BTreeMap<(NodeId, NodeId), Link>,
    pub(super) group_of: BTreeMap<NodeId, usize>,
    /// Until when a link of limited bandwidth has something to send.
    pub(super) busy: BTreeMap<(NodeId, NodeId), Time>,
}

impl Routes {
    pub(super) fn link(&self, from: NodeId, to: NodeId) -> &Link {
        self.links.get(&(from, to)).unwrap_or(&self.default)
    }

    pub(super) fn is_parted(&self, from: NodeId, to: NodeId) -> bool {
        from != to
            && !self.group_of.is_empty()
            && self.group_of.get(&from) != self.group_of.get(&to)
    }
}
