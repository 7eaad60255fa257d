//! How large a round is.

use std::time::Duration;

/// What is done in a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of the stream, in pieces.
    pub(super) reads: usize,
    pub(super) datagrams: usize,
    /// Of the channel between the executors,
    pub(super) messages: usize,
    /// and of the one within.
    pub(super) local: usize,
    /// From one round to the next.
    pub(super) every: Duration,
}
