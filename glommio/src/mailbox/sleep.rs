//! The agreement between an executor that wants to sleep and the threads that have work for it.
//!
//! The whole of it is one atomic word with three values:
//!
//! ```text
//!            notify                      announce_sleep
//!   NOTIFIED ◀────── AWAKE ─────────────────────────▶ SLEEPING
//!      │               ▲ ▲                              │   │
//!      │     take      │ │            awake             │   │
//!      └───────────────┘ └──────────────────────────────┘   │
//!      ▲                  notify, and raise the signal      │
//!      └────────────────────────────────────────────────────┘
//! ```
//!
//! `AWAKE`: the owner runs, and has seen every notification. `NOTIFIED`: work was published that
//! the owner has not looked for yet. `SLEEPING`: the owner is in the kernel, or about to be; a
//! thread that changes that must raise the signal. Only the owner writes `AWAKE` and `SLEEPING`;
//! any thread writes `NOTIFIED`.
//!
//! # Proof that no wake is lost
//!
//! A producer publishes its work and then does `P = swap(NOTIFIED)`. The owner drains until
//! nothing is left after every `take` that answered true (or notifies itself), and sleeps only
//! after `A = compare_exchange(AWAKE, SLEEPING)` succeeded. Both are read-modify-writes of one
//! word, so one comes before the other in its modification order.
//!
//! - **P before A.** P left `NOTIFIED`, and A read `AWAKE`. Of all the owner's writes only `T =
//!   swap(AWAKE)` in [`take`](Notifier::take) replaces `NOTIFIED`, so the first T after P comes
//!   before A. From P to T every write is a swap by some producer, hence T reads from P's release
//!   sequence and, acquiring, happens after what was published before P. The owner drains after T:
//!   it finds the work.
//! - **A before P.** Consider the first producer `P₀` after A that comes before the owner leaves
//!   its sleep. It reads `SLEEPING` and raises the signal, which lasts until the owner clears it;
//!   the owner clears only between sleeps, so the signal of this sleep ends this sleep. P is `P₀`
//!   or finds the `NOTIFIED` that `P₀` left. If the owner had left its sleep before P, the word was
//!   `AWAKE` or `NOTIFIED` at P, and the first case holds for the next announcement.
//!
//! No fence is needed, and no `membarrier(2)`: those order a write to one place with a read of
//! another, whereas here both sides write the place they read. The price is that the producer's
//! swap cannot be skipped when the word already says `NOTIFIED`: a load alone may read a
//! notification that the owner is just taking, and would not make the new work visible to the drain
//! that follows.
//!
//! # Proof of one signal per sleep
//!
//! `SLEEPING` is written once per sleep, by A. Only a swap that replaces it raises the signal, and
//! the swap leaves `NOTIFIED`. So signals are never more than announcements. A signal may be raised
//! late, after the owner woke for another reason; it then ends the next sleep early, once. That
//! costs a turn and loses nothing.
//!
//! # Cost
//!
//! [`notify`](Notifier::notify): one swap, plus a lock and one `write(2)` if the owner sleeps.
//! [`is_notified`](Notifier::is_notified) and a `take` that finds nothing: one plain load.

#![forbid(unsafe_code)]

use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::loom::sync::atomic::{AtomicU8, Ordering};
use crate::sys::fork_detect::Origin;

/// Tells an executor that there is work, and wakes it if it sleeps. Shared by producers and owner.
///
/// A line of its own: the owner reads the word in its inner loops, and nothing that other threads
/// write often (a reference count, say) may lie next to it.
#[repr(align(64))]
pub(crate) struct Notifier<S = WakeSignal> {
    word: AtomicU8,
    signal: S,
}

/// What ends the owner's sleep.
///
/// A raised signal stays raised until it is cleared, so that it may come before the sleep that it
/// ends. The executor's is an eventfd; loom's models bring their own.
pub(crate) trait Signal {
    /// Ends the owner's sleep, the present one or the next.
    fn raise(&self);
    /// Forgets what was raised. The owner calls it between sleeps.
    fn clear(&self);
}

impl Notifier {
    /// A notifier whose owner is awake.
    ///
    /// # Errors
    /// The process or the system is out of descriptors (`EMFILE`, `ENFILE`) or memory (`ENOMEM`).
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::with_signal(WakeSignal::new()?))
    }

    /// The descriptor that becomes readable when the signal is raised: what the owner's ring polls.
    ///
    /// # Panics
    /// Panics after [`close_signal`](Self::close_signal).
    pub(crate) fn signal_fd(&self) -> RawFd {
        self.signal
            .lock()
            .as_ref()
            .expect("an owner that still sleeps has its signal")
            .as_raw_fd()
    }

    /// Owner, about to die: gives the descriptor back, which wakers would keep for as long as they
    /// keep the notifier. Signals go nowhere from now on.
    pub(crate) fn close_signal(&self) {
        let eventfd = self.signal.lock().take();
        drop(eventfd);
    }
}

