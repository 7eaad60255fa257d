//! The states of a task: what its owner thread knows ([`State`]) and what every thread may touch
//! ([`Word`]).
//!
//! Why two: the owner changes a task's state several times per poll, and other threads hardly ever.
//! So the state is plain memory that only the owner thread reads or writes, and the shared word
//! says no more than who still refers to the task and whether a remote wake of it is under way.

use std::process;

use crate::loom::Cell;
use crate::loom::sync::atomic::{AtomicUsize, Ordering};

/// A set of the flags below. Owner thread only.
pub(super) struct State(Cell<u8>);

/// A [`Runnable`](super::Runnable) exists, in a run queue or held by a caller; or the task was
/// woken while it is being polled, and `run` will make its `Runnable` anew after the poll. Either
/// way a further wake has nothing to add.
pub(super) const SCHEDULED: u8 = 1 << 0;

/// Code of the task is on the stack: its future is being polled (`FUTURE` is set) or destroyed
/// (`FUTURE` is clear). Neither may be begun again inside it.
pub(super) const RUNNING: u8 = 1 << 1;

/// The stage holds the future. Cleared before the future's destructor is called, so that nothing
/// looks at it again even if the destructor panics.
pub(super) const FUTURE: u8 = 1 << 2;

/// The stage holds the output, for the join handle to take. Cleared before it is taken or dropped.
pub(super) const OUTPUT: u8 = 1 << 3;

/// The future will not be polled again: the task was cancelled, abandoned, or panicked.
pub(super) const CLOSED: u8 = 1 << 4;

/// The executor has not been told yet that the task is over, and wants it to be scheduled for that.
/// Cleared by the `run` that answers true, and by `shutdown`. Once clear, wakes do nothing.
pub(super) const LIVE: u8 = 1 << 5;

/// The [`OwnedTask`](super::OwnedTask), the executor's own reference, exists.
pub(super) const REGISTERED: u8 = 1 << 6;

/// The [`JoinHandle`](super::JoinHandle) exists. Without it the task cannot be cancelled, nor its
/// output be taken.
pub(super) const HANDLE: u8 = 1 << 7;

/// What keeps the owner's side of the task alive (`OWNED` in the word) while any of it is set.
pub(super) const HOLDS: u8 = SCHEDULED | RUNNING | REGISTERED | HANDLE;

impl State {
    /// A task just spawned: scheduled, not polled yet, held by executor and join handle.
    pub(super) fn new() -> Self {
        Self(Cell::new(SCHEDULED | FUTURE | LIVE | REGISTERED | HANDLE))
    }

    /// All flags, to test several at once.
    #[inline]
    pub(super) fn flags(&self) -> u8 {
        self.0.get()
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub(super) fn has(&self, flags: u8) -> bool {
        self.0.get() & flags != 0
    }

    /// Sets `flags`.
    #[inline]
    pub(super) fn insert(&self, flags: u8) {
        self.0.set(self.0.get() | flags);
    }

    /// Clears `flags`.
    #[inline]
    pub(super) fn remove(&self, flags: u8) {
        self.0.set(self.0.get() & !flags);
    }
}

/// All that several threads see of a task: its references from outside, and whether a remote wake
/// is under way.
///
/// ```text
///   bit  63 ................................ 3      2        1         0
///        wakers + remote wakes under way          OWNED   WOKEN   REMOTE_WAKE
/// ```
///
/// The owner's side (registry, join handle, runnable, a poll in progress) counts as one reference
/// however many of these there are: they are flags in [`State`], so that creating and dropping them
/// costs no atomic operation. Giving up the last reference frees the memory.
pub(super) struct Word(AtomicUsize);

/// A remote wake is under way to the owner and one counted reference belongs to it; or a remote
/// wake came back because the owner is gone, and no other is sent.
const REMOTE_WAKE: usize = 1 << 0;

/// The remote wake asks for a poll. Without this flag it only asks the owner to look whether
/// anybody can still wake the task. Never set without `REMOTE_WAKE`.
const WOKEN: usize = 1 << 1;

/// The owner's side refers to the task. Cleared once, by the owner thread, when future and output
/// are gone; afterwards the task is bare memory.
const OWNED: usize = 1 << 2;

/// One waker, or one remote wake.
const ONE: usize = 1 << 3;

/// The part of the word that keeps the memory.
const REFERENCES: usize = !(REMOTE_WAKE | WOKEN);

/// As with `Arc`: so many references are leaks by `mem::forget`, and wrapping round would free a
/// live task. The distance to the top leaves room for every thread that is past the check.
const WORD_MAX: usize = isize::MAX as usize;

/// What is left to do for a thread that gave up its reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Released {
    /// Nothing: others refer to the task.
    Shared,
    /// Free the memory: this was the last reference of all.
    Last,
    /// On the owner thread: only the owner's side is left, so look whether the task is abandoned.
    OnlyOwned,
    /// On another thread, which cannot look: send the remote wake that was just counted, then
    /// release again. This thread still has its reference.
    Send,
}

