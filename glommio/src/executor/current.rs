//! Which executor runs on this thread now.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::core::Core;
use super::remote;
use crate::reactor::{self, Reactor};
use crate::shares::TaskQueueHandle;

thread_local! {
    /// Without a destructor, so that it is there, and right, for as long as any code runs on the thread: the
    /// destructors of other thread-locals wake tasks and run executors. [`Entered`] takes the executor
    /// out. Where `run` never returns (`process::exit` in a task), the executor stays in here, as alive
    /// as the frames of that `run`.
    static CURRENT: ManuallyDrop<RefCell<Option<Rc<Core>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };

    /// Gone once the thread's locals are being destroyed, if it was there before those that are left.
    static WITNESS: Witness = const { Witness };
}

struct Witness;

impl Drop for Witness {
    fn drop(&mut self) {}
}

/// Whether the thread's locals are being destroyed, out of which no panic may leave. Locals that
/// were first used later than any executor on this thread are destroyed before that can be seen.
pub(super) fn is_thread_ending() -> bool {
    WITNESS.try_with(|_| ()).is_err()
}

/// Calls `f` with the executor of this thread, if one is running.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(Option<&Rc<Core>>) -> R) -> R {
    // `f` may run user code that enters another executor, so no borrow lives across it.
    let core = peek(|core| core.cloned());
    f(core.as_ref())
}

/// Calls `f` with the executor of this thread; `f` runs no user code.
#[inline]
pub(super) fn peek<R>(f: impl FnOnce(Option<&Rc<Core>>) -> R) -> R {
    // `with`, which has to be told that it should be inlined, as `try_with` is.
    let called = CURRENT.try_with(|current| f(current.borrow().as_ref()));
    called.unwrap_or_else(|_| unreachable!("it has no destructor"))
}

/// The executor of this thread.
///
/// # Panics
///
/// Panics if none is running.
pub(crate) fn expect() -> Rc<Core> {
    peek(|core| core.cloned()).expect("no LocalExecutor is running on this thread")
}

/// The queue of the task that is being polled, if that is one of the executor of `reactor`; else
/// the default queue.
pub(crate) fn queue_at(reactor: &Rc<Reactor>) -> TaskQueueHandle {
    let queue = |core: &Rc<Core>| {
        let is_here = Rc::ptr_eq(core.reactor(), reactor);
        is_here.then(|| core.current_queue())
    };
    peek(|core| core.and_then(queue)).unwrap_or_default()
}

/// Makes `core` and its reactor current until the guard is dropped, which brings back what was
/// before.
pub(super) fn enter(core: Rc<Core>) -> Entered {
    // From its first use on it can tell.
    let _ = WITNESS.try_with(|_| ());
    Entered {
        _reactor: reactor::current::enter(Rc::clone(core.reactor())),
        before: replace(Some(core)),
    }
}

fn replace(core: Option<Rc<Core>>) -> Option<Rc<Core>> {
    remote::set_current(core.as_ref().map(|core| &core.remote));
    CURRENT.with(|current| current.replace(core))
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
