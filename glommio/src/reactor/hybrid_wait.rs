//! How long to sleep before a polled device is asked.
//!
//! ```text
//!   handed over ──── sleep ────▶ half the usual time ──── ask, ask, ask ────▶ completed
//! ```
//!
//! A device that is polled says nothing by itself, so an idle thread asks it until it has the
//! answer, with all of its processor's time. But no request is done much sooner than those before
//! it were. So the thread sleeps first, for half the time that a request takes; then it asks.
//!
//! The kernel has the same idea (`IORING_SETUP_HYBRID_IOPOLL`, 6.13), and sleeps in the call that
//! asks the device, once for each request, whatever else there is to do: tasks, timers and sockets
//! would wait meanwhile. The sleep here is that of an idle executor, which all of them end.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::tuning;

/// No polled device takes as long, unless something is wrong with it. Bounds what a single slow
/// request costs the next one.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// A device that has become slower is believed bit by bit, one that has become faster at once.
const SLOWNESS: u32 = 16;

/// What is known of the requests to polled devices.
#[derive(Debug, Default)]
pub(super) struct HybridWait {
    /// How long one takes at least, if any was seen.
    usual: Cell<Option<Duration>>,
    /// When the device got the oldest of those that it has, until the first of them is done.
    since: Cell<Option<Instant>>,
}

impl HybridWait {
    /// The device has got requests, next to others or not.
    pub(super) fn handed_over(&self, now: Instant, has_others: bool) {
        if !has_others {
            self.since.set(Some(now));
        }
    }

    /// Some are done.
    pub(super) fn completed(&self, now: Instant) {
        let Some(since) = self.since.take() else {
            return;
        };
        let took = now.saturating_duration_since(since);
        let usual = match self.usual.get() {
            Some(usual) if took > usual => usual + (took - usual) / SLOWNESS,
            _ => took,
        };
        self.usual.set(Some(usual));
    }

    /// Until when there is no use in asking. `None` if there may be now.
    pub(super) fn sleep_end(&self, now: Instant) -> Option<Instant> {
        let (since, usual) = self.since.get().zip(self.usual.get())?;
        let end = since + (usual / 2).min(LONGEST_SLEEP);
        (end.saturating_duration_since(now) >= tuning::get().shortest_device_sleep).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    fn known(took: Duration) -> (HybridWait, Instant) {
        let wait = HybridWait::default();
        let start = Instant::now();
        wait.handed_over(start, false);
        assert_eq!(wait.sleep_end(start), None, "nothing is known yet");
        wait.completed(start + took);
        (wait, start + took)
    }

    #[test]
    fn half_of_the_usual_time_is_slept_and_the_rest_is_asked() {
        let (wait, now) = known(us(80));
        assert_eq!(wait.sleep_end(now), None, "nothing is under way");
        wait.handed_over(now, false);
        assert_eq!(wait.sleep_end(now), Some(now + us(40)));
        // Woken early by something else: what is left.
        assert_eq!(wait.sleep_end(now + us(30)), Some(now + us(40)));
        assert_eq!(wait.sleep_end(now + us(36)), None, "it is not worth it");
        assert_eq!(wait.sleep_end(now + us(41)), None);
    }

    #[test]
    fn fast_devices_are_asked_at_once_and_slow_ones_soon() {
        let (wait, now) = known(us(8));
        wait.handed_over(now, false);
        assert_eq!(wait.sleep_end(now), None);
        let (wait, now) = known(Duration::from_secs(1));
        wait.handed_over(now, false);
        assert_eq!(wait.sleep_end(now), Some(now + LONGEST_SLEEP));
    }

    #[test]
    fn a_faster_device_is_believed_at_once_and_a_slower_one_bit_by_bit() {
        let (wait, mut now) = known(us(100));
        let mut take = |took| {
            wait.handed_over(now, false);
            let end = wait.sleep_end(now).expect("it is slow enough");
            let slept = end - now;
            now += took;
            wait.completed(now);
            slept
        };
        assert_eq!(take(us(20)), us(50));
        assert_eq!(take(us(180)), us(10));
        assert_eq!(take(us(180)), us(15));
    }

    #[test]
    fn further_requests_do_not_put_off_the_first() {
        let (wait, now) = known(us(80));
        wait.handed_over(now, false);
        wait.handed_over(now + us(20), true);
        assert_eq!(wait.sleep_end(now + us(20)), Some(now + us(40)));
        wait.completed(now + us(80));
        assert_eq!(wait.sleep_end(now + us(80)), None, "the next may be done");
        wait.handed_over(now + us(81), true);
        assert_eq!(wait.sleep_end(now + us(81)), None);
    }
}