/// What the owner finds in a remote wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    /// It asks for a poll.
    pub(super) is_woken: bool,
    /// The owner's side is there to act on it.
    pub(super) is_owned: bool,
    /// Its reference was the last of all: free the memory.
    pub(super) is_last: bool,
}

impl Word {
    /// A task just spawned: no waker yet.
    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(OWNED))
    }

    /// Counts one more waker, made from one that exists.
    #[inline]
    pub(super) fn retain(&self) {
        // Relaxed, as with `Arc`: whoever clones holds a reference, so nothing is freed meanwhile,
        // and handing the clone to another thread brings its own ordering.
        if self.0.fetch_add(ONE, Ordering::Relaxed) > WORD_MAX {
            process::abort();
        }
    }

    /// Gives up one waker. If it was the last one, `is_owner` is asked, and then `is_idle`: whether
    /// the task's code is not running, which could have lent a waker to any thread.
    #[inline]
    pub(super) fn release(
        &self,
        is_owner: impl Fn() -> bool,
        is_idle: impl Fn() -> bool,
    ) -> Released {
        // Acquire: for the owner it may be all that orders what others did with the task.
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let is_only_waker = word == OWNED | ONE;
            let is_sent = is_only_waker && !is_owner();
            if is_only_waker && !is_sent && is_idle() {
                // References are made only from references: no other thread can reach the word,
                // and nothing atomic is needed. Most wakers are dropped here.
                self.0.store(OWNED, Ordering::Relaxed);
                return Released::OnlyOwned;
            }
            let next = if is_sent {
                // The thread keeps its own reference while it sends: the remote wake's may be given
                // up by the owner, and the task freed, before the sending has
                // returned.
                (word + ONE) | REMOTE_WAKE
            } else {
                word - ONE
            };
            match self.replace(word, next) {
                Ok(()) if is_sent => return Released::Send,
                Ok(()) if is_only_waker => return Released::OnlyOwned,
                Ok(()) if next & REFERENCES == 0 => return Released::Last,
                Ok(()) => return Released::Shared,
                Err(_) => word = self.0.load(Ordering::Acquire),
            }
        }
    }

    /// Any thread, through a waker: the owner shall poll the task. True: send the remote wake,
    /// which was just counted.
    #[must_use]
    pub(super) fn mark_woken(&self) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & OWNED == 0 {
                return false;
            }
            let is_sent = word & REMOTE_WAKE == 0;
            let next = if is_sent {
                (word + ONE) | REMOTE_WAKE | WOKEN
            } else {
                // Written also where it changes nothing: the poll that the remote wake under way
                // brings is to see what this thread did before it woke the task.
                word | WOKEN
            };
            match self.replace(word, next) {
                Ok(()) => return is_sent,
                Err(now) => word = now,
            }
        }
    }

    /// Owner: a remote wake has arrived. Gives up its reference and opens the way for the next.
    pub(super) fn deliver(&self) -> Delivered {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            debug_assert!(
                word & REMOTE_WAKE != 0 && word >= ONE,
                "a remote wake is counted"
            );
            let next = (word - ONE) & REFERENCES;
            match self.replace(word, next) {
                Ok(()) => {
                    return Delivered {
                        is_woken: word & WOKEN != 0,
                        is_owned: word & OWNED != 0,
                        is_last: next == 0,
                    };
                }
                Err(now) => word = now,
            }
        }
    }

    /// Any thread: the owner is gone and the remote wake comes back. True: free the memory, its
    /// reference was the last.
    ///
    /// `REMOTE_WAKE` stays set: further wakes find a remote wake under way and send none.
    #[must_use]
    pub(super) fn undelivered(&self) -> bool {
        let word = self.0.fetch_sub(ONE, Ordering::AcqRel);
        debug_assert!(
            word & REMOTE_WAKE != 0 && word >= ONE,
            "a remote wake is counted"
        );
        (word - ONE) & REFERENCES == 0
    }

    /// Owner: whether there is no reference from outside, so that nothing can wake the task.
    #[inline]
    pub(super) fn is_only_owned(&self) -> bool {
        // Acquire: pairs with the release by which each reference was given up before. As things
        // stand, only operations of the owner's own leave this value; the load does not
        // lean on that.
        self.0.load(Ordering::Acquire) == OWNED
    }

    /// Owner: its side refers to the task no more. True: free the memory, it was the last.
    #[inline]
    #[must_use]
    pub(super) fn release_owner(&self) -> bool {
        // References are made only from references. If ours is the only one, no other thread can
        // reach the word any more, and nothing atomic is needed to give it up.
        self.is_only_owned() || self.0.fetch_and(!OWNED, Ordering::AcqRel) & REFERENCES == OWNED
    }

    /// Release: what this thread did with the task happens before the owner acts on it, and before
    /// the last reference frees it. Acquire: if that is ours, we come after all the others.
    #[inline]
    fn replace(&self, word: usize, next: usize) -> Result<(), usize> {
        self.0
            .compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Relaxed)
            .map(drop)
    }
}
