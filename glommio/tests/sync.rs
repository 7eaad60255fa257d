//! Semaphores, locks, gates, cells and cancellation.
//!
//! Most futures are polled by hand, so that each order of events can be had and no test depends on time. Long runs of
//! random operations do 100,000 each, or as many as `GLOMMIO_OPERATIONS` says.

mod common;
#[path = "timer/hooks.rs"]
#[allow(dead_code, reason = "used in part")]
mod hooks;
#[path = "common/polled.rs"]
mod polled;

#[path = "sync/cancellation.rs"]
mod cancellation;
#[path = "sync/foreign_cancellation.rs"]
mod foreign_cancellation;
#[path = "sync/gate.rs"]
mod gate;
#[path = "sync/model.rs"]
mod model;
#[path = "sync/mutex.rs"]
mod mutex;
#[path = "sync/once_cell.rs"]
mod once_cell;
#[path = "sync/random.rs"]
mod random;
#[path = "sync/rwlock.rs"]
mod rwlock;
#[path = "sync/semaphore.rs"]
mod semaphore;
