//! Semaphores, locks, gates, cells and cancellation.
//!
//! Most futures are polled by hand, so that each order of events can be had and no test depends on
//! time. Long runs of random operations do 100,000 each, or as many as `GLOMMIO_OPERATIONS` says.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod budget;
mod cancellation;
mod foreign_cancellation;
mod gate;
mod model;
mod mutex;
mod once_cell;
mod random;
mod rwlock;
mod semaphore;
