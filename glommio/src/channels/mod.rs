//! Channels between tasks: of one executor, and of several.
//!
//! | module | values | ends |
//! |---|---|---|
//! | [`local_channel`] | a queue, bounded or not; each value goes to one receiver | one executor |
//! | [`oneshot`] | one value, once | one executor, or any threads |
//! | [`watch`] | the latest value only | one executor, or any threads |
//! | [`broadcast`] | a ring of the latest values; each receiver gets all of them | one executor, or any threads |
//!
//! Nothing here needs a running executor, and tasks of any runtime may wait.

// But for the slots of `spsc_queue`.
#![deny(unsafe_code)]

pub mod broadcast;
pub mod local_channel;
pub mod oneshot;
pub mod shared_channel;
pub mod spsc_queue;
pub mod storage;
#[cfg(all(test, loom))]
mod tests;
mod waiters;
pub mod watch;
