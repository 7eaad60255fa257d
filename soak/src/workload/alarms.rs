//! The timers of one end of a flow or of a connection, each entered into the model.
//!
//! Every other one is a `TimerActionOnce`, which can be moved while it is armed; those between are
//! tasks that await a `Timer`. Both kinds are cancelled, in all the ways there are, when they are
//! not needed any more, which is what becomes of most.
//!
//! Where all of them can be moved, those between are actions in a task queue of their own. Handles of such that have
//! fired are kept for a while and then cancelled or re-armed although it is too late, when their place in the timer queue
//! has long been another timer's.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};

use glommio::TaskQueueHandle;

use crate::map::HashMap;
use crate::workload::prelude::*;

/// What is armed.
pub(crate) struct Alarms {
    pub(crate) checker: Rc<Checker>,
    /// Of every other one, if all are actions.
    queue: Option<TaskQueueHandle>,
    armed: RefCell<HashMap<Key, Armed>>,
    /// Handles of actions that have fired.
    spent: RefCell<VecDeque<(Key, TimerActionOnce<()>)>>,
}

enum Armed {
    Action(TimerActionOnce<()>),
    Task(Task<()>),
}

impl Alarms {
    /// With a `queue`, all of them are actions, every other one there, and over in one poll.
    pub(crate) fn new(checker: &Rc<Checker>, queue: Option<TaskQueueHandle>) -> Rc<Self> {
        Rc::new(Alarms {
            checker: Rc::clone(checker),
            queue,
            armed: RefCell::default(),
            spent: RefCell::default(),
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
        } else if let Some(queue) = self.queue {
            let action = TimerActionOnce::do_at_into(told, begin, queue);
            Armed::Action(action.expect("the queue is never removed"))
        } else {
            // What is never due is told as the longest wait there is.
            let wait = [delay, Duration::MAX][usize::from(delay > CENTURY)];
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
            Some(Armed::Action(action)) => match key.0 / 2 % WAYS {
                0 => drop(spawn_local(action.cancel()).detach()),
                1 => {
                    action.destroy();
                    self.join(action, Invariant::CancelsHold, None);
                }
                _ => action.destroy(),
            },
            Some(Armed::Task(task)) => drop(task),
            None => {}
        }
    }

    /// Waits for the value of an action, which must be as `expected`.
    fn join(&self, action: TimerActionOnce<()>, invariant: Invariant, expected: Option<()>) {
        let checker = Rc::clone(&self.checker);
        spawn_local(async move {
            let joined = action.join().await;
            checker.holds(invariant, joined == expected, || {
                format!("an action was cancelled and joined with {joined:?}")
            });
        })
        .detach();
    }

    /// Moves what is armed to `deadline`: whether it was, being of the kind that can be moved.
    pub(crate) fn rearm(&self, key: Key, deadline: Instant) -> bool {
        if let Some(Armed::Action(action)) = self.armed.borrow().get(&key)
            && self.checker.rearm(key, deadline)
        {
            action.rearm_at(deadline);
            return true;
        }
        false
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
        let spent = self.spent.take();
        spent.into_iter().for_each(|spent| self.abuse(spent));
    }

    /// A timer has fired. `true`: it was meant to.
    fn begins(&self, key: Key) -> bool {
        let is_expected = self.checker.fired(key);
        let own = self.armed.borrow_mut().remove(&key);
        match own {
            // To drop the handle would cancel the very task that runs, at its next suspension.
            Some(Armed::Task(task)) => drop(task.detach()),
            Some(Armed::Action(action)) if self.queue.is_some() => self.spend(key, action),
            _ => {}
        }
        is_expected
    }

    /// Keeps the handle of an action that has fired, and abuses one that was kept before.
    fn spend(&self, key: Key, action: TimerActionOnce<()>) {
        let mut spent = self.spent.borrow_mut();
        spent.push_back((key, action));
        if spent.len() > SPENT_MAX {
            let oldest = spent.pop_front().expect("it is longer than its bound");
            drop(spent);
            self.abuse(oldest);
        }
    }

    fn abuse(&self, (key, action): (Key, TimerActionOnce<()>)) {
        match key.0 / 2 % 2 {
            0 => action.rearm_in(Duration::from_millis(1)),
            _ => action.destroy(),
        }
        self.join(action, Invariant::StaleCancels, Some(()));
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

/// One in so many actions is cancelled by awaiting its end, and one joined after its `destroy`.
const WAYS: u64 = 8;

/// Enough that a spent timer's place in the queue has been given away many times.
const SPENT_MAX: usize = 512;
