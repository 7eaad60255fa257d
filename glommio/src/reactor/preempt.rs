//! When the running tasks should give the thread back.
//!
//! ```text
//!            20 µs have passed              slice over, timer due,
//!  Young ─────────────────────▶ Settled ──────────────────────────▶ Due
//!    │  ▲                          │        completion, (re)ap
//!    │  └──────────────────────────┘
//!    │    something was submitted, or an earlier deadline came up
//!    └──────────────────────────────────────────────────────────────▶ Due
//!         the clock says that the slice is over
//! ```
//!
//! `need_preempt` must be a few loads, yet turn true without a system call of the running task,
//! also in a loop that never switches tasks. So the kernel has to post the end of the slice: a
//! timeout in the ring, whose firing shows in the ring's shared flags. Arming it costs an `enter`,
//! which short rounds (a message handed on, then park) must not pay. A round therefore starts
//! *young*: for its first [`SETTLE`] the clock is looked at on each check; only a round that lasts
//! arms the timeout, hands over what was submitted meanwhile, and from then on relies on plain
//! loads.
//!
//! While a round is young, completions do not preempt: that is the minimum slice, without which
//! every completion would end the round of the running task.
//!
//! A round of many tasks that were just woken is *hurried*: each of them is asked to stop
//! [`SETTLE`] after it began, so that none delays the others by a whole slice. The round itself
//! goes on until they have run, for up to [`HURRIED`]: with fewer rounds, the kernel is entered
//! less often, and gives more at a time.
//!
//! The executor asks after every poll. Notifications and the ring's flags are loads; the clock of a
//! young round is read after the first poll, and from then on after a *stretch* of up to
//! [`LONGEST_STRETCH`] polls: as many as are over in [`PACE`], going by the one before. So a
//! deadline that passes in a young round is noticed some microseconds late, unless a stretch that
//! began with short polls goes on with long ones. A reading that finds one like that has each of
//! the next [`CAREFUL`] polls followed by a reading: where it happens in one round, it would happen
//! in the next.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::Reactor;
use super::user_data::{IGNORED, PREEMPTION};
use crate::planted::planted;
use crate::ring::{TimeoutCell, Wait};

/// How long a round runs before the kernel is asked to watch it, and the longest that a submission
/// waits in user space beside running tasks.
pub(super) const SETTLE: Duration = Duration::from_micros(20);

/// How long a stretch of polls may take, going by the one before it, that shares a reading of the
/// clock.
const PACE: Duration = Duration::from_micros(4);

/// The same in a hurried round without a deadline in sight.
const HURRIED_PACE: Duration = Duration::from_micros(16);

/// How long a hurried round may last, beyond which it does not wait for the tasks that were woken.
pub(super) const HURRIED: Duration = Duration::from_micros(100);

/// The most polls that share a reading.
const LONGEST_STRETCH: u32 = 8;

/// Readings, each after a single poll, that follow upon a stretch which turned out to be long.
const CAREFUL: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Young,
    Settled,
    Due,
}

#[derive(Debug)]
pub(super) struct Preempt {
    phase: Cell<Phase>,
    /// Start of the round; base of the slice.
    round_start: Cell<Instant>,
    /// A young round settles at the first check after this.
    settle_at: Cell<Instant>,
    /// The end of the slice or the earliest user timer, whichever comes first.
    slice_end: Cell<Instant>,
    /// When the running task is asked to stop, in a hurried round.
    hurried: Cell<Option<Instant>>,
    /// When the kernel's timeout expires, if it is armed.
    armed_at: Cell<Option<Instant>>,
    /// When the clock was last read between two polls, or the round began.
    read_at: Cell<Instant>,
    /// Polls from one reading of a young round to the next, and how many of them are still to
    /// come.
    stretch: Cell<u32>,
    stretch_left: Cell<u32>,
    /// Readings until polls may share one again.
    careful: Cell<u32>,
}

impl Preempt {
    pub(super) fn new(now: Instant) -> Self {
        Preempt {
            phase: Cell::new(Phase::Young),
            round_start: Cell::new(now),
            settle_at: Cell::new(now),
            slice_end: Cell::new(now),
            hurried: Cell::new(None),
            armed_at: Cell::new(None),
            read_at: Cell::new(now),
            stretch: Cell::new(1),
            stretch_left: Cell::new(1),
            careful: Cell::new(0),
        }
    }

