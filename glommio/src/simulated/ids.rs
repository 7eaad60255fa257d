//! What names machines and rings, and the time.

use std::time::Duration;

use super::network;

/// Since the start of the simulation.
pub(crate) type Time = Duration;

/// A machine of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) usize);

impl From<NodeId> for network::NodeId {
    fn from(node: NodeId) -> Self {
        network::NodeId(node.0 as u32)
    }
}

/// The ring of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RingId(pub(super) usize);

/// What ends of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it, as its power goes off.
    Power,
    /// Its processes, as they are killed. Its kernel closes what they had open.
    Processes,
}
