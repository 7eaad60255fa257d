//! The timers of one end of a flow or of a connection, each entered into the model.
//!
//! Every other one is a `TimerActionOnce`, which can be moved while it is armed; those between are
//! tasks that await a `Timer`. Both kinds are cancelled, in all the ways there are, when they are
//! not needed any more, which is what becomes of most.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use glommio::timer::{Timer, TimerActionOnce};
use glommio::{Task, spawn_local};

use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::check::model::Key;
use crate::clock;
use crate::map::HashMap;
use crate::measure::nanos;

/// What is armed.
pub(crate) struct Alarms {
    pub(crate) checker: Rc<Checker>,
    armed: RefCell<HashMap<Key, Armed>>,
}

enum Armed {
    Action(TimerActionOnce<()>),
    Task(Task<()>),
}

impl Alarms {
    pub(crate) fn new(checker: &Rc<Checker>) -> Rc<Self> {
        Rc::new(Alarms {
            checker: Rc::clone(checker),
            armed: RefCell::default(),
        })
    }

    /// Has `due` done at `deadline`, and never before this call has returned.
    pub(crate) fn arm(
        self: &Rc<Self>,
        deadline: Instant,
        due: impl Future<Output = ()> + 'static,
    ) -> Key {
        let ticket = self.checker.arm(deadline);
        let (key, told, delay) = (ticket.key, ticket.deadline, ticket.delay());
        let alarms = Rc::clone(self);
        let begin = async move {
            let _live = ticket.live;
            if alarms.begins(key) {
                due.await;
            }
        };
        let armed = if key.0.is_multiple_of(2) {
            Armed::Action(TimerActionOnce::do_at(told, begin))
        } else {
            // What is never due is told as the longest wait there is.
            let wait = if delay > CENTURY {
                Duration::MAX
            } else {
                delay
            };
            let (timer, checker) = (Timer::new(wait), Rc::clone(&self.checker));
            Armed::Task(spawn_local(async move {
                let scheduled = not_at_once(timer).await;
                // The timer took its own look at the clock, after ours.
                let early = nanos(told.saturating_duration_since(scheduled));
                checker.check(Invariant::NothingEarly, early, || {
                    format!("a timer for {delay:?} named a deadline {early} ns before its own")
                });
                begin.await;
            }))
        };
        self.armed.borrow_mut().insert(key, armed);
        key
    }

    /// Cancels what was armed and has not fired.
    pub(crate) fn cancel(&self, key: Key) {
        self.checker.cancel(key);
        let armed = self.armed.borrow_mut().remove(&key);
        match armed {
            Some(Armed::Action(action)) if key.0.is_multiple_of(CANCEL_EVERY) => {
                spawn_local(action.cancel()).detach();
            }
            Some(Armed::Action(action)) => action.destroy(),
            Some(Armed::Task(task)) => drop(task),
            None => {}
        }
    }

    /// Moves what is armed to `deadline`, if it is of the kind that can be moved.
    pub(crate) fn rearm(&self, key: Key, deadline: Instant) {
        if let Some(Armed::Action(action)) = self.armed.borrow().get(&key)
            && let Some(told) = self.checker.rearm(key, deadline)
        {
            action.rearm_at(told);
        }
    }

    /// Waits in the task at hand, which must not be dropped meanwhile.
    pub(crate) async fn pause(&self, wait: Duration) {
        let ticket = self.checker.arm(clock::now() + wait);
        Timer::new(ticket.delay()).await;
        self.checker.fired(ticket.key);
    }

    pub(crate) fn cancel_all(&self) {
        let keys: Vec<Key> = self.armed.borrow().keys().copied().collect();
        for key in keys {
            self.cancel(key);
        }
    }

    /// A timer has fired. `true`: it was meant to.
    fn begins(&self, key: Key) -> bool {
        let is_expected = self.checker.fired(key);
        let own = self.armed.borrow_mut().remove(&key);
        if let Some(Armed::Task(task)) = own {
            // To drop the handle would cancel the very task that runs, at its next suspension.
            task.detach();
        }
        is_expected
    }
}

/// Waits for the timer, and at least until the second poll: a task is polled on the spot when it is
/// spawned, while its spawner holds what the timer's work will want to borrow.
async fn not_at_once(mut timer: Timer) -> Instant {
    let mut is_first = true;
    poll_fn(|cx| {
        let polled = Pin::new(&mut timer).poll(cx);
        if std::mem::take(&mut is_first) && polled.is_ready() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        polled
    })
    .await
}

const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// One in so many actions is cancelled by awaiting its end, the others by `destroy`.
const CANCEL_EVERY: u64 = 16;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use glommio::LocalExecutor;
    use glommio::timer::sleep;

    use super::*;
    use crate::check::control::Control;
    use crate::check::executor_stats::ExecutorStats;
    use crate::check::fault::Planter;
    use crate::check::probe::Workload;

    /// Runs a test with alarms of its own, which must leave no violation and no future behind.
    fn run<F: Future<Output = ()>>(test: impl FnOnce(Rc<Alarms>) -> F) {
        let stats = Arc::new(ExecutorStats::new(Workload::ReliableUdp, "test".to_owned()));
        let control = Arc::new(Control::new(Duration::from_secs(10)));
        let checker = Checker::new(stats, control, Planter::new(None, 1));
        LocalExecutor::default().run(async {
            test(Alarms::new(&checker)).await;
            checker.settle().await;
        });
        let ledger = &checker.stats.ledger;
        assert_eq!(ledger.violations(), 0, "{:?}", ledger.first_violations());
    }

    /// Adds one to a count, as what is due.
    fn adds_to(count: &Rc<Cell<u32>>) -> impl Future<Output = ()> + 'static {
        let count = Rc::clone(count);
        async move { count.set(count.get() + 1) }
    }

    /// Both kinds, as the keys alternate.
    #[test]
    fn what_is_due_already_waits_for_the_task_that_arms_it() {
        run(async |alarms| {
            let count = Rc::new(Cell::new(0));
            for _ in 0..8 {
                alarms.arm(clock::now(), adds_to(&count));
                assert_eq!(count.get(), 0, "it ran before it was entered");
            }
            alarms.pause(Duration::from_millis(5)).await;
            assert_eq!(count.get(), 8);
            assert!(alarms.armed.borrow().is_empty());
        });
    }

    #[test]
    fn what_is_cancelled_is_never_done() {
        run(async |alarms| {
            let count = Rc::new(Cell::new(0));
            let soon = clock::now() + Duration::from_millis(2);
            let keys: Vec<Key> = (0..2 * CANCEL_EVERY)
                .map(|_| alarms.arm(soon, adds_to(&count)))
                .collect();
            keys[..8].iter().for_each(|&key| alarms.cancel(key));
            alarms.cancel_all();
            sleep(Duration::from_millis(10)).await;
            assert_eq!(count.get(), 0);
            assert!(alarms.armed.borrow().is_empty());
        });
    }

    #[test]
    fn what_can_be_moved_is_moved() {
        run(async |alarms| {
            let count = Rc::new(Cell::new(0));
            let far = clock::now() + Duration::from_secs(600);
            let keys = [(); 2].map(|()| alarms.arm(far, adds_to(&count)));
            for key in keys {
                alarms.rearm(key, clock::now());
            }
            alarms.pause(Duration::from_millis(5)).await;
            assert_eq!(count.get(), 1, "one of two is of that kind");
            alarms.cancel_all();
        });
    }
}
