//! Runs nodes of several executors each in one thread, in simulated time, as a seed decides.
//!
//! A test of a distributed program wants what a real network and a real clock do not give: that an hour
//! passes in a second, that nodes lose their power at the worst moment, and that a failure happens again
//! when it is looked for. A [`Simulation`] gives that to programs that are written for executors of this
//! crate, without a change. The executors of all nodes take turns on the calling thread. Their clocks stand
//! still while anything can run, and then move to the next deadline. Every choice is drawn from one seed: who runs next,
//! where a slice of tasks ends, when the wake of another executor is seen, whether an attempt at a socket comes
//! too early, how long a blocking call takes.
//!
//! ```
//! use glommio::{simulation::Simulation, time, timer::sleep};
//! use std::time::Duration;
//!
//! let report = Simulation::builder()
//!     .seed(7)
//!     .node("server", 2, || async {
//!         loop {
//!             sleep(Duration::from_secs(1)).await;
//!         }
//!     })
//!     .client("client", || async {
//!         let start = time::now();
//!         sleep(Duration::from_secs(3600)).await;
//!         assert_eq!(time::now() - start, Duration::from_secs(3600));
//!     })
//!     .run()?;
//! assert_eq!(report.elapsed(), Duration::from_secs(3600));
//! # Ok::<_, glommio::simulation::Failure>(())
//! ```
//!
//! # When a run fails
//!
//! A panic on a node, an error that the `main` of a node returns, and a state in which nothing can
//! happen any more end the run with a [`Failure`], which tells the seed, the time and the latest events. With
//! `GLOMMIO_SEED=…` in the environment a simulation that has no seed of its own runs with that one:
//! the same program does the same again. The [digest](Report::digest) of a run tells whether it did.
//! [`Simulation::minimise`] tells which of the faults that had happened suffice for the failure.
//!
//! # What is simulated
//!
//! | | |
//! |---|---|
//! | timers, tasks, channels, locks | also between the executors of a node. The tasks of a queue run in the order in which they were woken, or in [another one](SimulationBuilder::random_task_order) |
//! | blocking calls | happen at a simulated moment, all at once; one in flight at a power cut has happened by then, without its result having been seen, or never will |
//! | TCP, UDP and Unix sockets | over a network with [latency, loss and partitions](Network). Nodes have the addresses 10.0.0.1, 10.0.0.2 and so on in the order in which they were added, and their names are host names. Unix sockets pass descriptors; one that is dropped as an `OwnedFd`, without having been made a type of this crate, stays open there. Their paths are files of the disk |
//! | files and directories | on a [disk](Disk) of the node's own, which stays when the power is cut and loses what was not synced. Operations in flight have happened by then, or not, or in part |
//! | [power cuts, killed and stopped processes, paused machines, clocks that drift, partitions, disks that begin to fail, no descriptors, no memory for I/O](Fault) | as [planned](SimulationBuilder::at), [by chance](SimulationBuilder::restarts), or when the [program asks for it](inject) |
//!
//! Not there in a simulation, so that it fails with kind `Unsupported`: child processes, signals, multicast, keep-alives,
//! deferred accepts, [`sync_read_dir`](crate::io::Directory::sync_read_dir), [`set_transmit_times`](crate::net::UdpSocket::set_transmit_times).
//! Nor can a program make executors itself.
//!
//! What it cannot show: defects of the kernel, the order in which memory of several threads becomes
//! visible, and how fast a program is. Programs that ask the system themselves (`Instant::now`, `SystemTime::now`, `std::fs`,
//! threads, an unseeded generator, the iteration order of a `HashMap`) are not the same in each run: use [`time::now`](crate::time::now),
//! [`system_now`](crate::time::system_now), this crate's types and [`rng_seed`]. **A `thread_local!` or a `static` is shared by all shards of all nodes, and survives a power cut**: keep the
//! state of a node in values that its `main` makes.

#![forbid(unsafe_code)]

mod builder;
mod by_chance;
mod disk;
mod fault;
mod hooks;
mod injected;
mod inside;
mod minimise;
mod network;
mod node;
mod recurring;
mod report;
mod run;
mod seeds;
mod spec;

pub use builder::{NodeOutput, Simulation, SimulationBuilder};
pub use disk::Disk;
pub use fault::Fault;
pub use inside::{elapsed, inject, note, starts};
pub use minimise::Minimised;
pub use network::Network;
pub use report::{Failure, FailureKind, Report};
pub use seeds::Summary;

#[doc(no_inline)]
pub use crate::random::rng_seed;
