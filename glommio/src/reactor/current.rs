//! Which reactor serves this thread now.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use super::Reactor;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// The reactor of the executor that runs on this thread.
///
/// # Panics
///
/// Panics if no executor runs here.
pub(crate) fn current() -> Weak<Reactor> {
    CURRENT
        .with_borrow(|current| current.as_ref().map(Rc::downgrade))
        .expect("no LocalExecutor is running on this thread")
}

/// Makes `reactor` current until the guard is dropped, which brings the one before it back.
/// While the thread's locals are being destroyed, none is current, and none becomes so.
pub(crate) fn enter(reactor: Rc<Reactor>) -> Entered {
    Entered(replace(Some(reactor)))
}

fn replace(reactor: Option<Rc<Reactor>>) -> Option<Rc<Reactor>> {
    CURRENT
        .try_with(|current| current.replace(reactor))
        .unwrap_or(None)
}

/// Restores the former current reactor when dropped.
pub(crate) struct Entered(Option<Rc<Reactor>>);

impl Drop for Entered {
    fn drop(&mut self) {
        let left = replace(self.0.take());
        if let Some(left) = &left {
            left.turn_time.forget();
        }
        drop(left);
    }
}
