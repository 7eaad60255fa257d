//! What names machines and rings, the time, and how calls fail.

use std::time::Duration;

/// Since the start of the simulation.
pub(crate) type Time = Duration;

/// What a call gives, or the error number.
pub(crate) type Result<T> = std::result::Result<T, i32>;

/// A machine of the simulation. Nodes are numbered in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) usize);

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
