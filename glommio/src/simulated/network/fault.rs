//! What can go wrong on a network, as data that a plan holds and prints.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::address::NodeId;

/// How long a packet is on its way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Latency {
    Fixed(Duration),
    /// Every value of the range is as likely as any other.
    Uniform(Range<Duration>),
    /// `base`, and an exponentially distributed time of the given mean above it, of at most 20
    /// means.
    Exponential {
        base: Duration,
        mean: Duration,
    },
}

impl Latency {
    pub(super) fn draw(&self, random: &mut fastrand::Rng) -> Duration {
        match self {
            Self::Fixed(latency) => *latency,
            Self::Uniform(range) => {
                let (start, end) = (nanoseconds(range.start), nanoseconds(range.end));
                if start < end {
                    Duration::from_nanos(random.u64(start..end))
                } else {
                    range.start
                }
            }
            Self::Exponential { base, mean } => {
                let means = (-(1.0 - random.f64()).ln()).min(20.0);
                base.saturating_add(Duration::from_nanos(
                    (nanoseconds(*mean) as f64 * means) as u64,
                ))
            }
        }
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(latency) => write!(f, "{latency:?}"),
            Self::Uniform(range) => write!(f, "{:?}..{:?}", range.start, range.end),
            Self::Exponential { base, mean } => {
                write!(f, "{base:?} + exponential of mean {mean:?}")
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// One direction between two nodes.
///
/// Packets of one socket to one node arrive in the order in which they were sent, also if their
/// latencies differ, except for those that `reorder` chooses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) latency: Latency,
    /// Probability that a packet is lost. A datagram larger than `mtu` is lost with any of its
    /// fragments.
    pub(crate) loss: f64,
    /// Probability that a packet arrives twice.
    pub(crate) duplicate: f64,
    /// Probability that a packet takes another latency longer, so that later ones overtake it.
    pub(crate) reorder: f64,
    /// Probability that a segment of TCP comes apart, whose second part takes another latency longer, and that a write
    /// takes a part of what it could.
    pub(crate) split: f64,
    /// Bytes a second, none for no limit.
    pub(crate) bandwidth: Option<u64>,
    /// How many bytes wait for a link of limited bandwidth; further packets are dropped.
    pub(crate) queue_bytes: u64,
    /// The largest packet in bytes, with the headers of IP and above. Less than 576 counts as 576.
    pub(crate) mtu: u32,
}

impl Default for Link {
    /// 100 µs, without loss, duplicates, reordering or a limit of bandwidth, and an MTU of 1500
    /// bytes.
    fn default() -> Self {
        Self {
            latency: Latency::Fixed(Duration::from_micros(100)),
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

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "latency {}, loss {}, duplicate {}, reorder {}, split {}, ",
            self.latency, self.loss, self.duplicate, self.reorder, self.split
        )?;
        if let Some(bandwidth) = self.bandwidth {
            write!(
                f,
                "{bandwidth} bytes/s, queue of {} bytes, ",
                self.queue_bytes
            )?;
        }
        write!(f, "mtu {}", self.mtu)
    }
}

/// A change of the network, at a moment of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// The link of all pairs of nodes that have none of their own.
    DefaultLink(Link),
    /// One direction.
    Link {
        from: NodeId,
        to: NodeId,
        link: Link,
    },
    /// Packets pass only inside a group. Nodes in none of the groups are one more group. Replaces
    /// an earlier partition.
    Partition(Vec<Vec<NodeId>>),
    /// Ends a partition.
    Heal,
    /// The node loses its power: its sockets vanish, and packets to it are lost.
    PowerCut(NodeId),
    /// The node runs again, without sockets: packets to former ones are answered with a reset or an
    /// ICMP message.
    PowerOn(NodeId),
    /// The node stands still: packets to it and the timers of its sockets wait.
    Pause(NodeId),
    Resume(NodeId),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefaultLink(link) => write!(f, "all links: {link}"),
            Self::Link { from, to, link } => write!(f, "link from {from} to {to}: {link}"),
            Self::Partition(groups) => {
                write!(f, "partition:")?;
                for (place, group) in groups.iter().enumerate() {
                    let nodes: Vec<_> = group.iter().map(|node| node.0.to_string()).collect();
                    write!(
                        f,
                        "{} {}",
                        if place == 0 { "" } else { " |" },
                        nodes.join(" ")
                    )?;
                }
                Ok(())
            }
            Self::Heal => write!(f, "heal"),
            Self::PowerCut(node) => write!(f, "power cut of {node}"),
            Self::PowerOn(node) => write!(f, "power on of {node}"),
            Self::Pause(node) => write!(f, "pause of {node}"),
            Self::Resume(node) => write!(f, "resumption of {node}"),
        }
    }
}
