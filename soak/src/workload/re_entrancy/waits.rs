//! How long timers are armed for.

use std::time::Duration;

use support::generator::{Draw, Rng};

/// How long timers of a kind wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// So many of them fire soon, however many there are.
    pub(super) usual: usize,
    pub(super) short_max: Duration,
}

impl Waits {
    /// For one of `count` timers.
    pub(super) fn draw(&self, rng: &mut Rng, count: usize) -> Duration {
        if rng.chance(self.usual as u64, count.max(self.usual) as u64) {
            self.draw_short(rng)
        } else {
            rng.log_uniform(self.short_max, LONG_MAX)
        }
    }

    /// Between a millisecond and two seconds; one in fifty is none at all.
    pub(super) fn draw_short(&self, rng: &mut Rng) -> Duration {
        if rng.chance(1, 50) {
            return Duration::ZERO;
        }
        rng.log_uniform(Duration::from_millis(1), self.short_max)
    }
}

const LONG_MAX: Duration = Duration::from_secs(3_600);
