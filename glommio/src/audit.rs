//! Counts what must never happen between a timer queue and those who wait for it.
//!
//! For the soak, with the feature `audit`. [`Timer`](crate::timer::Timer) looks at the clock before
//! it is done, so that an expiry that comes too early costs a poll and is not seen from outside.
//! Hence it is judged where it happens:
//!
//! ```text
//!   arm, re-arm ─────────▶ queue ◀──────── next expiry?    is what it answers kept?
//!                            │
//!                            ▼ a pass of the reactor       early? out of order? something left that is due?
//!                          waker ─────▶ poll of the timer  woken once for each expiry? due when it is polled?
//! ```
//!
//! The queues know nothing of it: `reactor/watched_queue.rs` tells what goes in and what comes out.
//! The counts are those of all executors of the process.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What was counted so far, in all executors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Timers that a queue has handed out as expired.
    pub expiries: u64,
    /// Of these, how many came before their deadline, and by how much at most.
    pub early: u64,
    pub early_max_ns: u64,
    /// Expiries that came after one with a later deadline, in one pass.
    pub unordered: u64,
    /// Calls of wakers for expiries.
    pub wakes: u64,
    /// Calls for which there was no expiry, and expiries for which there was no call.
    pub unmatched_wakes: u64,
    /// Passes: requests for what is due.
    pub passes: u64,
    /// Expiries that the queue had said would be later.
    pub unannounced: u64,
    /// Timers that were due and that a pass has left in the queue without saying so.
    pub left_behind: u64,
    /// Sleeps and slices, and how many of them were to last longer than until the next expiry.
    pub waits: u64,
    pub too_long: u64,
}

/// The counts now. Executors go on counting meanwhile.
pub fn counts() -> Counts {
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    Counts {
        expiries: count(&TALLY.expiries),
        early: count(&TALLY.early),
        early_max_ns: count(&TALLY.early_max_ns),
        unordered: count(&TALLY.unordered),
        wakes: count(&TALLY.wakes),
        unmatched_wakes: count(&TALLY.unmatched_wakes),
        passes: count(&TALLY.passes),
        unannounced: count(&TALLY.unannounced),
        left_behind: count(&TALLY.left_behind),
        waits: count(&TALLY.waits),
        too_long: count(&TALLY.too_long),
    }
}

/// Of one reactor.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// What the queue last said of its next expiry, if it was asked, or an earlier deadline armed
    /// since.
    announced: Option<Option<Instant>>,
    /// What was due by then, and armed before the last pass, has expired; if that says so.
    done_until: Option<Instant>,
    /// The last pass has left timers that are due.
    has_more: bool,
    passes: u64,
    /// Expiries whose waker was not called yet.
    to_wake: u64,
}

impl Audit {
    /// The queue was asked for its next expiry.
    pub(crate) fn announced(&mut self, next: Option<Instant>) {
        self.announced = Some(next);
    }

    /// A timer is set to `deadline`. How many passes there were before.
    pub(crate) fn armed(&mut self, deadline: Instant) -> u64 {
        if let Some(next) = self.announced
            && next.is_none_or(|next| deadline < next)
        {
            self.announced = Some(Some(deadline));
        }
        self.passes
    }

    /// A timer that was set to `deadline` after so many passes was still in the queue.
    pub(crate) fn found(&self, deadline: Instant, passes: u64) {
        let is_done = self.done_until.is_some_and(|until| deadline <= until);
        add(
            &TALLY.left_behind,
            u64::from(is_done && passes < self.passes),
        );
    }

    /// The queue was asked, at `clock`, for what is due at `now`, and has handed out timers with
    /// these deadlines. `next`: its next expiry after that.
    pub(crate) fn passed(
        &mut self,
        (now, clock): (Instant, Instant),
        deadlines: &[Instant],
        has_more: bool,
        next: Option<Instant>,
    ) {
        self.passes += 1;
        self.done_until = (!has_more).then_some(now);
        self.has_more = has_more;
        add(&TALLY.passes, 1);
        add(&TALLY.unmatched_wakes, self.to_wake);
        let mut last = None;
        for &deadline in deadlines {
            if deadline > clock {
                early(deadline - clock);
            }
            if last.is_some_and(|last| deadline < last) {
                add(&TALLY.unordered, 1);
            }
            last = Some(deadline);
            let announced = self.announced;
            if announced.is_some_and(|next| next.is_none_or(|next| deadline < next)) {
                add(&TALLY.unannounced, 1);
            }
        }
        self.to_wake = deadlines.len() as u64;
        add(&TALLY.expiries, self.to_wake);
        if !has_more && next.is_some_and(|next| next <= now) {
            add(&TALLY.left_behind, 1);
        }
    }

    /// A sleep or a slice is to end at `end`, and there is a timer that must be looked at by
    /// `limit`. Those that a pass has left wait for the tasks that it has woken.
    pub(crate) fn lasts_until(&self, end: Instant, limit: Instant) {
        if self.has_more {
            return;
        }
        add(&TALLY.waits, 1);
        add(&TALLY.too_long, u64::from(end > limit));
    }

    /// The waker of an expired timer is about to be called.
    pub(crate) fn waking(&mut self) {
        add(&TALLY.wakes, 1);
        match self.to_wake.checked_sub(1) {
            Some(left) => self.to_wake = left,
            None => add(&TALLY.unmatched_wakes, 1),
        }
    }
}

fn early(by: Duration) {
    add(&TALLY.early, 1);
    let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    TALLY.early_max_ns.fetch_max(ns, Ordering::Relaxed);
}

fn add(to: &AtomicU64, count: u64) {
    if count > 0 {
        to.fetch_add(count, Ordering::Relaxed);
    }
}

struct Tally {
    expiries: AtomicU64,
    early: AtomicU64,
    early_max_ns: AtomicU64,
    unordered: AtomicU64,
    wakes: AtomicU64,
    unmatched_wakes: AtomicU64,
    passes: AtomicU64,
    unannounced: AtomicU64,
    left_behind: AtomicU64,
    waits: AtomicU64,
    too_long: AtomicU64,
}

static TALLY: Tally = Tally {
    expiries: AtomicU64::new(0),
    early: AtomicU64::new(0),
    early_max_ns: AtomicU64::new(0),
    unordered: AtomicU64::new(0),
    wakes: AtomicU64::new(0),
    unmatched_wakes: AtomicU64::new(0),
    passes: AtomicU64::new(0),
    unannounced: AtomicU64::new(0),
    left_behind: AtomicU64::new(0),
    waits: AtomicU64::new(0),
    too_long: AtomicU64::new(0),
};
