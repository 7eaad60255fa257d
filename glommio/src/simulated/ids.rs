//! What names machines and rings, the time, and how calls fail.

pub(crate) use simulated_kernel::{NodeId, Result, Time};

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
