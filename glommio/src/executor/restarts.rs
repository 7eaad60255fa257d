//! How often a shard may be restarted: pure, time comes in.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// At most this many restarts within any minute.
#[derive(Debug)]
pub(super) struct RestartLimit {
    per_minute: usize,
    /// Those of the last minute, at most `per_minute`.
    recent: VecDeque<Instant>,
}

impl RestartLimit {
    pub(super) fn new(per_minute: u32) -> Self {
        RestartLimit {
            per_minute: usize::try_from(per_minute).unwrap_or(usize::MAX),
            recent: VecDeque::new(),
        }
    }

    /// Whether there may be a restart now. If so, it counts.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        self.recent
            .retain(|&at| now.saturating_duration_since(at) < MINUTE);
        let is_allowed = self.recent.len() < self.per_minute;
        if is_allowed {
            self.recent.push_back(now);
        }
        is_allowed
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_has_more_restarts_than_allowed() {
        let start = Instant::now();
        let mut limit = RestartLimit::new(2);
        let mut allows = |seconds| limit.allows(start + Duration::from_secs(seconds));
        assert!(allows(0) && allows(30));
        assert!(!allows(30) && !allows(59), "two in the last minute");
        assert!(allows(60), "the first is a minute old");
        assert!(!allows(89) && allows(90));
        assert!(allows(1000) && allows(1000) && !allows(1000));
    }

    #[test]
    fn a_limit_of_zero_allows_none() {
        assert!(!RestartLimit::new(0).allows(Instant::now()));
    }
}
