//! Which executor runs on this thread now.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;

use super::{Core, Owner};
use crate::reactor;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };

    /// Where the owner is that [`CURRENT`] has: a number to compare, with nothing to borrow or destroy.
    static OWNER: Cell<*const Owner> = const { Cell::new(ptr::null()) };
}

/// Whether the executor of this thread is the one that other threads know as `owner`.
#[inline]
pub(super) fn is_owner(owner: &Owner) -> bool {
    ptr::eq(OWNER.get(), owner)
}

/// Calls `f` with the executor of this thread, if one is running (also not during the destruction of
/// the thread's locals).
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&Rc<Core>>) -> R) -> R {
    // `f` may run user code that enters another executor, so no borrow lives across it.
    let core = CURRENT
        .try_with(|current| current.borrow().clone())
        .unwrap_or(None);
    f(core.as_ref())
}

/// Calls `f` with the executor of this thread; `f` runs no user code.
#[inline]
pub(super) fn peek<R>(f: impl FnOnce(Option<&Rc<Core>>) -> R) -> R {
    let mut f = Some(f);
    let mut call = |core: Option<&Rc<Core>>| f.take().expect("called once")(core);
    CURRENT
        .try_with(|current| call(current.borrow().as_ref()))
        .unwrap_or_else(|_| call(None))
}

/// The executor of this thread.
///
/// # Panics
///
/// Panics if none is running.
pub(crate) fn expect() -> Rc<Core> {
    peek(|core| core.cloned()).expect("no LocalExecutor is running on this thread")
}

/// Makes `core` and its reactor current until the guard is dropped, which brings back what was before.
/// While the thread's locals are being destroyed, none is current, and none becomes so.
pub(super) fn enter(core: Rc<Core>) -> Entered {
    Entered {
        _reactor: reactor::current::enter(Rc::clone(core.reactor())),
        before: replace(Some(core)),
    }
}

fn replace(core: Option<Rc<Core>>) -> Option<Rc<Core>> {
    let owner = core
        .as_ref()
        .map_or(ptr::null(), |core| &raw const *core.owner);
    CURRENT
        .try_with(|current| {
            OWNER.set(owner);
            current.replace(core)
        })
        .unwrap_or(None)
}

/// See [`enter`].
pub(super) struct Entered {
    before: Option<Rc<Core>>,
    _reactor: reactor::current::Entered,
}

impl Drop for Entered {
    fn drop(&mut self) {
        drop(replace(self.before.take()));
    }
}
