//! What names machines, the time, and how calls fail.

use std::time::Duration;

/// Since the start of the simulation.
pub type Time = Duration;

/// What a call gives, or the error number.
pub type Result<T> = std::result::Result<T, i32>;

/// A machine of the simulation. Nodes are numbered in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);
