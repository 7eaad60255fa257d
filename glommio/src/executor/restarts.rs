//! How often and how soon a shard may be restarted: pure, time comes in.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// At most so many restarts within any minute, each after a pause: one that is due to something that
/// passes, such as a database that is away, is not used up before it has passed.
#[derive(Debug)]
pub(super) struct RestartPace {
    per_minute: usize,
    /// Those of the last minute, at most `per_minute`.
    recent: VecDeque<Instant>,
    /// The last pause.
    pause: Duration,
}

impl RestartPace {
    pub(super) fn new(per_minute: u32) -> Self {
        RestartPace {
            per_minute: usize::try_from(per_minute).unwrap_or(usize::MAX),
            recent: VecDeque::new(),
            pause: Duration::ZERO,
        }
    }

    /// How long to wait with the restart of a shard that has died now, after it has `lived` for so
    /// long; it counts. `None` if there may be none.
    pub(super) fn next(&mut self, lived: Duration, now: Instant) -> Option<Duration> {
        self.recent
            .retain(|&at| now.saturating_duration_since(at) < MINUTE);
        if self.recent.len() >= self.per_minute {
            return None;
        }
        self.recent.push_back(now);
        if lived >= LONGEST_PAUSE {
            self.pause = Duration::ZERO;
        }
        self.pause = (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        Some(self.pause)
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_has_more_restarts_than_allowed() {
        let start = Instant::now();
        let mut pace = RestartPace::new(2);
        let mut allows = |seconds| {
            let now = start + Duration::from_secs(seconds);
            pace.next(Duration::ZERO, now).is_some()
        };
        assert!(allows(0) && allows(30));
        assert!(!allows(30) && !allows(59), "two in the last minute");
        assert!(allows(60), "the first is a minute old");
        assert!(!allows(89) && allows(90));
        assert!(allows(1000) && allows(1000) && !allows(1000));
    }

    #[test]
    fn a_limit_of_zero_allows_none() {
        let mut pace = RestartPace::new(0);
        assert_eq!(pace.next(Duration::ZERO, Instant::now()), None);
    }

    #[test]
    fn pauses_double_up_to_a_second_until_a_start_has_lived() {
        let mut pace = RestartPace::new(u32::MAX);
        let mut millis = |lived| {
            let lived = Duration::from_millis(lived);
            let pause = pace.next(lived, Instant::now());
            pause.expect("there is no limit").as_millis()
        };
        let pauses = [(); 9].map(|()| millis(0));
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!([999, 1000, 0].map(millis), [1000, 10, 20]);
    }
}
