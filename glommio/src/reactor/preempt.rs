//! When the running tasks should give the thread back.
//!
//! ```text
//!            20 µs have passed              slice over, timer due,
//!  Unarmed ────────────────────▶ Armed ───────────────────────────▶ Due
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
//! *unarmed*: for its first [`MIN_SLICE`] the clock is looked at on each check; only a round that lasts
//! arms the timeout, hands over what was submitted meanwhile, and from then on relies on plain
//! loads.
//!
//! While a round is unarmed, completions do not preempt: that is the minimum slice, without which
//! every completion would end the round of the running task.
//!
//! A round of many tasks that were just woken is *hurried*: each of them is asked to stop
//! [`MIN_SLICE`] after it began, so that none delays the others by a whole slice. The round itself
//! goes on until they have run, for up to `hurried`: with fewer rounds, the kernel is entered
//! less often, and gives more at a time. A timer that was armed before the round ends it only when
//! [`MIN_SLICE`] is over: its task would have to wait for those of the round anyway.
//!
//! The executor asks after every poll. Notifications and the ring's flags are loads; the clock of an
//! unarmed round is read after the first poll, and from then on after a *stretch* of up to
//! [`LONGEST_STRETCH`] polls: as many as are over in `pace`, going by the one before. So a
//! deadline that passes in an unarmed round is noticed some microseconds late, unless a stretch that
//! began with short polls goes on with long ones. A reading that finds one like that has each of
//! the next [`CAREFUL`] polls followed by a reading: where it happens in one round, it would happen
//! in the next. The words in code type are members of [`Tuning`](crate::tuning::Tuning).

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::Driver;
use super::timers::Timers;
use super::turn_time::deadline_after;
use super::user_data::{IGNORED, PREEMPTION};
use crate::clock;
use crate::mailbox::Notifier;
use crate::ring::{TimeoutCell, Wait};
use crate::tuning;

/// The shortest slice, and the longest that a submission waits in user space while tasks run.
pub(super) const MIN_SLICE: Duration = Duration::from_micros(20);

/// The most polls that share a reading of the clock.
const LONGEST_STRETCH: u32 = 8;

/// Without, a timer may wait for [`LONGEST_STRETCH`] long polls in each round, and not for the one
/// that runs.
const CAREFUL: u32 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Unarmed,
    Armed,
    Due,
}

/// See the module.
pub(super) struct Preempt {
    notifier: Arc<Notifier>,
    phase: Cell<Phase>,
    /// Start of the round; base of the slice.
    round_start: Cell<Instant>,
    /// An unarmed round is armed at the first check after this.
    arm_at: Cell<Instant>,
    /// The end of the slice or the earliest user timer, whichever comes first.
    slice_end: Cell<Instant>,
    /// When the running task is asked to stop, in a hurried round.
    hurried: Cell<Option<Instant>>,
    /// When the clock was last read between two polls, or the round began.
    read_at: Cell<Instant>,
    /// Polls from one reading of an unarmed round to the next, and how many of them are still to
    /// come.
    stretch: Cell<u32>,
    stretch_left: Cell<u32>,
    /// Readings until polls may share one again.
    careful: Cell<u32>,
}

impl Preempt {
    pub(super) fn new(notifier: Arc<Notifier>, now: Instant) -> Self {
        Preempt {
            notifier,
            phase: Cell::new(Phase::Unarmed),
            round_start: Cell::new(now),
            arm_at: Cell::new(now),
            slice_end: Cell::new(now),
            hurried: Cell::new(None),
            read_at: Cell::new(now),
            stretch: Cell::new(1),
            stretch_left: Cell::new(1),
            careful: Cell::new(0),
        }
    }

    /// Starts a round that lasts until `slice_end`.
    pub(super) fn begin_until(&self, now: Instant, slice_end: Instant) {
        self.start_unarmed();
        self.read_at.set(now);
        self.round_start.set(now);
        self.arm_at.set(now + MIN_SLICE);
        self.slice_end.set(slice_end);
        self.hurried.set(None);
    }

    /// Has the clock read after the next poll.
    fn start_unarmed(&self) {
        self.phase.set(Phase::Unarmed);
        self.stretch.set(1);
        self.stretch_left.set(1);
    }

