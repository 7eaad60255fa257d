//! What is known of the time without a look at the clock.
//!
//! A turn reads the clock. Until the next one, that reading says of nearly all deadlines whether
//! they have passed: those before it have, and those far behind it have not, for a round is short.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::clock;
use crate::tuning;

/// Longer than rounds last where tasks do not let go of the thread.
pub(super) const LONG_ROUND: Duration = Duration::from_secs(1);

/// When the running round began; nothing between rounds, and outside of the executor.
#[derive(Debug, Default)]
pub(super) struct TurnTime(Cell<Option<(Instant, Instant)>>);

impl TurnTime {
    pub(super) fn set(&self, now: Instant) {
        self.0.set(Some((now, now + tuning::get().turn_time)));
    }

    /// Time goes by without being looked at.
    pub(super) fn forget(&self) {
        self.0.set(None);
    }

    /// Whether a round is running.
    pub(super) fn is_known(&self) -> bool {
        self.0.get().is_some()
    }

    /// The reading of a running round, and how far it reaches.
    #[inline]
    fn known(&self) -> Option<(Instant, Instant)> {
        if tuning::get().turn_time.is_zero() {
            None
        } else {
            self.0.get()
        }
    }

    /// Whether `deadline` has passed.
    #[inline]
    pub(super) fn is_past(&self, deadline: Instant) -> bool {
        match self.known() {
            Some((start, _)) if deadline <= start => true,
            _ => deadline <= clock::now(),
        }
    }

    /// Whether `deadline` has passed, or is at least too near to be sure that it has not. False in
    /// a round that lasts for too long may be wrong: a caller that relies on it is told by the
    /// end of the round.
    #[inline]
    pub(super) fn may_be_past(&self, deadline: Instant) -> bool {
        match self.known() {
            Some((_, end)) => deadline <= end,
            None => true,
        }
    }

    /// Whether `deadline` is so far off that also a round that is too long has not reached it yet.
    pub(super) fn is_far(&self, deadline: Instant) -> bool {
        self.known()
            .is_some_and(|(start, _)| deadline > start + LONG_ROUND)
    }
}

/// `now + wait`, or an instant so far off (584 years) that the queues treat it as never.
pub(crate) fn deadline_after(now: Instant, wait: Duration) -> Instant {
    const NEVER: Duration = Duration::from_nanos(u64::MAX);
    now.checked_add(wait.min(NEVER))
        .expect("a monotonic clock that counts from boot has room for 584 years")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = tuning::DEFAULT.turn_time;

    /// Keeps the thread busy until `instant` is past.
    fn pass(instant: Instant) {
        while Instant::now() <= instant {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn a_deadline_has_passed_when_the_clock_says_so() {
        let time = TurnTime::default();
        let start = Instant::now();
        let (soon, later) = (start + Duration::from_millis(1), start + ROUND * 2);
        for is_known in [false, true] {
            if is_known {
                time.set(start);
            }
            assert!(time.is_past(start));
            assert!(!time.is_past(Instant::now() + ROUND));
        }
        for deadline in [soon, later] {
            pass(deadline);
            assert!(time.is_past(deadline), "however long the round");
        }
    }

    #[test]
    fn what_the_turn_has_seen_pass_needs_no_clock() {
        let time = TurnTime::default();
        let ahead = Instant::now() + Duration::from_secs(3600);
        time.set(ahead);
        assert!(time.is_past(ahead));
        time.forget();
        assert!(!time.is_past(ahead));
    }

    #[test]
    fn what_is_far_from_the_round_has_not_passed() {
        let time = TurnTime::default();
        let start = Instant::now();
        assert!(time.may_be_past(start + ROUND * 2), "nothing is known");
        time.set(start);
        assert!(time.may_be_past(start) && time.may_be_past(start + ROUND));
        assert!(!time.may_be_past(start + ROUND + Duration::from_nanos(1)));
        assert!(time.is_far(start + LONG_ROUND + Duration::from_nanos(1)));
        assert!(!time.is_far(start + LONG_ROUND) && !time.is_far(start + ROUND * 2));
        time.forget();
        assert!(time.may_be_past(start + ROUND * 2));
        assert!(!time.is_far(start + 2 * LONG_ROUND), "nothing is known");
    }
}
