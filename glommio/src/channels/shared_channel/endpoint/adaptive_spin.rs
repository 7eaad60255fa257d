//! Whether a task that finds nothing looks again for a while, before it waits.
//!
//! Where both ends are awake, on two processors, one of them catches up with the other all the
//! time. To sleep then, and be woken, costs both more than many items do. So a task that finds
//! nothing may look again for `spin` of [`Tuning`](crate::tuning::Tuning), every [`BETWEEN_LOOKS`] and with other tasks in
//! between, before it waits. If that is [`QUICK`] the next wait does so too. If it is slow once,
//! too: the other end may just have been woken. If it is slow again, or in vain, a number of waits
//! go without, which doubles each time, from 1 to 4095. A new channel begins with 15, so that one
//! which is seldom used does not try.
//!
//! A task that looks again has its place among those that wait, as if it had been notified. So they
//! stay in order.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::clock;
use crate::reactor;
use crate::tuning;
use crate::wait_queue::WaitKey;

/// How long it leaves the cache lines of the other end alone in between, so that there is more than
/// one item to find.
const BETWEEN_LOOKS: Duration = Duration::from_micros(2);

/// What is found so soon has cost less than falling asleep and being woken.
const QUICK: Duration = Duration::from_micros(10);

const MAX_PAUSE: u16 = 4095;

/// Whether to look again, and until when.
pub(super) struct AdaptiveSpin {
    /// So many waits are begun without.
    pub(super) pause: Cell<u16>,
    /// That after the next failure; one less than a power of two.
    pub(super) next_pause: Cell<u16>,
    /// Whether the last time was slow.
    was_slow: Cell<bool>,
    /// The one task that spins now.
    pub(super) now: Cell<Option<Spinning>>,
}

#[derive(Clone, Copy)]
pub(super) struct Spinning {
    /// Its place among those that wait.
    id: usize,
    pub(super) end: Instant,
    pub(super) next_look: Instant,
}

impl AdaptiveSpin {
    /// Whether a wait that begins now is to look again. Not outside of executors, whose loops may
    /// be slow.
    pub(super) fn is_due(&self) -> bool {
        let pause = self.pause.get();
        self.pause.set(pause.saturating_sub(1));
        pause == 0 && !tuning::get().spin.is_zero() && reactor::current::is_any()
    }

    pub(super) fn begin(&self, key: &Option<WaitKey>) {
        let now = clock::real();
        let spinning = |key: &WaitKey| Spinning {
            id: key.id(),
            end: now + tuning::get().spin,
            next_look: now + BETWEEN_LOOKS,
        };
        self.now.set(key.as_ref().map(spinning));
    }

    /// Whether the one that spins is at this place.
    #[inline]
    pub(super) fn is_of(&self, key: &Option<WaitKey>) -> bool {
        let spinning = self.now.get().map(|it| it.id);
        spinning.is_some() && spinning == key.as_ref().map(WaitKey::id)
    }

    /// Whether it is time to look again.
    pub(super) fn looks_at(&self, now: Instant) -> bool {
        let Some(mut spinning) = self.now.get() else {
            return false;
        };
        let is_time = now >= spinning.next_look;
        if is_time {
            spinning.next_look = now + BETWEEN_LOOKS;
            self.now.set(Some(spinning));
        }
        is_time
    }

    pub(super) fn lasts(&self, now: Instant) -> bool {
        self.now.get().is_some_and(|spinning| now < spinning.end)
    }

    /// The one that spins has found something.
    pub(super) fn found(&self, now: Instant) {
        let Some(Spinning { end, .. }) = self.now.take() else {
            return;
        };
        if end.saturating_duration_since(now) >= tuning::get().spin.saturating_sub(QUICK) {
            self.was_slow.set(false);
            self.next_pause.set(1);
        } else if self.was_slow.replace(true) {
            self.failed();
        }
    }

    /// The one that spins, if there is one, waits or goes.
    pub(super) fn failed(&self) {
        self.now.set(None);
        self.was_slow.set(false);
        let pause = self.next_pause.get();
        self.pause.set(pause);
        self.next_pause.set((pause << 1 | 1).min(MAX_PAUSE));
    }
}

impl Default for AdaptiveSpin {
    fn default() -> Self {
        AdaptiveSpin {
            pause: Cell::new(15),
            next_pause: Cell::new(15),
            was_slow: Cell::new(false),
            now: Cell::new(None),
        }
    }
}
