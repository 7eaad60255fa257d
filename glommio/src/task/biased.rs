//! A reference count that costs its owner's thread no atomic operation.
//!
//! Every task refers to what its executor shares with other threads, and nearly every task is made
//! and freed on the executor's own thread. So the count has two halves, after Choi, Shull and
//! Torrellas, "Biased Reference Counting" (PACT 2018):
//!
//! ```text
//!   local    plain     + made on the owner's thread, - given up there
//!   shared   atomic    BIAS, - given up elsewhere
//! ```
//!
//! While the owner's end lives, the bias keeps `shared` far from zero and nothing is freed.
//! When it is dropped it trades the bias for the local half. From then on `shared` is the whole
//! count, and the thread that brings it to zero frees.

#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::loom::Cell;
use crate::loom::sync::atomic::{AtomicIsize, Ordering};

/// Something that can tell whether it is looked at from the thread of its owner's end.
pub(crate) trait Local {
    /// Whether this is the thread that made the [`Biased`], which has not been dropped yet.
    ///
    /// Answering true elsewhere or later is unsound. Must work at any time and must not panic.
    fn is_local(&self) -> bool;
}

/// The owner's end: makes references. Stays on its thread.
pub(crate) struct Biased<T> {
    counted: NonNull<Counted<T>>,
    _stays: PhantomData<*const T>,
}

/// A reference. Any thread may have it and drop it.
pub(crate) struct BiasedRef<T: Local>(NonNull<Counted<T>>);

struct Counted<T> {
    local: Cell<isize>,
    shared: AtomicIsize,
    value: T,
}

/// More than there can be references.
const BIAS: isize = isize::MAX / 2;

// SAFETY: a reference lends `&T` and may be the one that drops the `T`, hence both bounds, as with
// `Arc`. Of the count it touches the plain half only where `Local` says that it is on the owner's
// thread.
unsafe impl<T: Local + Send + Sync> Send for BiasedRef<T> {}
// SAFETY: as above; it cannot be cloned.
unsafe impl<T: Local + Send + Sync> Sync for BiasedRef<T> {}

impl<T: Local> Biased<T> {
    pub(crate) fn new(value: T) -> Self {
        let counted = Box::new(Counted {
            local: Cell::new(0),
            shared: AtomicIsize::new(BIAS),
            value,
        });
        Biased {
            counted: NonNull::from(Box::leak(counted)),
            _stays: PhantomData,
        }
    }

    /// One more reference.
    #[inline]
    pub(crate) fn refer(&self) -> BiasedRef<T> {
        // No overflow: making that many takes centuries.
        let local = &self.counted().local;
        local.set(local.get() + 1);
        BiasedRef(self.counted)
    }

    #[inline]
    fn counted(&self) -> &Counted<T> {
        // SAFETY: the bias keeps it until this end is dropped.
        unsafe { self.counted.as_ref() }
    }
}

impl<T> Drop for Biased<T> {
    fn drop(&mut self) {
        // SAFETY: the bias keeps it until the next statement.
        let counted = unsafe { self.counted.as_ref() };
        // This thread's references are from now on given up atomically, for the value is local no
        // more.
        let change = counted.local.get() - BIAS;
        // SAFETY: this end's share of the count is the bias.
        unsafe { give_up(self.counted, change) };
    }
}

impl<T: Local> Drop for BiasedRef<T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_local() {
            // SAFETY: this reference keeps it.
            let local = unsafe { &self.0.as_ref().local };
            // The owner's end is alive, so that this cannot be the end.
            local.set(local.get() - 1);
        } else {
            // SAFETY: this reference is one of the count.
            unsafe { give_up(self.0, -1) };
        }
    }
}

/// Changes the shared half; frees if nothing is left of it.
///
/// # Safety
/// What is given up is the caller's, and the caller does not use `counted` any more.
unsafe fn give_up<T>(counted: NonNull<Counted<T>>, change: isize) {
    // SAFETY: what the caller gives up kept it until now.
    let shared = unsafe { &counted.as_ref().shared };
    // Release: what this thread did with the value comes before its end. Acquire: if that is us, we
    // come after all the others.
    if shared.fetch_add(change, Ordering::AcqRel) + change == 0 {
        // SAFETY: the count is zero and stays so, since only the owner's end makes references and
        // it has traded its bias; `new` leaked the box.
        drop(unsafe { Box::from_raw(counted.as_ptr()) });
    }
}

impl<T> Deref for Biased<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the bias keeps it.
        unsafe { &self.counted.as_ref().value }
    }
}

impl<T: Local> Deref for BiasedRef<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this reference keeps it.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T: fmt::Debug> fmt::Debug for Biased<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