    /// A poll of an unarmed round is over: is it time to read the clock?
    #[inline]
    pub(super) fn ends_stretch(&self) -> bool {
        let left = self.stretch_left.get() - 1;
        self.stretch_left.set(left);
        left == 0
    }

    /// The clock was read at the end of a stretch, and says `now`: decides on the next.
    pub(super) fn begin_stretch(&self, now: Instant) {
        let took = now.saturating_duration_since(self.read_at.replace(now));
        let (polls, pace) = (self.stretch.get(), tuning::get().pace);
        if polls > 1 && took > MIN_SLICE {
            self.careful.set(CAREFUL);
        }
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

    #[inline]
    pub(super) fn round_start(&self) -> Instant {
        self.round_start.get()
    }

    #[inline]
    pub(super) fn slice_end(&self) -> Instant {
        self.slice_end.get()
    }

    /// The round must not outlast `deadline`. One that has passed ends the round now: what went
    /// before was within its slice.
    #[inline]
    fn limit(&self, deadline: Instant) {
        if deadline < self.slice_end.get() {
            let end = deadline.max(clock::real());
            if end >= self.slice_end.get() {
                return;
            }
            self.slice_end.set(end);
            // The stretch was chosen for a later one.
            self.stretch_left.set(1);
            if self.phase.get() == Phase::Armed {
                // The timeout stands too late. `arm_at` has passed, so the next check moves it.
                self.start_unarmed();
            }
        }
    }

    /// The round is a hurried one, and a task begins to run.
    fn shorten_slice_from(&self, now: Instant) {
        self.hurried.set(Some(now + MIN_SLICE));
    }

    /// Something was submitted: an armed round hands it over within [`MIN_SLICE`].
    #[inline]
    pub(super) fn submitted(&self) {
        if self.phase.get() == Phase::Armed {
            let now = clock::real();
            self.start_unarmed();
            self.read_at.set(now);
            self.arm_at.set(now + MIN_SLICE);
        }
    }

    /// Whether the running task should give the thread back.
    #[inline]
    pub(super) fn need_preempt(&self, driver: &Driver) -> bool {
        if self.notifier.is_notified() {
            return true;
        }
        match self.phase.get() {
            Phase::Unarmed => match self.hurried.get() {
                Some(task_end) => clock::real() >= task_end.min(self.slice_end()),
                None => self.is_over_at(driver, clock::real()),
            },
            Phase::Armed => is_over_in_kernel(driver),
            Phase::Due => true,
        }
    }

    /// Whether the round is over, between two polls, of which several in an unarmed round may share a reading of
    /// the clock. `woken_wait` tells whether tasks are left that were woken before the round began:
    /// a hurried one waits for them.
    #[inline]
    pub(super) fn ends_round(&self, driver: &Driver, woken_wait: bool) -> bool {
        if self.notifier.is_notified() {
            return true;
        }
        match self.phase.get() {
            Phase::Unarmed => self.ends_unarmed_round(driver, woken_wait),
            Phase::Armed => is_over_in_kernel(driver),
            Phase::Due => true,
        }
    }

    fn ends_unarmed_round(&self, driver: &Driver, woken_wait: bool) -> bool {
        let goes_on = woken_wait && self.hurried.get().is_some();
        if self.ends_stretch() {
            let now = clock::real();
            self.begin_stretch(now);
            return if goes_on {
                self.ends_hurried_round(now)
            } else {
                self.is_over_at(driver, now)
            };
        }
        // What has completed ends the round once that is armed.
        !goes_on && driver.work_pending() && self.is_over_at(driver, clock::real())
    }

    /// Whether a hurried round is over, while tasks wait that were woken before it.
    fn ends_hurried_round(&self, now: Instant) -> bool {
        let end = self.round_start() + tuning::get().hurried;
        if now >= end.min(self.slice_end()) {
            self.phase.set(Phase::Due);
            return true;
        }
        self.shorten_slice_from(now);
        false
    }

    /// Starts a round at `now` that may last for `slice`, or until the first timer is due.
    pub(super) fn begin_round(&self, now: Instant, slice: Duration, timers: &Timers) {
        let slice_end = now.checked_add(slice.max(MIN_SLICE));
        let first_timer = match timers.has_more_due() {
            // Those left over by the last pass are due, but the tasks just woken go first: the
            // round is as short as a round can be. It must not last longer, for a pass
            // may also reach its bound without having woken any.
            true => Some(now + MIN_SLICE),
            false => timers.latest_of_first(),
        };
        let end = match (slice_end, first_timer) {
            (Some(slice), Some(timer)) => slice.min(timer.max(now)),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => deadline_after(now, Duration::MAX),
        };
        #[cfg(feature = "audit")]
        timers.is_to_wait_until(clock::at(end));
        self.begin_until(now, end);
    }

    /// Ends the slice no later than `length` after `start`, but no sooner than slices end.
    pub(super) fn limit_slice(&self, start: Instant, length: Duration) {
        if let Some(end) = start.checked_add(length.max(MIN_SLICE)) {
            self.limit(end);
        }
    }

    /// Before the first task of a round: several were just woken, and none is to delay the others.
    pub(super) fn shorten_slice(&self) {
        if !tuning::get().hurried.is_zero() {
            let start = self.round_start();
            // Were each timer that comes due to end it, a round would have one task while others wait.
            self.slice_end.update(|end| end.max(start + MIN_SLICE));
            self.shorten_slice_from(start);
        }
    }

    /// A timer was armed for `deadline`, of the executor's clock: tasks must not run past it for longer than the slack.
    #[inline]
    pub(super) fn limit_by_timer(&self, deadline: Instant, timers: &Timers) {
        // Nearly all timers expire after the slice: for them this is one comparison.
        if let Some(deadline) = clock::real_time_of(deadline)
            && deadline < self.slice_end()
        {
            self.limit(timers.latest(deadline));
        }
    }

    /// Whether an unarmed round is over; arms it when it is time to.
    fn is_over_at(&self, driver: &Driver, now: Instant) -> bool {
        if now >= self.slice_end() {
            self.phase.set(Phase::Due);
            return true;
        }
        if now < self.arm_at.get() {
            return false;
        }
        if self.hurried.get().is_some() {
            self.phase.set(Phase::Due);
            return true;
        }
        self.arm(driver);
        self.phase.get() == Phase::Due || is_over_in_kernel(driver)
    }

    /// The round lasts: hands the kernel what waits, and has it post the end of the slice.
    fn arm(&self, driver: &Driver) {
        let end = self.slice_end();
        self.phase.set(Phase::Armed);
        match driver.timeouts.slice_timeout.replace(Some(end)) {
            None => {
                driver.push(|ring| ring.push_timeout(TimeoutCell::Slice, end, PREEMPTION));
            }
            Some(armed) if armed != end => {
                driver.push(|ring| {
                    ring.push_timeout_move(TimeoutCell::Slice, end, PREEMPTION, IGNORED)
                });
            }
            Some(_) => {}
        }
        driver.hand_over();
        // The move of the timeout completes at once, and is no reason to stop. An operation is.
        driver.reap();
        if driver.completions.has_woken() {
            self.phase.set(Phase::Due);
        }
    }

    /// Removes the slice's timeout and takes its completion, which would end a sleep otherwise.
    pub(super) fn disarm_slice_timeout(&self, driver: &Driver) {
        let armed_at = &driver.timeouts.slice_timeout;
        if armed_at.get().is_none() {
            return;
        }
        driver.push(|ring| ring.push_timeout_removal(PREEMPTION, IGNORED));
        // Expired or removed, it completes: the wait is for the kernel's task work only.
        while armed_at.get().is_some() {
            driver.enter(Wait::Forever);
            driver.reap();
        }
    }
}

/// Whether an armed round is over: something has completed, or the slice's timeout has and was
/// reaped in the middle of the round.
#[inline]
fn is_over_in_kernel(driver: &Driver) -> bool {
    driver.work_pending() || driver.timeouts.slice_timeout.get().is_none()
}

#[cfg(test)]
impl Preempt {
    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurried.get().is_some()
    }
}
