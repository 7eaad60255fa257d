//! What dumps are, and where they are asked for. [`dump`](super::dump) makes them.

#![forbid(unsafe_code)]

mod desk;
mod report;

pub use desk::NoDump;
pub(super) use desk::{Desk, Listed, desks};
pub use report::{Dump, Resource, TaskDump, TaskState};
