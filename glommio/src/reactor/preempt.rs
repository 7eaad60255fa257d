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
//! `need_preempt` must be a few loads, yet turn true without a system call of the running task, also
//! in a loop that never switches tasks. So the kernel has to post the end of the slice: a timeout in
//! the ring, whose firing shows in the ring's shared flags. Arming it costs an `enter`, which short
//! rounds (a message handed on, then park) must not pay. A round therefore starts *young*: for its
//! first [`SETTLE`] the clock is looked at on each check; only a round that lasts arms the timeout,
//! hands over what was submitted meanwhile, and from then on relies on plain loads.
//!
//! While a round is young, completions do not preempt: that is the minimum slice, without which every
//! completion would end the round of whoever is running.
//!
//! The executor asks after every poll. Notifications and the ring's flags are loads; the clock of a young
//! round is read after the first poll, and from then on after a *stretch* of up to [`LONGEST_STRETCH`] polls:
//! as many as are over in [`PACE`], going by the one before. So a deadline that passes in a young round is
//! noticed some microseconds late, unless a stretch that began with short polls goes on with long ones. A
//! reading that finds one like that has each of the next [`CAREFUL`] polls followed by a reading: where it
//! happens in one round, it would happen in the next.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a round runs before the kernel is asked to watch it, and the longest that a submission
/// waits in user space beside running tasks.
pub(super) const SETTLE: Duration = Duration::from_micros(20);

/// How long a stretch of polls may take, going by the one before it, that shares a reading of the clock.
const PACE: Duration = Duration::from_micros(4);

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
    pub(super) phase: Cell<Phase>,
    /// Start of the round; base of the slice.
    round_start: Cell<Instant>,
    /// A young round settles at the first check after this.
    settle_at: Cell<Instant>,
    /// The end of the slice or the earliest user timer, whichever comes first.
    slice_end: Cell<Instant>,
    /// Where the kernel's timeout stands.
    pub(super) armed_at: Cell<Option<Instant>>,
    /// When the clock was last read between two polls, or the round began.
    read_at: Cell<Instant>,
    /// Polls from one reading of a young round to the next, and how many of them are still to come.
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
        let next = if self.careful.get() > 0 {
            self.careful.update(|readings| readings - 1);
            1
        } else if took > PACE {
            1
        } else if took > PACE / 2 {
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

    /// A young round at `now`: is it time to settle?
    pub(super) fn settles(&self, now: Instant) -> bool {
        now >= self.settle_at.get()
    }

    /// The round must not outlast `deadline`.
    #[inline]
    pub(super) fn limit(&self, deadline: Instant) {
        if deadline < self.slice_end.get() {
            self.slice_end.set(deadline);
            if self.phase.get() == Phase::Settled {
                // The timeout stands too late. `settle_at` has passed, so the next check moves it.
                self.be_young();
            }
        }
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

    /// The timeout has fired or was removed.
    pub(super) fn disarmed(&self) {
        self.armed_at.set(None);
    }
}
