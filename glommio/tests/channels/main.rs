//! Channels: within one executor, and the shared forms between threads.
//!
//! Most futures are polled by hand, so that each order of events can be had and no test depends on
//! time. Long runs of random operations do 100,000 each, or as many as `GLOMMIO_OPERATIONS` says.

#[path = "../common/mod.rs"]
mod common;

mod broadcast;
mod broadcast_random;
mod budget;
mod draining;
mod given_up;
mod local;
mod mesh;
mod oneshot;
mod payload;
mod queue_random;
mod sharding;
mod shared;
mod shared_threads;
mod shared_wakes;
mod spsc;
mod threads;
mod watch;
mod watch_random;
