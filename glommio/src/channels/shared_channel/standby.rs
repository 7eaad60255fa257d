//! A task that passes notifications on which are not acted on.
//!
//! A future that waits keeps its place while it is kept, also if its task has given it up: as an arm
//! of a `select!` in which another one won, say. The next notification goes to it, its task is woken
//! and does not look, and another future would wait beside an item, or beside room. No end can know
//! that, so where several futures wait at one end, a task of its own stands by. It is woken with
//! each notification that leaves others waiting, and if [`TIME_TO_ACT`] later there is still what
//! they wait for, notifies the next.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use super::bound::Side;
use super::waits::Waits;
use crate::channels::spsc_queue::Lines;
use crate::executor::executor;
use crate::loom::sync::Arc;
use crate::reactor::wake;
use crate::timer::sleep;

/// How long a task that was notified has to take what it waited for. One that is late loses nothing
/// but its turn.
const TIME_TO_ACT: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Default)]
pub(super) struct Standby {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_called: bool,
    is_over: bool,
    waker: Option<Waker>,
}

impl Standby {
    /// Begins to stand by for the futures that wait at the end `side`. Nothing happens if that was
    /// done before.
    pub(super) fn begin(lines: &Arc<Lines<Waits>>, side: Side, capacity: usize) {
        if side.own(lines).standby.get().is_some() {
            return;
        }
        let task = stand_by(Arc::clone(lines), side, capacity);
        let queue = executor().current_task_queue();
        if let Ok(task) = executor().spawn_local_into(task, queue) {
            task.detach();
            // What is sent before this can be seen is found by the first look.
            let standby = side.own(lines).standby.get_or_init(Box::default);
            standby.call();
        }
    }

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

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a call. False if the end is gone.
    async fn is_called(&self) -> bool {
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

async fn stand_by(lines: Arc<Lines<Waits>>, side: Side, capacity: usize) {
    let waits = side.own(&lines);
    let Some(standby) = waits.standby.get() else {
        return;
    };
    while standby.is_called().await {
        while waits.tasks.may_wait() {
            sleep(TIME_TO_ACT).await;
            let available = match side {
                Side::Sending => capacity.saturating_sub(lines.len()),
                Side::Receiving => lines.len(),
            };
            if available == 0 {
                break;
            }
            for _ in 0..available {
                if !waits.notify_one() {
                    break;
                }
            }
        }
    }
}
