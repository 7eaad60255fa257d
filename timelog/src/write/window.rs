//! Windows: where segments prefer to be cut.

use crate::Ts;
use crate::config::Limits;

/// Windows of one size from an origin. A preference and no structure, so the size may change at any
/// time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    ticks: i64,
    origin: Ts,
    /// The smoothed length of a window that would hold the goal.
    ideal: f64,
}

impl Windows {
    pub fn new(limits: &Limits) -> Self {
        Self {
            ticks: limits.window_ticks,
            origin: limits.window_origin,
            ideal: limits.window_ticks as f64,
        }
    }

    pub fn ticks(self) -> i64 {
        self.ticks
    }

    /// The last timestamp of the window of `ts`.
    pub fn last(self, ts: Ts) -> Ts {
        // The difference of two timestamps need not fit into one.
        let (origin, ticks) = (i128::from(self.origin), i128::from(self.ticks));
        let index = (i128::from(ts) - origin).div_euclid(ticks);
        let last = origin + (index + 1) * ticks - 1;
        Ts::try_from(last).unwrap_or(Ts::MAX)
    }

    /// Follows the data after a flush of `rows` from `first` to `last`: a moving average, and a
    /// change only by more than a quarter, since each one costs segments that fit no window.
    pub fn adapt(&mut self, limits: &Limits, rows: usize, first: Ts, last: Ts) {
        let Some(goal) = limits.window_rows else {
            return;
        };
        if rows == 0 {
            return;
        }
        let span = (i128::from(last) - i128::from(first) + 1) as f64;
        self.ideal += (span * goal as f64 / rows as f64 - self.ideal) / 4.0;
        if (self.ideal - self.ticks as f64).abs() > self.ticks as f64 / 4.0 {
            // The cast saturates.
            self.ticks = (self.ideal as i64).clamp(limits.window_ticks, limits.window_max_ticks);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn windows(window: crate::Window, origin: Ts) -> (Windows, Limits) {
        let limits = crate::Config::default()
            .window(window)
            .window_origin(origin)
            .limits(16)
            .unwrap();
        (Windows::new(&limits), limits)
    }

    #[test]
    fn windows_end_before_the_next() {
        let (windows, _) = windows(crate::Window::Fixed(Duration::from_nanos(7)), 2);
        assert_eq!([1, 2, 8, 9].map(|ts| windows.last(ts)), [1, 8, 8, 15]);
        assert_eq!(windows.last(Ts::MAX), Ts::MAX);
        assert!((Ts::MIN..Ts::MIN + 7).contains(&windows.last(Ts::MIN)));
    }

    #[test]
    fn windows_follow_the_data() {
        let (min, max) = (Duration::from_nanos(100), Duration::from_micros(1));
        let (mut windows, limits) = windows(crate::Window::Adaptive { rows: 10, min, max }, 0);
        for _ in 0..20 {
            windows.adapt(&limits, 100, 0, 4_999);
        }
        assert!(
            (400..=600).contains(&windows.ticks()),
            "{}",
            windows.ticks()
        );
        for _ in 0..40 {
            windows.adapt(&limits, 1, Ts::MIN, Ts::MAX);
        }
        assert_eq!(windows.ticks(), 1_000);
    }
}