    /// Starts a round that may last until `slice_end`.
    pub(super) fn begin_round(&self, now: Instant, slice_end: Instant) {
        self.be_young();
        self.read_at.set(now);
        self.round_start.set(now);
        self.settle_at.set(now + SETTLE);
        self.slice_end.set(slice_end);
        self.hurried.set(None);
    }

    /// Has the clock read after the next poll.
    fn be_young(&self) {
        self.phase.set(Phase::Young);
        self.stretch.set(1);
        self.stretch_left.set(1);
    }

    /// A poll of a young round is over: is it time to read the clock?
    #[inline]
    pub(super) fn ends_stretch(&self) -> bool {
        let left = self.stretch_left.get() - 1;
        self.stretch_left.set(left);
        left == 0
    }

    /// The clock was read at the end of a stretch, and says `now`: decides on the next.
    pub(super) fn begin_stretch(&self, now: Instant) {
        let took = now.saturating_duration_since(self.read_at.replace(now));
        let polls = self.stretch.get();
        if polls > 1 && took > SETTLE {
            self.careful.set(CAREFUL);
        }
        let pace = match self.hurried.get() {
            // The first timer, too, is far off: all that is to be noticed is the end of the round.
            Some(_) if self.slice_end.get() > now + HURRIED => HURRIED_PACE,
            _ => PACE,
        };
        let next = if self.careful.get() > 0 {
            self.careful.update(|readings| readings - 1);
            1
        } else if took > pace {
            1
        } else if took > pace / 2 {
            polls
        } else {
            LONGEST_STRETCH.min(2 * polls)
        };
        self.stretch.set(next);
        self.stretch_left.set(next);
    }

    pub(super) fn round_start(&self) -> Instant {
        self.round_start.get()
    }

    pub(super) fn slice_end(&self) -> Instant {
        self.slice_end.get()
    }

    /// The round must not outlast `deadline`. One that has passed ends the round now: what went
    /// before was within its slice.
    #[inline]
    fn limit(&self, deadline: Instant) {
        if deadline < self.slice_end.get() {
            let end = deadline.max(Instant::now());
            if end >= self.slice_end.get() {
                return;
            }
            self.slice_end.set(end);
            // The stretch was chosen for a later one.
            self.stretch_left.set(1);
            if self.phase.get() == Phase::Settled {
                // The timeout stands too late. `settle_at` has passed, so the next check moves it.
                self.be_young();
            }
        }
    }

    /// The round is a hurried one, and a task begins to run.
    fn hurry(&self, now: Instant) {
        self.hurried.set(Some(now + SETTLE));
    }

    /// Something was submitted: a settled round hands it over within [`SETTLE`].
    #[inline]
    pub(super) fn submitted(&self) {
        if self.phase.get() == Phase::Settled {
            let now = Instant::now();
            self.be_young();
            self.read_at.set(now);
            self.settle_at.set(now + SETTLE);
        }
    }

    /// The timeout has completed: it has expired, or was removed. Reaped in the middle of a round,
    /// the event must not be lost with the completion.
    pub(super) fn timeout_completed(&self) {
        self.armed_at.set(None);
        self.phase.set(Phase::Due);
    }

    /// Nothing is known of the timeout any more.
    pub(super) fn timeout_lost(&self) {
        self.armed_at.set(None);
    }
}

#[cfg(test)]
impl Preempt {
    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(super) fn armed_at(&self) -> Option<Instant> {
        self.armed_at.get()
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurried.get().is_some()
    }
}

impl Reactor {
    /// Whether the running task should give the thread back.
    #[inline]
    pub(crate) fn need_preempt(&self) -> bool {
        if self.notifier.is_notified() {
            return true;
        }
        match self.preempt.phase.get() {
            Phase::Young => match self.preempt.hurried.get() {
                Some(task_end) => Instant::now() >= task_end.min(self.preempt.slice_end()),
                None => self.is_over_at(Instant::now()),
            },
            Phase::Settled => self.ring.work_pending(),
            Phase::Due => true,
        }
    }

    /// The same between two polls, of which several in a young round may share a reading of the
    /// clock. `woken_wait` tells whether tasks are left that were woken before the round began:
    /// a hurried one waits for them.
    #[inline]
    pub(crate) fn ends_round(&self, woken_wait: bool) -> bool {
        if self.notifier.is_notified() {
            return true;
        }
        match self.preempt.phase.get() {
            Phase::Young => self.ends_young_round(woken_wait),
            Phase::Settled => self.ring.work_pending(),
            Phase::Due => true,
        }
    }

