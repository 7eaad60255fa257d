//! Everything that goes to the kernel and comes back: submission and completion.
//!
//! ```text
//!   operations ──▶ table ──flush──▶ rings ──enter──▶ kernel
//!                    ▲                                  │
//!   wakers, sinks ◀──┴──────────── reap ◀───────────────┘
//! ```
//!

use std::cell::{Cell, RefCell, RefMut};
use std::io;
use std::time::Duration;

use super::completions::Completions;
use super::in_flight::InFlight;
use super::io_counters::IoCounters;
use super::io_ring::IoRing;
use super::ring_timeouts::RingTimeouts;
use crate::ring::{QueueFull, Ring, Wait};
use crate::stats::{RunCounts, SharedCounts};

pub(super) const LOST: &str = "the kernel had no memory for completions and dropped some (EBADR): operations of this \
                               executor may never end";

/// Full rings in a row before a flush leaves the rest for the next turn.
pub(super) const FLUSH_ATTEMPTS: usize = 1024;

/// How often a sleep is followed by a look at what has completed with what ended it.
const DEFERRED_ATTEMPTS: usize = 8;

/// See the module.
pub(super) struct Driver {
    pub(super) io: IoRing,
    pub(super) in_flight: RefCell<InFlight>,
    pub(super) completions: Completions,
    pub(super) timeouts: RingTimeouts,
    pub(super) counts: SharedCounts<RunCounts>,
    /// Nothing new is taken on.
    is_closing: Cell<bool>,
    /// See [`Driver::completions_lost`].
    has_lost_completions: Cell<bool>,
}

impl Driver {
    pub(super) fn new(io: IoRing, io_counters: IoCounters) -> Self {
        let counts = SharedCounts::<RunCounts>::default();
        Driver {
            io,
            in_flight: RefCell::new(InFlight::new(io_counters)),
            completions: Completions::new(counts.clone()),
            timeouts: RingTimeouts::default(),
            counts,
            is_closing: Cell::new(false),
            has_lost_completions: Cell::new(false),
        }
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        self.io.ring()
    }

