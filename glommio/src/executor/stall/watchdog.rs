//! The thread that looks at the clock for an executor that cannot.
//!
//! Arming happens on each turn of a queue, thousands of times for each stall, so it must not wake
//! the watchdog's thread: the executor publishes its deadline, the watchdog the moment until which
//! it sleeps, and each reads what the other wrote.
//!
//! ```text
//!   executor: arm                      watchdog
//!     1  deadline := d                   1  wakes_at := the deadline it saw, or never
//!     2  wakes_at > d ?  unpark          2  deadline before wakes_at?  look again
//!                                        3  park until wakes_at, then look again
//! ```
//!
//! No deadline is missed. All four accesses are sequentially consistent. Either the executor's step
//! 2 comes after the watchdog's step 1 in their common order, and unparks it if it would sleep too
//! long (an unpark that comes before the park makes that return at once); or the watchdog's step 2
//! comes after the executor's step 1 and sees the deadline. A watchdog that wakes for a deadline
//! that is gone (its turn ended in time) sleeps until the one that is there now. Turns with one and
//! the same budget so wake it once in a budget at most, however many there are, and an idle
//! executor not at all.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::clock;
use crate::sys::affinity::AffinityMask;
use crate::sys::stack_trap::{InstalledTrap, LAST_DEADLINE_NS, StackTrap};

/// The watchdog sleeps until it is unparked.
const NEVER: u64 = u64::MAX;

/// Springs the trap of the executor's thread when a deadline passes. Ends with its owner.
#[derive(Debug)]
pub(super) struct Watchdog {
    shared: Arc<WatchdogShared>,
    thread: Option<JoinHandle<()>>,
    /// Dropped after the thread has ended: the sender of signals ends before their handler.
    trap: InstalledTrap,
}

#[derive(Debug)]
struct WatchdogShared {
    trap: Arc<StackTrap>,
    /// All times are nanoseconds since then.
    beginning: Instant,
    wakes_at_ns: AtomicU64,
    is_stopped: AtomicBool,
}

impl Watchdog {
    /// A watchdog over the calling thread, which itself runs on the CPUs of `affinity`.
    ///
    /// # Errors
    ///
    /// Those of [`StackTrap::set`] and of starting a thread.
    pub(super) fn start(
        signal: u8,
        name: String,
        affinity: Option<AffinityMask>,
    ) -> io::Result<Self> {
        let trap = StackTrap::set(signal)?;
        let shared = Arc::new(WatchdogShared {
            trap: Arc::clone(&trap),
            beginning: clock::real(),
            wakes_at_ns: AtomicU64::new(NEVER),
            is_stopped: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name).spawn(move || {
            if let Some(Err(error)) = affinity.map(|it| it.apply()) {
                // It runs where the executor runs, and may have to wait for the CPU that the
                // stalled task has.
                tracing::debug!("a watchdog for stalls stays on its executor's CPUs: {error}");
            }
            of_thread.run();
        })?;
        Ok(Watchdog {
            shared,
            thread: Some(thread),
            trap,
        })
    }

    /// Has the stack taken at `deadline`, unless [`disarm`](StackTrap::disarm) comes before.
    pub(super) fn arm(&self, deadline: Option<Instant>) {
        let deadline_ns = deadline.map_or(LAST_DEADLINE_NS, |it| self.shared.nanoseconds(it));
        self.trap.arm(deadline_ns);
        if self.shared.wakes_at_ns.load(Ordering::SeqCst) > deadline_ns {
            self.unpark();
        }
    }

    pub(super) fn trap(&self) -> &StackTrap {
        &self.trap
    }

    fn unpark(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.unpark();
        if let Some(thread) = self.thread.take() {
            // It runs no code that panics, and if it did the stack would be all that is missing.
            let _ = thread.join();
        }
    }
}

impl WatchdogShared {
    fn run(&self) {
        while !self.is_stopped.load(Ordering::SeqCst) {
            let wakes_at_ns = self.trap.deadline_ns().unwrap_or(NEVER);
            self.wakes_at_ns.store(wakes_at_ns, Ordering::SeqCst);
            if self.trap.deadline_ns().is_some_and(|it| it < wakes_at_ns) {
                continue;
            }
            if wakes_at_ns == NEVER {
                thread::park();
                continue;
            }
            match wakes_at_ns.checked_sub(self.nanoseconds(clock::real())) {
                None | Some(0) => self.trap.spring(wakes_at_ns),
                Some(left_ns) => thread::park_timeout(Duration::from_nanos(left_ns)),
            }
        }
    }

    /// What is too far away for a number of nanoseconds is the last deadline.
    fn nanoseconds(&self, instant: Instant) -> u64 {
        let ns = instant.saturating_duration_since(self.beginning).as_nanos();
        u64::try_from(ns).map_or(LAST_DEADLINE_NS, |ns| ns.min(LAST_DEADLINE_NS))
    }
}
