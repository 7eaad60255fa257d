//! The clock that workloads and checks go by: that of the executor, which is simulated in a simulation.

use std::time::{Duration, Instant};

/// What it says.
pub(crate) fn now() -> Instant {
    glommio::time::now()
}

/// The time since `earlier`; none if that is to come.
pub(crate) fn since(earlier: Instant) -> Duration {
    now().saturating_duration_since(earlier)
}
