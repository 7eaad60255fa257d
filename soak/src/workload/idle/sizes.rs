//! How large the workload is.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) far: usize,
    pub(super) sleeps: usize,
    pub(super) in_lane: usize,
    /// How long a quiet window is.
    pub(super) quiet: Duration,
    pub(super) hog_max: Duration,
    pub(super) sleep_max: Duration,
    /// How many times slower than the reference machine this one is.
    pub(super) slowness: f64,
}
