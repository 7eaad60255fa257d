//! Distant timers of connections fire together, so that one wake-up serves many of them.

use std::time::{Duration, Instant};

/// Timers that are nearer than this are exact: pacing, and losses on short paths.
const NEAR: Duration = Duration::from_millis(16);
/// Acknowledgements that wait for more, and losses: what QUIC takes timers to be precise to
/// (`kGranularity` of RFC 9002, section 6.1.2).
const SHORT: Duration = Duration::from_millis(1);
/// Timers that are farther than this are for keep-alives and idleness.
const FAR: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_millis(16);

/// Rounds deadlines up.
pub(super) struct Ticks {
    /// Ticks are counted from here.
    origin: Instant,
}

impl Ticks {
    pub(super) fn new(origin: Instant) -> Ticks {
        Ticks { origin }
    }

    /// When a timer for `deadline` is to fire: then or, if it is not near, at the tick that follows.
    pub(super) fn next(&self, now: Instant, deadline: Instant) -> Instant {
        let left = deadline.saturating_duration_since(now);
        let tick = match left {
            _ if left < NEAR => return deadline,
            _ if left < FAR => SHORT,
            _ => LONG,
        };
        let since = deadline.saturating_duration_since(self.origin).as_nanos();
        let late = since.next_multiple_of(tick.as_nanos()) - since;
        // Less than a tick.
        let late = Duration::from_nanos(late as u64);
        deadline.checked_add(late).unwrap_or(deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_deadlines_share_ticks_and_near_ones_are_exact() {
        let origin = Instant::now();
        let ticks = Ticks::new(origin);
        let at = |micros| origin + Duration::from_micros(micros);
        let next = |now, deadline| ticks.next(at(now), at(deadline));
        // Near, due, and past.
        assert_eq!(next(0, 15_999), at(15_999));
        assert_eq!(next(50_000, 50_000), at(50_000));
        assert_eq!(next(50_000, 40_001), at(40_001));
        assert_eq!(next(40_000, 56_001), at(57_000));
        assert_eq!(next(40_000, 57_000), at(57_000));
        assert_eq!(next(40_000, 1_039_001), at(1_040_000));
        assert_eq!(next(0, 10_000_001), at(10_000_000 + 16_000));
        assert_eq!(next(0, 10_000_000), at(10_000_000));
    }

    /// A timer that fires is not before its deadline, and moving `now` on does not move it back.
    #[test]
    fn no_tick_is_early_or_more_than_one_late() {
        let origin = Instant::now();
        let ticks = Ticks::new(origin);
        for micros in (0..3_000_000).step_by(777) {
            let deadline = origin + Duration::from_micros(micros);
            let tick = ticks.next(origin, deadline);
            assert!(tick >= deadline && tick < deadline + LONG);
        }
    }
}
