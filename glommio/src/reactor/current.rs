//! Which reactor serves this thread now.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::{Rc, Weak};

use super::Reactor;
use crate::clock::{self, Clock};

thread_local! {
    /// Without a destructor, as in `executor/current.rs`; [`Entered`] takes the reactor out.
    static CURRENT: ManuallyDrop<RefCell<Option<Rc<Reactor>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The reactor of the executor that runs on this thread.
///
/// # Panics
///
/// Panics if no executor runs here.
#[inline]
pub(crate) fn current() -> Weak<Reactor> {
    CURRENT
        .with(|current| current.borrow().as_ref().map(Rc::downgrade))
        .expect(NONE)
}

/// As [`current`].
pub(crate) fn expect() -> Rc<Reactor> {
    try_current().expect(NONE)
}

const NONE: &str = "no LocalExecutor is running on this thread";

/// The reactor of the executor that runs here, if one does.
pub(crate) fn try_current() -> Option<Rc<Reactor>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Whether an executor runs here.
pub(crate) fn is_any() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Whether the running task should give the thread back; false if no executor runs here.
pub(super) fn need_preempt() -> bool {
    // It may run wakers, which may enter another executor, so nothing is borrowed.
    try_current().is_some_and(|reactor| reactor.need_preempt())
}

/// Makes `reactor` and its clock current until the guard is dropped, which brings those before
/// back.
pub(crate) fn enter(reactor: Rc<Reactor>) -> Entered {
    let clock = clock::replace(reactor.clock.get());
    Entered(replace(Some(reactor)), clock)
}

fn replace(reactor: Option<Rc<Reactor>>) -> Option<Rc<Reactor>> {
    CURRENT.with(|current| current.replace(reactor))
}

/// Restores the former current reactor when dropped.
pub(crate) struct Entered(Option<Rc<Reactor>>, Clock);

impl Drop for Entered {
    fn drop(&mut self) {
        let left = replace(self.0.take());
        let clock = clock::replace(self.1);
        if let Some(left) = &left {
            left.clock.set(clock);
            left.leave();
        }
        drop(left);
    }
}
