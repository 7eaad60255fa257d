//! A message queue over TCP: topics, groups of consumers, acks with deadlines, dead letters.
//!
//! The example `broker` runs one, the soak test holds it to its word, and the load generator of the
//! benches speaks its protocol.

mod client;
pub mod frames;
pub mod link;
pub mod protocol;
mod queues;

pub use queues::{Broker, Counts, Limits};
