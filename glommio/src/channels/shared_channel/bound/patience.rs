//! Whether a task that finds nothing looks again for a while, before it waits.
//!
//! Where both ends are awake, on two processors, one of them catches up with the other all the
//! time. To sleep then, and be woken, costs both more than many items do. So a task that finds
//! nothing may look again for [`PATIENCE`], every [`BETWEEN_LOOKS`] and with other tasks in
//! between, before it waits. If that is [`QUICK`] the next wait does so too. If it is slow once,
//! too: the other end may just have been woken. If it is slow again, or in vain, a number of waits
//! go without, which doubles each time, from 1 to 4095. A new channel begins with 15, so that one
//! which is seldom used does not try.
//!
//! A task that looks again has its place among those that wait, as if it had been notified. So they
//! stay in order.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::reactor;
use crate::wait_queue::WaitKey;

/// How long a task looks again and again before it waits: longer than it takes to wake another
/// processor, also where that is virtual.
const PATIENCE: Duration = Duration::from_micros(50);

/// How long it leaves the cache lines of the other end alone in between, so that there is more than
/// one item to find.
const BETWEEN_LOOKS: Duration = Duration::from_micros(2);

/// What is found so soon has cost less than falling asleep and being woken.
const QUICK: Duration = Duration::from_micros(10);

const MAX_PAUSE: u16 = 4095;

/// Whether to look again, and until when.
pub(super) struct Patience {
    /// So many waits are begun without.
    pub(super) pause: Cell<u16>,
    /// That after the next failure; one less than a power of two.
    pub(super) next_pause: Cell<u16>,
    /// Whether the last time was slow.
    was_slow: Cell<bool>,
    /// The one task that has patience now.
    pub(super) now: Cell<Option<Patient>>,
}

#[derive(Clone, Copy)]
pub(super) struct Patient {
    /// Its place among those that wait.
    id: usize,
    pub(super) end: Instant,
    pub(super) next_look: Instant,
}

impl Patience {
    /// Whether a wait that begins now is to look again. Not outside of executors, whose loops may
    /// be slow.
    pub(super) fn is_due(&self) -> bool {
        let pause = self.pause.get();
        self.pause.set(pause.saturating_sub(1));
        pause == 0 && reactor::current::is_any()
    }

    pub(super) fn begin(&self, key: &Option<WaitKey>) {
        let now = Instant::now();
        let patient = |key: &WaitKey| Patient {
            id: key.id(),
            end: now + PATIENCE,
            next_look: now + BETWEEN_LOOKS,
        };
        self.now.set(key.as_ref().map(patient));
    }

    /// Whether the one that has patience is at this place.
    #[inline]
    pub(super) fn is_of(&self, key: &Option<WaitKey>) -> bool {
        let patient = self.now.get().map(|it| it.id);
        patient.is_some() && patient == key.as_ref().map(WaitKey::id)
    }

    /// Whether it is time to look again.
    pub(super) fn looks_at(&self, now: Instant) -> bool {
        let Some(mut patient) = self.now.get() else {
            return false;
        };
        let is_time = now >= patient.next_look;
        if is_time {
            patient.next_look = now + BETWEEN_LOOKS;
            self.now.set(Some(patient));
        }
        is_time
    }

    pub(super) fn lasts(&self, now: Instant) -> bool {
        self.now.get().is_some_and(|patient| now < patient.end)
    }

    /// The one that has patience has found something.
    pub(super) fn found(&self, now: Instant) {
        let Some(Patient { end, .. }) = self.now.take() else {
            return;
        };
        if end.saturating_duration_since(now) >= PATIENCE - QUICK {
            self.was_slow.set(false);
            self.next_pause.set(1);
        } else if self.was_slow.replace(true) {
            self.failed();
        }
    }

    /// The one that has patience, if there is one, waits or goes.
    pub(super) fn failed(&self) {
        self.now.set(None);
        self.was_slow.set(false);
        let pause = self.next_pause.get();
        self.pause.set(pause);
        self.next_pause.set((pause << 1 | 1).min(MAX_PAUSE));
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            pause: Cell::new(15),
            next_pause: Cell::new(15),
            was_slow: Cell::new(false),
            now: Cell::new(None),
        }
    }
}
