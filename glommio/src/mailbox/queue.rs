//! The queue through which other threads hand wakes to an executor.
//!
//! A list that is linked through the wakes themselves, the newest first (Treiber, "Systems
//! Programming: Coping with Parallelism", IBM RJ 5118, 1986), of which the owner takes all there is
//! at once:
//!
//! ```text
//!   push:   newest ──▶ C ──▶ B ──▶ A        exchange `newest` for a wake that links to it, or try again
//!   take:   exchange `newest` for nothing;  turned round: A ──▶ B ──▶ C
//!   close:  exchange `newest` for `CLOSED`, which no push replaces
//! ```
//!
//! Each of the three takes effect in one atomic step. A thread that is descheduled in the middle of
//! a push has either pushed nothing yet or is done, so neither the owner nor another producer ever
//! waits for it. A queue whose producers take a place first and fill it afterwards lacks that: its
//! consumer has to wait, or to tell a queue that is empty from one that is not ready; and after it
//! was closed it must find out which producers are still about to fill their places. No address is
//! compared with one that was read before a link was followed, so it does not matter that the same
//! wake may be pushed, taken and pushed again meanwhile (the ABA problem).
//!
//! It has no bound of its own, and needs none: a wake is in the queue at most once, since it brings
//! one link, and the wakes of a task coalesce, so that there are at most as many as tasks.
//!
//! Cost: a push is one compare-exchange, and a swap to notify the owner; taking is a swap and, for
//! each wake, one more look at memory that is about to be used. Nothing is allocated.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use super::sleep::{Notifier, Signal, WakeSignal};
use crate::loom::UnsafeCell;
use crate::loom::sync::atomic::{AtomicPtr, Ordering};

/// What a wake brings along to be in the queue.
pub(crate) struct Link(UnsafeCell<*mut Link>);

impl Link {
    pub(crate) fn new() -> Self {
        Link(UnsafeCell::new(ptr::null_mut()))
    }

    /// Has `link` lead to `next`. Returns where it led before.
    ///
    /// # Safety
    ///
    /// The link is alive, and the caller's alone.
    unsafe fn lead(link: NonNull<Link>, next: *mut Link) -> *mut Link {
        // SAFETY: promised by the caller.
        unsafe { link.as_ref().0.with_mut(|place| ptr::replace(place, next)) }
    }
}

/// Something that can be in the queue.
///
/// # Safety
///
/// From `into_link` until it is given to `from_link`, the link stays where it is, and nothing else
/// touches it.
pub(crate) unsafe trait Linked: Send {
    /// Gives itself up for its link.
    fn into_link(self) -> NonNull<Link>;

    /// # Safety
    ///
    /// `link` came from `into_link` of this type, and has not been given back since.
    unsafe fn from_link(link: NonNull<Link>) -> Self;
}

/// Wakes from any thread to one owner, which is notified of each.
///
/// Those of one thread are taken in the order in which it pushed them. Dropping the queue drops
/// what was not taken: a wake must be harmless to drop on any thread.
pub(crate) struct RemoteWakeQueue<W: Linked, S = WakeSignal> {
    newest: AtomicPtr<Link>,
    notifier: Arc<Notifier<S>>,
    _wakes: PhantomData<fn(W) -> W>,
}

/// The newest of a queue that takes in nothing more. Not an address that a link can have.
const CLOSED: *mut Link = ptr::without_provenance_mut(1);
const _: () = assert!(align_of::<Link>() > 1);

impl<W: Linked, S: Signal> RemoteWakeQueue<W, S> {
    /// An open, empty queue whose owner looks when `notifier` tells it to.
    pub(crate) fn new(notifier: Arc<Notifier<S>>) -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
            notifier,
            _wakes: PhantomData,
        }
    }

    /// Any thread: leaves a wake and notifies the owner.
    ///
    /// # Errors
    /// The queue is closed, the owner gone: the wake comes back.
    pub(crate) fn push(&self, wake: W) -> Result<(), W> {
        let link = wake.into_link();
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            if newest == CLOSED {
                // SAFETY: it came from there just now, and the queue has not got it.
                return Err(unsafe { W::from_link(link) });
            }
            // SAFETY: until the exchange succeeds the link is ours alone.
            unsafe { Link::lead(link, newest) };
            // Release: the thread that takes the wake sees its link, and what was done to it
            // before. That goes for each in the list, for pushes on top of it are
            // read-modify-writes.
            match self.newest.compare_exchange_weak(
                newest,
                link.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                // The wake may be gone by now.
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        self.notifier.notify();
        Ok(())
    }

    /// Owner: all wakes that are there.
    pub(crate) fn take(&self) -> Taken<W> {
        // What is not there yet is told of by its notification. A closed queue is left closed.
        match self.newest.load(Ordering::Relaxed) {
            newest if newest.is_null() || newest == CLOSED => Taken::default(),
            _ => self.replace(ptr::null_mut()),
        }
    }
}

impl<W: Linked, S> RemoteWakeQueue<W, S> {
    /// Owner, before it dies: from now on nothing is accepted. Returns what was accepted before.
    ///
    /// That should be dropped: a wake that refers to this queue, as a task does, would otherwise
    /// keep it alive forever.
    pub(crate) fn close(&self) -> Taken<W> {
        self.replace(CLOSED)
    }

    fn replace(&self, newest: *mut Link) -> Taken<W> {
        // Acquire: see `push`.
        let taken = self.newest.swap(newest, Ordering::Acquire);
        if taken == CLOSED {
            return Taken::default();
        }
        Taken::oldest_first(taken)
    }
}

impl<W: Linked, S> Drop for RemoteWakeQueue<W, S> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<W: Linked, S> fmt::Debug for RemoteWakeQueue<W, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let newest = self.newest.load(Ordering::Relaxed);
        f.debug_struct("RemoteWakeQueue")
            .field("is_empty", &(newest.is_null() || newest == CLOSED))
            .field("is_closed", &(newest == CLOSED))
            .finish()
    }
}

/// Wakes that were taken, the oldest first. Dropping it drops the rest.
pub(crate) struct Taken<W: Linked> {
    /// The head of a list whose links, and wakes, are this value's alone.
    oldest: *mut Link,
    _wakes: PhantomData<W>,
}

impl<W: Linked> Taken<W> {
    /// Turns the list round that begins with `newest` and is the caller's alone.
    fn oldest_first(mut newest: *mut Link) -> Self {
        let mut oldest = ptr::null_mut();
        while let Some(link) = NonNull::new(newest) {
            // SAFETY: the link is the caller's alone.
            newest = unsafe { Link::lead(link, oldest) };
            oldest = link.as_ptr();
        }
        Taken {
            oldest,
            _wakes: PhantomData,
        }
    }
}

impl<W: Linked> Iterator for Taken<W> {
    type Item = W;

    fn next(&mut self) -> Option<W> {
        let link = NonNull::new(self.oldest)?;
        // SAFETY: the link is ours alone until the wake is handed out, after this.
        self.oldest = unsafe { Link::lead(link, ptr::null_mut()) };
        // SAFETY: `push` got it from `into_link`, and each link of a list is handed out once.
        Some(unsafe { W::from_link(link) })
    }
}

impl<W: Linked> Drop for Taken<W> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<W: Linked> Default for Taken<W> {
    /// None.
    fn default() -> Self {
        Self::oldest_first(ptr::null_mut())
    }
}