    /// What the operations were counted as.
    pub(super) fn io_counters(&self) -> RefMut<'_, IoCounters> {
        RefMut::map(self.in_flight.borrow_mut(), InFlight::io_counters)
    }

    #[inline]
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.get()
    }

    /// Takes nothing new on from here on.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
    }

    pub(super) fn has_lost_completions(&self) -> bool {
        self.has_lost_completions.get()
    }

    /// Hands cancellations over on the spot, so that the kernel lets go of the descriptors of what
    /// was given up. For those who are about to close one: it would stay open behind its number
    /// until the end of the turn. Wakes no task. No system call if nothing was given up.
    pub(super) fn cancel_now(&self) {
        let ring = self.ring();
        if !self.in_flight.borrow().has_cancels() || ring.is_inherited() {
            return;
        }
        // The queue holds so many at a time, and the kernel (6.13 and newer) carries out twenty
        // with each call; what one was told last comes last. Bounded: before ours stands at
        // most what is in flight. What fails now goes with the next turn.
        let most = self.in_flight.borrow().len();
        for _ in 0..=most {
            let flushed = self.in_flight.borrow_mut().flush(ring);
            if let Err(error) = ring.enter(Wait::Now) {
                tracing::warn!("cancelling on the spot failed, retried soon: {error}");
                return;
            }
            if flushed.is_ok() && !ring.has_deferred_work() {
                return;
            }
        }
    }

    /// Hands over what was submitted and takes what the kernel has, without waiting.
    pub(super) fn exchange(&self) {
        self.flush();
        if self.ring().queued() > 0 || self.ring().needs_enter_to_reap() {
            self.enter(Wait::Now);
        }
        self.reap();
    }

    /// After a sleep: the kernel has posted the completion that ended it alone, and what has completed with it is
    /// still deferred. Tasks that are woken together submit together, and a device is told once.
    #[inline]
    pub(super) fn take_deferred(&self) {
        // The kernel takes twenty each time. What is left by then waits for the next turn.
        for _ in 0..DEFERRED_ATTEMPTS {
            if !self.ring().has_deferred_work() {
                return;
            }
            self.enter(Wait::Now);
        }
    }

    /// Moves the backlog into the submission queue, entering the kernel whenever that is full.
    pub(super) fn flush(&self) {
        // Bounded: each refused attempt is followed by an `enter` that takes the whole queue. A
        // kernel short of memory may refuse; then the rest waits, and the thread does not sleep
        // meanwhile.
        for _ in 0..FLUSH_ATTEMPTS {
            if self.in_flight.borrow_mut().flush(self.ring()).is_ok() {
                return;
            }
            self.enter(Wait::Now);
            self.reap();
        }
    }

    /// An operation was added to the table. Many at once do not wait for the end of the poll: the
    /// kernel gets half a ring at a time. One that it refuses, short of memory, goes with the next.
    #[inline]
    pub(super) fn hand_over_batch(&self) {
        let queued = self.in_flight.borrow().queued();
        if queued.is_multiple_of((self.ring().entries() / 2).max(1)) {
            self.hand_over();
        }
    }

    /// Hands over what was submitted in the middle of a round. Takes no completions, hence wakes no
    /// task.
    pub(super) fn hand_over(&self) {
        // One attempt: what does not fit goes with the next turn, which is near.
        let _ = self.in_flight.borrow_mut().flush(self.ring());
        if self.ring().queued() > 0
            && let Err(error) = self.ring().submit_only()
        {
            tracing::warn!(
                "submitting in the middle of a round failed, retried at its end: {error}"
            );
        }
    }

    /// Pushes what the reactor itself asks for, making room if the queue is full.
    pub(super) fn push(&self, attempt: impl Fn(&Ring) -> Result<(), QueueFull>) {
        while attempt(self.ring()).is_err() {
            self.enter(Wait::Now);
            // An older kernel takes nothing in while the completion queue overflows.
            self.reap();
        }
    }

    /// Whether the kernel has completions that were not looked at: a few loads.
    #[inline]
    pub(super) fn work_pending(&self) -> bool {
        self.ring().work_pending()
    }

    /// Enters the kernel.
    ///
    /// # Panics
    ///
    /// Panics where [`try_enter`](Self::try_enter) fails.
    pub(super) fn enter(&self, wait: Wait) {
        if let Err(error) = self.try_enter(wait) {
            panic!("the kernel cannot be entered: {error}");
        }
    }

    /// Enters the kernel, again after a pause if it is short of memory.
    ///
    /// # Errors
    ///
    /// What is beyond repair: memory pressure that stays, completions that the kernel has dropped,
    /// and whatever a ring in order does not give.
    pub(super) fn try_enter(&self, wait: Wait) -> io::Result<()> {
        let ring = self.ring();
        let mut pause = Duration::from_micros(50);
        loop {
            // A sleep beside file operations is a wait for a device, and counts as one.
            let entered = if self.in_flight.borrow().waits_for_device() {
                ring.enter(wait)
            } else {
                ring.enter_idle(wait)
            };
            let Err(error) = entered else {
                return Ok(());
            };
            match error.raw_os_error() {
                Some(libc::ENOMEM) if pause < Duration::from_secs(1) => {
                    std::thread::sleep(pause);
                    pause *= 2;
                }
                Some(libc::EBADR) => {
                    self.completions_lost();
                    return Err(io::Error::new(io::ErrorKind::OutOfMemory, LOST));
                }
                _ => return Err(error),
            }
        }
    }

    /// The kernel had completions for which there was neither room in the queue nor memory. It does
    /// not say which: operations that have ended may look as if they had not, forever.
    pub(super) fn completions_lost(&self) {
        self.has_lost_completions.set(true);
        self.timeouts.lost();
    }

    /// Takes all posted completions and tells what waits for them.
    pub(super) fn reap(&self) {
        let ring = self.ring();
        if ring.completions_posted() {
            self.completions.take_in(ring, |completion, deliveries| {
                if !self.timeouts.completed(&completion) {
                    let mut in_flight = self.in_flight.borrow_mut();
                    in_flight.complete(completion, deliveries);
                }
            });
        } else if !self.completions.are_undelivered() {
            return;
        }
        self.completions.deliver();
    }
}
