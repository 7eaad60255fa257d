//! A waker whose clones run code of the test.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

thread_local! {
    /// What the waker does when it is cloned.
    pub static ON_CLONE: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
    /// How often such a waker was woken.
    pub static LOUD_WAKES: Cell<usize> = const { Cell::new(0) };
}

/// A waker whose clones run code of the test.
pub fn waker_with_a_loud_clone() -> Waker {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());
    fn wake(_: *const ()) {
        LOUD_WAKES.set(LOUD_WAKES.get() + 1);
    }
    fn clone(_: *const ()) -> RawWaker {
        ON_CLONE.with_borrow(|on_clone| {
            if let Some(on_clone) = on_clone {
                on_clone();
            }
        });
        RawWaker::new(ptr::null(), &VTABLE)
    }
    // SAFETY: the functions do not look at the pointer, and hold on any thread: the code that a
    // clone runs belongs to the thread on which it runs.
    unsafe { Waker::new(ptr::null(), &VTABLE) }
}