    fn ends_young_round(&self, woken_wait: bool) -> bool {
        let goes_on = woken_wait && self.preempt.hurried.get().is_some();
        if self.preempt.ends_stretch() {
            let now = Instant::now();
            self.preempt.begin_stretch(now);
            return match goes_on {
                true => self.ends_hurried_round(now),
                false => self.is_over_at(now),
            };
        }
        // What has completed ends the round if it is not so young any more.
        !goes_on && self.ring.work_pending() && self.is_over_at(Instant::now())
    }

    /// The same in a hurried round, while tasks wait that were woken before it.
    fn ends_hurried_round(&self, now: Instant) -> bool {
        let end = self.preempt.round_start() + HURRIED;
        if now >= end.min(self.preempt.slice_end()) {
            self.preempt.phase.set(Phase::Due);
            return true;
        }
        self.preempt.hurry(now);
        false
    }

    /// Starts a round at `now` that may last for `slice`, or until the first timer is due.
    pub(super) fn begin_round(&self, now: Instant, slice: Duration) {
        let slice_end = now.checked_add(slice.max(SETTLE));
        let first_timer = match self.timers.has_more_due() {
            // Those left over by the last pass are due, but the tasks just woken go first: the
            // round is as short as a round can be. It must not last longer, for a pass
            // may also reach its bound without having woken any.
            true => Some(now + SETTLE),
            false => self.timers.latest_of_first(),
        };
        let end = match (slice_end, first_timer) {
            (Some(slice), Some(timer)) => slice.min(timer.max(now)),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => super::deadline_after(now, Duration::MAX),
        };
        #[cfg(feature = "audit")]
        self.timers.audit_slice(end);
        self.preempt.begin_round(now, end);
    }

    /// Before the first task of a round: its slice is `length`, not what the turn was told.
    pub(crate) fn restart_round(&self, length: Duration) {
        self.begin_round(self.preempt.round_start(), length);
    }

    /// Ends the slice no later than `length` after its start, but no sooner than slices end.
    pub(crate) fn limit_slice(&self, length: Duration) {
        if let Some(end) = self.preempt.round_start().checked_add(length.max(SETTLE)) {
            self.preempt.limit(end);
        }
    }

    /// Before the first task of a round: several were just woken, and none is to delay the others.
    pub(crate) fn hurry(&self) {
        self.preempt.hurry(self.preempt.round_start());
    }

    /// A timer was armed for `deadline`: tasks must not run past it for longer than the slack.
    #[inline]
    pub(super) fn limit_by_timer(&self, deadline: Instant) {
        // Nearly all timers expire after the slice: for them this is one comparison.
        if deadline < self.preempt.slice_end() && !planted!("no_preempt") {
            self.preempt.limit(self.timers.latest(deadline));
        }
    }

    /// Whether a young round is over; settles it when it is time to.
    fn is_over_at(&self, now: Instant) -> bool {
        if now >= self.preempt.slice_end() {
            self.preempt.phase.set(Phase::Due);
            return true;
        }
        if now < self.preempt.settle_at.get() {
            return false;
        }
        if self.preempt.hurried.get().is_some() {
            self.preempt.phase.set(Phase::Due);
            return true;
        }
        self.settle();
        self.preempt.phase.get() == Phase::Due || self.ring.work_pending()
    }

    /// The round lasts: hands the kernel what waits, and has it post the end of the slice.
    fn settle(&self) {
        let end = self.preempt.slice_end();
        self.preempt.phase.set(Phase::Settled);
        match self.preempt.armed_at.replace(Some(end)) {
            None => self.push(|| self.ring.push_timeout(TimeoutCell::Slice, end, PREEMPTION)),
            Some(armed) if armed != end => {
                self.push(|| {
                    self.ring
                        .push_timeout_move(TimeoutCell::Slice, end, PREEMPTION, IGNORED)
                });
            }
            Some(_) => {}
        }
        self.hand_over();
        // The move of the timeout completes at once, and is no reason to stop. An operation is.
        self.reap();
        if self.has_woken.get() {
            self.preempt.phase.set(Phase::Due);
        }
    }

    /// Removes the slice's timeout and takes its completion, which would end a sleep otherwise.
    pub(super) fn disarm_slice_timeout(&self) {
        if self.preempt.armed_at.get().is_none() {
            return;
        }
        self.push(|| self.ring.push_timeout_removal(PREEMPTION, IGNORED));
        // Expired or removed, it completes: the wait is for the kernel's task work only.
        while self.preempt.armed_at.get().is_some() {
            self.enter(Wait::Forever);
            self.reap();
        }
    }
}