impl<S: Signal> Notifier<S> {
    /// A notifier whose owner is awake and sleeps on `signal`.
    pub(crate) fn with_signal(signal: S) -> Self {
        Self {
            word: AtomicU8::new(AWAKE),
            signal,
        }
    }

    /// What the owner sleeps on.
    #[cfg(all(test, loom))]
    pub(super) fn signal(&self) -> &S {
        &self.signal
    }

    /// Any thread, after it has published work: the owner will look for it.
    pub(crate) fn notify(&self) {
        // A write also on top of `NOTIFIED`: released here, this producer's work is seen by the
        // `take` that reads this swap or a later one (first case of the proof, which leans
        // on no more).
        if self.word.swap(NOTIFIED, Ordering::Release) == SLEEPING {
            self.signal.raise();
        }
    }

    /// Whether work was published that the owner has not looked for. One plain load.
    ///
    /// A hint: it orders nothing, and may be late by the time a store takes to be seen.
    #[inline]
    pub(crate) fn is_notified(&self) -> bool {
        self.word.load(Ordering::Relaxed) == NOTIFIED
    }

    /// Owner: whether there may be new work. If so, everything published before the notification
    /// can be seen now, and the owner must drain it all before it announces sleep.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        // A notification that this load misses makes `announce_sleep` fail.
        self.is_notified() && self.word.swap(AWAKE, Ordering::Acquire) == NOTIFIED
    }

    /// Owner, with nothing left to do: announces that it is about to sleep.
    ///
    /// False if work was published meanwhile: do not sleep, [`take`](Self::take) and drain. After
    /// true, the next notification raises the signal, until [`awake`](Self::awake).
    #[must_use]
    pub(crate) fn announce_sleep(&self) -> bool {
        // Relaxed: the `take` before it has acquired what the proof needs.
        self.word
            .compare_exchange(AWAKE, SLEEPING, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Owner, back from sleep for whatever reason: notifications need no signal any more.
    ///
    /// One that has arrived stays to be taken.
    pub(crate) fn awake(&self) {
        // A failure means `NOTIFIED`, which is what must not be lost. `take` acquires; this need
        // not.
        let _ = self
            .word
            .compare_exchange(SLEEPING, AWAKE, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Owner, after [`awake`](Self::awake): forgets the signal, so that it does not end the next
    /// sleep as well.
    pub(crate) fn clear_signal(&self) {
        // Between announcing and sleeping this would swallow the signal of that very sleep.
        debug_assert_ne!(
            self.word.load(Ordering::Relaxed),
            SLEEPING,
            "the signal is cleared between sleeps"
        );
        self.signal.clear();
    }
}

impl<S> fmt::Debug for Notifier<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.word.load(Ordering::Relaxed) {
            AWAKE => "awake",
            NOTIFIED => "notified",
            _ => "sleeping",
        };
        f.debug_struct("Notifier").field("owner", &word).finish()
    }
}

/// An executor's signal: an eventfd, which goes with the executor although wakers live on.
///
/// The lock is taken where a system call is made anyway. Without it a late producer could write to
/// whatever descriptor has got the number since.
pub(crate) struct WakeSignal {
    eventfd: Mutex<Option<EventFd>>,
    origin: Origin,
}

impl WakeSignal {
    fn new() -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(WakeSignal {
            eventfd: Mutex::new(Some(EventFd::from_flags(flags)?)),
            origin: Origin::here()?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<EventFd>> {
        // Nothing under the lock can leave it half changed.
        self.eventfd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signal for WakeSignal {
    fn raise(&self) {
        // What a forked child wakes, dropping what it has inherited, sleeps in its parent; and the
        // lock may be held by a thread that is only there.
        if !self.origin.is_here() {
            return;
        }
        let Some(Err(errno)) = self.lock().as_ref().map(|eventfd| eventfd.write(1)) else {
            return;
        };
        // `EAGAIN`: 2⁶⁴ - 2 signals are waiting already, and one is enough. Not a panic otherwise:
        // this runs inside wakers, on threads of others.
        if errno != Errno::EAGAIN {
            tracing::error!(%errno, "cannot signal a sleeping executor");
        }
    }

    fn clear(&self) {
        let Some(Err(errno)) = self.lock().as_ref().map(EventFd::read) else {
            return;
        };
        // `EAGAIN`: nothing was raised.
        if errno != Errno::EAGAIN {
            tracing::error!(%errno, "cannot clear an executor's wake signal");
        }
    }
}

const AWAKE: u8 = 0;
const NOTIFIED: u8 = 1;
const SLEEPING: u8 = 2;
