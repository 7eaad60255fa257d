//! Turns in the middle of which the thread lost its CPU.
//!
//! A queue is charged for the time that its turn took. On a busy machine, in a container that is
//! throttled, or in a virtual machine that is paused, part of that may be time in which the thread
//! did not run at all; a queue with a tenth of the shares would pay for it with nine times as much
//! waiting. So long turns are looked at closer:
//!
//! - time in which the thread was runnable but had no CPU is not charged;
//! - while the thread waited of its own accord, in a system call that blocks, the queue kept it
//!   from the others: that is charged. The thread of a process that is stopped by a signal looks just
//!   the same; what that can cost is bounded by the most that a turn is charged.
//!
//! Where the time on the CPU is not told, as in a simulation, turns are charged as they are.
//!
//! Cost: a comparison for each turn for which others wait, and two system calls in a millisecond of
//! such turns.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::sys::thread_time::ThreadTime;

/// Turns that are shorter are charged as they are.
const LONG_TURN: Duration = Duration::from_millis(1);

/// When the thread's time was last looked at, and what it was.
#[derive(Debug, Default)]
pub(super) struct StealTime {
    seen: Cell<Option<(Instant, ThreadTime)>>,
}

impl StealTime {
    /// A turn begins for which others wait.
    #[inline]
    pub(super) fn begin_turn(&self, now: Instant) {
        let is_recent = |at| now.saturating_duration_since(at) < LONG_TURN;
        if !self.seen.get().is_some_and(|(at, _)| is_recent(at)) {
            self.look(now);
        }
    }

    /// How much of a turn counts that took `ran` and ends now.
    #[inline]
    pub(super) fn counted(&self, ran: Duration, now: Instant) -> Duration {
        if ran < LONG_TURN {
            return ran;
        }
        self.counted_of_long(ran, now)
    }

    fn counted_of_long(&self, ran: Duration, now: Instant) -> Duration {
        let Some((at, before)) = self.seen.get() else {
            return ran;
        };
        let Some(after) = self.look(now) else {
            return ran;
        };
        let off_cpu = now
            .saturating_duration_since(at)
            .saturating_sub(after.on_cpu.saturating_sub(before.on_cpu));
        counted(ran, off_cpu, after.waits != before.waits)
    }

    #[cold]
    fn look(&self, now: Instant) -> Option<ThreadTime> {
        let time = ThreadTime::now();
        self.seen.set(time.map(|time| (now, time)));
        time
    }
}

/// How much of a turn of `ran` counts in which the thread was without a CPU for `off_cpu`.
fn counted(ran: Duration, off_cpu: Duration, has_waited: bool) -> Duration {
    if has_waited {
        return ran;
    }
    // The last look may have been a little before the turn.
    ran - off_cpu.min(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_was_taken_away_does_not_count() {
        assert_eq!(counted(30 * MS, Duration::ZERO, false), 30 * MS);
        assert_eq!(counted(30 * MS, 20 * MS, false), 10 * MS);
        assert_eq!(counted(30 * MS, 31 * MS, false), Duration::ZERO);
        assert_eq!(counted(30 * MS, 20 * MS, true), 30 * MS, "it waited");
    }

    #[test]
    fn a_turn_that_computes_counts_whole() {
        let stolen = StealTime::default();
        let begun = Instant::now();
        stolen.begin_turn(begun);
        let before = ThreadTime::now().expect("tests may ask");
        let used = || {
            let time = ThreadTime::now().expect("tests may ask");
            time.on_cpu - before.on_cpu
        };
        while used() < 20 * MS {
            std::hint::spin_loop();
        }
        let now = Instant::now();
        let counted = stolen.counted(now - begun, now);
        assert!(counted >= 20 * MS && counted <= now - begun, "{counted:?}");
    }

    #[test]
    fn a_turn_that_sleeps_counts_whole() {
        let stolen = StealTime::default();
        let begun = Instant::now();
        stolen.begin_turn(begun);
        std::thread::sleep(20 * MS);
        let now = Instant::now();
        assert_eq!(stolen.counted(now - begun, now), now - begun);
    }

    #[test]
    fn short_turns_count_as_they_are() {
        let stolen = StealTime::default();
        let now = Instant::now();
        assert_eq!(stolen.counted(MS / 2, now), MS / 2);
        assert!(stolen.seen.get().is_none(), "the clock was not read");
    }
}
