//! The kernel's io_uring, and the way into it.
//!
//! By its descriptor, the kernel finds a ring among all descriptors of the process, and counts a
//! reference to it for each call as soon as the process has a second thread. Each thread has a table
//! of sixteen rings besides (`IORING_REGISTER_RING_FDS`); by its number in there, a ring is found
//! without either: a round through the kernel that does nothing takes 13 % less time.
//!
//! The table belongs to the thread alone. A forked child has another, in which the number may stand
//! for a ring of its own. What is in the table stays open, whether or not its descriptor does.
//!
//! Putting it there and taking it out costs some microseconds, which an executor that is soon over
//! would pay for nothing. So it is done when the ring has been entered [`ENTERS`] times.

#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use io_uring::{IoUring, Submitter};

use crate::sys::fork_detect::Origin;

/// After so many calls it is to be expected that the next ones make up for the registration.
pub(super) const ENTERS: u32 = 64;

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// How many rings this process has.
pub(super) fn open() -> usize {
    OPEN.load(Ordering::Relaxed)
}

/// See the module. Made, used and dropped on one thread.
pub(super) struct Instance {
    /// Refers to `ring`.
    by_descriptor: Submitter<'static>,
    /// Refers to `ring`, and knows its number in the table of this thread.
    by_number: OnceCell<Submitter<'static>>,
    /// Calls until the registration; zero if there has been one, or none is wanted.
    enters_left: Cell<u32>,
    /// From a box, which is freed with this.
    ring: NonNull<IoUring>,
    origin: Origin,
}

impl Instance {
    /// `origin` is this process. `registers`: the kernel has the table.
    pub(super) fn new(ring: IoUring, origin: Origin, registers: bool) -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        let ring = NonNull::from(Box::leak(Box::new(ring)));
        Instance {
            by_descriptor: submitter(ring),
            by_number: OnceCell::new(),
            enters_left: Cell::new(if registers { ENTERS } else { 0 }),
            ring,
            origin,
        }
    }

    #[inline]
    pub(super) fn submitter(&self) -> &Submitter<'static> {
        self.by_number.get().unwrap_or(&self.by_descriptor)
    }

    /// The ring is about to be entered.
    #[inline]
    pub(super) fn count_enter(&self) {
        let left = self.enters_left.get();
        if left > 0 {
            self.enters_left.set(left - 1);
            if left == 1 {
                self.register();
            }
        }
    }

    /// Puts the ring into the table of this thread. If no place is left, its descriptor is used as
    /// before.
    #[cold]
    fn register(&self) {
        let mut submitter = submitter(self.ring);
        if submitter.register_ring_fd().is_ok() {
            let _first = self.by_number.set(submitter);
        }
    }

    /// The process that it belongs to.
    #[inline]
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }
}

impl Deref for Instance {
    type Target = IoUring;

    #[inline]
    fn deref(&self) -> &IoUring {
        // SAFETY: the box is there until `drop`, and nothing refers to it exclusively before.
        unsafe { self.ring.as_ref() }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            // Leaked: where its queues were, others of the child may be mapped by now.
            return;
        }
        // Otherwise the kernel would keep the ring, and the memory that it knows, until the thread
        // ends.
        if let Some(submitter) = self.by_number.get_mut() {
            let _ = submitter.unregister_ring_fd();
        }
        OPEN.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: it came from a box, and nothing refers to it from here on: submitters have no
        // destructor.
        drop(unsafe { Box::from_raw(self.ring.as_ptr()) });
    }
}

/// For an [`Instance`], which keeps it no longer than `ring`, its own box.
fn submitter(ring: NonNull<IoUring>) -> Submitter<'static> {
    // SAFETY: the box stays where it is until the instance is dropped, which is the last to use the
    // submitter. A shared reference is all that is made of it until then.
    unsafe { ring.as_ref() }.submitter()
}
