//! When the worker is stopped, and for how long: drawn from the seed.

use std::ops::Range;
use std::time::Duration;

use support::generator::{Draw, Rng, stream};

/// One stall after the other.
#[derive(Clone, Debug)]
pub(crate) struct Stalls {
    rng: Rng,
    /// Since the start of the run.
    window: Range<Duration>,
    reached: Duration,
}

/// Times since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) from: Duration,
    pub(crate) lasts: Duration,
}

impl Stalls {
    /// Of a run of `duration`, which is left alone at its beginning and its end.
    pub(crate) fn new(seed: u64, duration: Duration) -> Self {
        let begin = ALONE_FIRST.min(duration / 8);
        let end = duration - ALONE_LAST.min(duration / 4);
        Stalls {
            rng: stream(seed, STALL_STREAM),
            window: begin..end,
            reached: begin,
        }
    }

    /// The next stall of a run that has run for so long: not before `ran`, and over in time.
    pub(crate) fn after(&mut self, ran: Duration) -> Option<Stall> {
        // However short the run is, two gaps of a third and two stalls of an eighth fit in.
        let window = self.window.end - self.window.start;
        let gap_max = GAP.end.min(window / 3);
        let gap = self.rng.uniform(GAP.start.min(gap_max / 2), gap_max);
        let lasts_max = LASTS.end.min(window / 8);
        let lasts = self
            .rng
            .log_uniform(LASTS.start.min(lasts_max / 2), lasts_max);
        let from = (self.reached + gap).max(ran);
        self.reached = from + lasts;
        (self.reached <= self.window.end).then_some(Stall { from, lasts })
    }
}

const GAP: Range<Duration> = Duration::from_secs(3)..Duration::from_secs(8);
const LASTS: Range<Duration> = Duration::from_millis(20)..Duration::from_millis(400);

/// The executors are starting.
const ALONE_FIRST: Duration = Duration::from_secs(1);

/// Every lag is judged when the run ends, so the word of the last stall must have come by then.
const ALONE_LAST: Duration = Duration::from_secs(2);

/// Apart from whatever else draws from the same seed.
const STALL_STREAM: u64 = u64::MAX - 8;

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: Duration = Duration::ZERO;

    fn all(seed: u64, duration: Duration) -> Vec<Stall> {
        let mut stalls = Stalls::new(seed, duration);
        std::iter::from_fn(|| stalls.after(ZERO)).collect()
    }

    #[test]
    fn every_run_has_two_stalls_and_none_at_its_ends() {
        for ms in [500, 1_000, 2_000, 4_000, 15_000, 300_000] {
            for seed in 0..200 {
                let duration = Duration::from_millis(ms);
                let stalls = all(seed, duration);
                let told = format!("seed {seed}, {duration:?}: {stalls:?}");
                assert!(stalls.len() >= 2, "{told}");
                let (begin, end) = (duration / 8, duration - duration / 4);
                let begin = begin.min(Duration::from_secs(1));
                let end = end.max(duration.saturating_sub(Duration::from_secs(2)));
                assert!(stalls[0].from >= begin, "{told}");
                for stall in &stalls {
                    assert!(stall.from + stall.lasts <= end, "{told}");
                    assert!(stall.lasts <= LASTS.end && !stall.lasts.is_zero(), "{told}");
                }
                for pair in stalls.windows(2) {
                    assert!(pair[0].from + pair[0].lasts < pair[1].from, "{told}");
                }
            }
        }
    }

    #[test]
    fn a_late_one_is_made_at_once_if_there_is_time() {
        let second = Duration::from_secs(1);
        let mut stalls = Stalls::new(1, 60 * second);
        let late = stalls.after(40 * second).expect("there is time");
        assert_eq!(late.from, 40 * second);
        assert!(
            stalls
                .after(ZERO)
                .is_some_and(|next| next.from > late.from + late.lasts)
        );
        assert_eq!(stalls.after(58 * second), None);
    }

    #[test]
    fn the_seed_repeats_them() {
        let of = |seed| all(seed, Duration::from_secs(60));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }
}
