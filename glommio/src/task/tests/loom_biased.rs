//! The end of a [`Biased`] under every interleaving: the last thread frees, once, after all the
//! others.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::SeqCst;

use loom::cell::UnsafeCell;
use loom::thread::{self, ThreadId};

use super::loom_world::bounded;
use crate::task::{Biased, Local};

/// Its owner's end lives on one thread for as long as `is_ended` is not set there.
struct Value {
    owner: ThreadId,
    is_ended: UnsafeCell<bool>,
    /// Read by all, written by the destructor: loom reports a read that does not come before it.
    used: UnsafeCell<u32>,
    drops: Arc<Count>,
}

// SAFETY: `is_ended` is the owner thread's, and loom checks `used`.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Local for Value {
    fn is_local(&self) -> bool {
        // SAFETY: on the owner's thread, whose plain cell this is.
        thread::current().id() == self.owner && !self.is_ended.with(|it| unsafe { *it })
    }
}

impl Value {
    fn look(&self) {
        // SAFETY: nobody writes before the destructor, which is what loom checks here.
        self.used.with(|used| assert_eq!(unsafe { *used }, 7));
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the last one, which loom checks.
        self.used.with_mut(|used| unsafe { *used = 0 });
        self.drops.fetch_add(1, SeqCst);
    }
}

#[run_test(bounded)]
fn loom_biased_count_ends_once() {
    let drops = Arc::new(Count::new(0));
    let owner = Biased::new(Value {
        owner: thread::current().id(),
        is_ended: UnsafeCell::new(false),
        used: UnsafeCell::new(7),
        drops: Arc::clone(&drops),
    });
    let threads = [owner.refer(), owner.refer()].map(|reference| {
        thread::spawn(move || {
            reference.look();
            drop(reference);
        })
    });
    let (early, late) = (owner.refer(), owner.refer());
    early.look();
    drop(early);
    // SAFETY: this is the owner's thread.
    owner.is_ended.with_mut(|it| unsafe { *it = true });
    drop(owner);
    late.look();
    drop(late);
    for thread in threads {
        thread.join().expect("a thread does not panic");
    }
    assert_eq!(drops.load(SeqCst), 1, "dropped once");
}
