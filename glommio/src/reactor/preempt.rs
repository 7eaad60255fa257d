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

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a round runs before the kernel is asked to watch it, and the longest that a submission
/// waits in user space beside running tasks.
pub(super) const SETTLE: Duration = Duration::from_micros(20);

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
}

impl Preempt {
    pub(super) fn new(now: Instant) -> Self {
        Preempt {
            phase: Cell::new(Phase::Young),
            round_start: Cell::new(now),
            settle_at: Cell::new(now),
            slice_end: Cell::new(now),
            armed_at: Cell::new(None),
        }
    }

    /// Starts a round that may last until `slice_end`.
    pub(super) fn begin_round(&self, now: Instant, slice_end: Instant) {
        self.phase.set(Phase::Young);
        self.round_start.set(now);
        self.settle_at.set(now + SETTLE);
        self.slice_end.set(slice_end);
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
                self.phase.set(Phase::Young);
            }
        }
    }

    /// Something was submitted: a settled round hands it over within [`SETTLE`].
    #[inline]
    pub(super) fn submitted(&self) {
        if self.phase.get() == Phase::Settled {
            self.settle_at.set(Instant::now() + SETTLE);
            self.phase.set(Phase::Young);
        }
    }

    /// The timeout has fired or was removed.
    pub(super) fn disarmed(&self) {
        self.armed_at.set(None);
    }
}
