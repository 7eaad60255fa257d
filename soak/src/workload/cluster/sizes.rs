//! How large the bursts are.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of one burst.
    pub(super) timers: usize,
    /// Those among them that are a little off.
    pub(super) neighbours: usize,
    /// From the beginning of one burst to that of the next.
    pub(super) every: Duration,
}
