//! What may happen to nodes.

use std::fmt;
use std::time::Duration;

use super::disk::Disk;
use super::network::Network;

/// Something that happens to a node, or between nodes, at a moment of a simulation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The node loses its power: its tasks are gone at once. Their destructors run, but nothing that they
    /// do reaches the disk or the network. It starts again after `off_for`.
    PowerCut {
        /// Its name.
        node: String,
        /// Until it starts again.
        off_for: Duration,
    },
    /// The processes of the node are killed, and started again after `off_for`. Its kernel goes on: what had been
    /// written is there, synced or not, peers are told that connections are over, and new ones are refused.
    Kill {
        /// Its name.
        node: String,
        /// Until they are started again.
        off_for: Duration,
    },
    /// All of the node stands still for a while, its kernel too, as in a virtual machine that is paused: what is
    /// sent to it is not even acknowledged. Its clock goes on. Nothing happens to a node that has ended.
    Pause {
        /// Its name.
        node: String,
        /// How long.
        length: Duration,
    },
    /// The processes of the node stand still for a while, as by `SIGSTOP` or in a container that is paused. Its
    /// kernel goes on: connections are made and their data is acknowledged, until queues and buffers are full.
    Stop {
        /// Its name.
        node: String,
        /// How long.
        length: Duration,
    },
    /// From now on the disk of the node is another one, with the same files and the same sectors: it begins to fail, is
    /// slow, or is full.
    DiskChange {
        /// Its name.
        node: String,
        /// What the disk is like.
        disk: Disk,
    },
    /// From now on the clock of the node goes faster than time by so many microseconds each second,
    /// or slower if the number is negative.
    Drift {
        /// Its name.
        node: String,
        /// Microseconds a second: at least -900,000, at most 1,000,000.
        ppm: i32,
    },
    /// For a while no descriptor of the node is free: what would open one fails with `EMFILE`.
    NoDescriptors {
        /// Its name.
        node: String,
        /// How long.
        length: Duration,
    },
    /// For a while the kernel has no memory for I/O of the node: operations on files and waits for sockets
    /// fail with `ENOMEM`. A node that would start meanwhile fails to, and starts when there is memory
    /// again, as if a supervisor had tried until then.
    NoMemory {
        /// Its name.
        node: String,
        /// How long.
        length: Duration,
    },
    /// From now on packets pass only inside of a group. Nodes in none of them are one more group. Takes the
    /// place of an earlier partition.
    Partition {
        /// The names of the nodes of each.
        groups: Vec<Vec<String>>,
    },
    /// Ends a partition.
    Heal,
    /// From now on nothing goes wrong by chance: nodes that have ended start, those that stand still go on, partitions
    /// and shortages are over, clocks keep time, and networks and disks make no errors. Faults that are planned
    /// happen all the same.
    Calm,
    /// From now on one direction between two nodes is another one than the rest of the network.
    Link {
        /// The name of the node that sends.
        from: String,
        /// The name of the node that receives.
        to: String,
        /// What it is like.
        network: Network,
    },
}

impl Fault {
    /// The nodes that it names.
    pub(super) fn nodes(&self) -> Vec<&str> {
        match self {
            Fault::PowerCut { node, .. }
            | Fault::Kill { node, .. }
            | Fault::Pause { node, .. }
            | Fault::Stop { node, .. }
            | Fault::DiskChange { node, .. }
            | Fault::Drift { node, .. }
            | Fault::NoDescriptors { node, .. }
            | Fault::NoMemory { node, .. } => {
                vec![node]
            }
            Fault::Partition { groups } => groups.iter().flatten().map(String::as_str).collect(),
            Fault::Heal | Fault::Calm => Vec::new(),
            Fault::Link { from, to, .. } => vec![from, to],
        }
    }

    /// What is wrong with its numbers.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Fault::DiskChange { disk, .. } => disk.check(),
            Fault::Link { network, .. } => network.check(),
            Fault::Drift { ppm, .. } if !(-900_000..=1_000_000).contains(ppm) => Err(format!(
                "a clock drifts by -900,000 to 1,000,000 ppm, not {ppm}"
            )),
            _ => Ok(()),
        }
    }

    /// What it is called where faults are counted.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Fault::PowerCut { .. } => "power cut",
            Fault::Kill { .. } => "kill",
            Fault::Pause { .. } => "pause",
            Fault::Stop { .. } => "stop",
            Fault::DiskChange { .. } => "disk change",
            Fault::Drift { .. } => "drift",
            Fault::NoDescriptors { .. } => "no descriptors",
            Fault::NoMemory { .. } => "no memory",
            Fault::Partition { .. } => "partition",
            Fault::Heal => "heal",
            Fault::Calm => "calm",
            Fault::Link { .. } => "link change",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::PowerCut { node, off_for } => write!(f, "power cut of {node} for {off_for:?}"),
            Fault::Kill { node, off_for } => write!(f, "{node} is killed for {off_for:?}"),
            Fault::Stop { node, length } => write!(f, "{node} is stopped for {length:?}"),
            Fault::DiskChange { node, disk } => write!(f, "disk of {node}: {disk}"),
            Fault::Pause { node, length } => write!(f, "{node} stands still for {length:?}"),
            Fault::Drift { node, ppm } => write!(f, "the clock of {node} drifts by {ppm} ppm"),
            Fault::NoDescriptors { node, length } => {
                write!(f, "no descriptor of {node} is free for {length:?}")
            }
            Fault::NoMemory { node, length } => {
                write!(f, "no memory for I/O of {node} for {length:?}")
            }
            Fault::Partition { groups } => {
                let groups: Vec<_> = groups.iter().map(|group| group.join(" ")).collect();
                write!(f, "partition: {}", groups.join(" | "))
            }
            Fault::Heal => f.write_str("the partition ends"),
            Fault::Calm => f.write_str("nothing goes wrong any more"),
            Fault::Link { from, to, network } => {
                write!(f, "link from {from} to {to}: {}", network.link())
            }
        }
    }
}
