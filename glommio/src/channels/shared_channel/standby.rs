//! A task that passes notifications on which are not acted on.
//!
//! A future that waits keeps its place while it is kept, also if its task has given it up: as an arm
//! of a `select!` in which another one won, say. The next notification goes to it, its task is woken
//! and does not look, and another future would wait beside an item, or beside room. No end can know
//! that, so where several futures wait at one end, a task of its own stands by. It is woken with
//! each notification that leaves others waiting, and if [`TIME_TO_ACT`] later there is still what
//! they wait for, notifies the next. The task is in [`endpoint`](super::endpoint); here is how it is called.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::reactor::wake;

/// How long a task that was notified has to take what it waited for. One that is late loses nothing
/// but its turn.
pub(super) const TIME_TO_ACT: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Default)]
pub(super) struct Standby {
    state: Mutex<StandbyState>,
}

#[derive(Default)]
struct StandbyState {
    is_called: bool,
    is_over: bool,
    waker: Option<Waker>,
}

impl Standby {
    /// Others wait besides those that were notified.
    pub(super) fn call(&self) {
        let mut state = self.lock();
        state.is_called = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(wake);
    }

    /// The end is gone.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.call();
    }

    fn lock(&self) -> MutexGuard<'_, StandbyState> {
        // Nothing under the lock panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call. False if the end is gone.
    pub(super) async fn is_called(&self) -> bool {
        poll_fn(|cx| {
            let own = cx.waker().clone();
            let mut state = self.lock();
            if state.is_over {
                return Poll::Ready(false);
            }
            if std::mem::take(&mut state.is_called) {
                return Poll::Ready(true);
            }
            let left = state.waker.replace(own);
            drop(state);
            drop(left);
            Poll::Pending
        })
        .await
    }
}
