//! A task that passes notifications on which are not acted on.
//!
//! A future that waits keeps its place while it is kept, also if its task has given it up: as an arm
//! of a `select!` in which another one won, say. The next notification goes to it, its task is woken
//! and does not look, and another future would wait beside an item, or beside room. No end can know
//! that, so where several futures wait at one end, a task of its own stands by. It is woken with
//! each notification that leaves others waiting, and if [`TIME_TO_ACT`] later there is still what
//! they wait for, notifies the next. The task is in [`endpoint`](super::endpoint); here is how it is called.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::waiters::Waiters;

/// How long a task that was notified has to take what it waited for. One that is late loses nothing
/// but its turn.
pub(super) const TIME_TO_ACT: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Default)]
pub(super) struct Standby {
    is_called: AtomicBool,
    is_over: AtomicBool,
    task: Waiters,
}

impl Standby {
    /// Others wait besides those that were notified.
    pub(super) fn call(&self) {
        self.is_called.store(true, Ordering::Relaxed);
        self.task.notify_one();
    }

    /// The end is gone.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.notify_one();
    }

    /// Waits for a call. False if the end is gone.
    pub(super) async fn is_called(&self) -> bool {
        let look = || match self.is_over.load(Ordering::Relaxed) {
            true => Some(false),
            false => self
                .is_called
                .swap(false, Ordering::Relaxed)
                .then_some(true),
        };
        self.task.wait(look).await
    }
}
