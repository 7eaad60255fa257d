//! The simulation that runs on a thread.

use std::cell::RefCell;
use std::io;
use std::mem::ManuallyDrop;
use std::rc::Rc;

use super::world::World;

thread_local! {
    /// The simulation that runs on this thread. Without a destructor, as in `executor/current.rs`.
    static CURRENT: ManuallyDrop<RefCell<Option<Rc<World>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// The simulation that runs on this thread, if one does.
#[inline]
pub(crate) fn current() -> Option<Rc<World>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// See [`World::of_host`].
pub(crate) fn of_host<T>(made: io::Result<T>) -> io::Result<T> {
    match current() {
        Some(world) => world.of_host(made),
        None => made,
    }
}

/// Makes `world` that of this thread until the guard is dropped.
///
/// # Panics
///
/// Panics inside of another simulation.
pub(crate) fn enter(world: Rc<World>) -> Entered {
    CURRENT.with(|current| {
        let before = current.replace(Some(world));
        assert!(
            before.is_none(),
            "a simulation is running on this thread already"
        );
    });
    Entered(())
}

/// See [`enter`].
pub(crate) struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        let left = CURRENT.with(|current| current.take());
        drop(left);
    }
}
