//! The machines of a simulation, in place of the kernel: with the feature `simulation`, on the thread
//! that runs one.
//!
//! ```text
//!   executors of all nodes, in turns
//!        │ rings (ring/simulated.rs)    │ calls (sys/)
//!        ▼                              ▼
//!   World: time, seed, what is due when, descriptors, trace
//!        │                              │
//!        ▼                              ▼
//!   network                          a disk for each node
//! ```
//!
//! Network and disks are the crate `simulated-kernel`. This module owns what is the same for all
//! nodes: the simulated time, the generator that all chance comes from, and what happens when. It
//! knows neither executors nor tasks, and nothing of the memory that operations point to: that is
//! the ring's.
//!
//! Invariants:
//!
//! 1. A simulation has one thread. Whatever is drawn is drawn from the one generator, in an order that
//!    follows from what was drawn before.
//! 2. No borrow is held while code of users runs.

#![forbid(unsafe_code)]

mod blocked;
mod chance;
mod current;
mod descriptors;
mod files;
mod generator;
mod ids;
mod moments;
mod node;
mod passed;
mod socket;
mod trace;
mod unix_files;
mod used_up;
mod waits;
mod world;

pub(crate) use current::{current, enter, of_host};
pub(crate) use descriptors::raise_descriptor_limit;
pub(crate) use files::{SimulatedFile, file};
pub(crate) use generator::generator;
pub(crate) use ids::{End, NodeId, RingId, Time};
pub(crate) use moments::Moment;
pub(crate) use node::node;
pub(crate) use socket::{SimulatedSocket, add_pair, add_socket, internet, socket};
pub(crate) use trace::{Described, Event, Named};
pub(crate) use unix_files::path_of;
pub(crate) use waits::Wait;
pub(crate) use world::{Due, PlannedAt, World};
