//! A group of tasks whose outputs come in the order in which they are done.
//!
//! Each member reports to the set when its future is gone, whatever the reason. The outputs lie
//! with the set, so a member that is done costs nothing but its output.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use slab::Slab;

use super::JoinHandle;
use crate::panic::{self, FirstPanic};

/// A group of tasks of one executor, whose outputs are taken in the order in which they are done.
///
/// **Dropping the set cancels the tasks** that are not done: their futures are dropped when the
/// scheduler comes to them.
///
/// # Examples
///
/// ```
/// use glommio::{executor, task::JoinSet};
///
/// glommio::LocalExecutor::default().run(async {
///     let mut set = JoinSet::new();
///     for steps in [3, 1, 2] {
///         set.spawn(async move {
///             for _ in 0..steps {
///                 executor().yield_now().await;
///             }
///             steps
///         });
///     }
///     let mut order = Vec::new();
///     while let Some(output) = set.join_next().await {
///         order.push(output?);
///     }
///     assert_eq!(order, [1, 2, 3]);
///     Ok::<_, glommio::task::JoinError>(())
/// })?;
/// # Ok::<_, glommio::task::JoinError>(())
/// ```
pub struct JoinSet<T> {
    shared: Rc<JoinSetShared<T>>,
}

struct JoinSetShared<T> {
    members: RefCell<Slab<Member>>,
    /// Those that are done, the first of them first.
    done: RefCell<VecDeque<(usize, Result<T, JoinError>)>>,
    /// Of the task that waits for the next one.
    waiting: Cell<Option<Waker>>,
    spawned: Cell<u64>,
    is_closed: Cell<bool>,
}

/// A set with memory for more tasks gives it back when the last output is taken.
const KEPT_WHEN_EMPTY: usize = 64;

struct Member {
    number: u64,
    /// None inside the call that spawns it.
    handle: Option<JoinHandle<()>>,
    is_done: bool,
}

impl<T> JoinSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        JoinSet {
            shared: Rc::new(JoinSetShared {
                members: RefCell::default(),
                done: RefCell::default(),
                waiting: Cell::default(),
                spawned: Cell::new(0),
                is_closed: Cell::new(false),
            }),
        }
    }

    /// One poll for the next output. It does not count in the budget of the task, which is further
    /// up.
    pub(crate) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        if let Some(output) = self.try_join_next() {
            return Poll::Ready(Some(output));
        }
        if self.is_empty() {
            return Poll::Ready(None);
        }
        let replaced = self.shared.waiting.replace(Some(cx.waker().clone()));
        drop(replaced);
        // Once more: wakers are user code.
        match self.try_join_next() {
            None if self.is_empty() => Poll::Ready(None),
            None => Poll::Pending,
            output => Poll::Ready(output),
        }
    }

    /// Takes the output of the next task that is done, if there is one.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        let (key, output) = self.shared.done.borrow_mut().pop_front()?;
        let mut members = self.shared.members.borrow_mut();
        let member = members.remove(key);
        if members.is_empty() && members.capacity() > KEPT_WHEN_EMPTY {
            *members = Slab::new();
            drop(self.shared.done.take());
        }
        drop(members);
        drop(member);
        Some(output)
    }

    /// Cancels all tasks that are not done. They stay in the set until
    /// [`join_next`](Self::join_next) has told of each.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{executor, task::JoinSet};
    ///
    /// let mut set = JoinSet::new();
    /// set.spawn(std::future::pending::<()>());
    /// set.spawn(std::future::pending::<()>());
    /// assert_eq!(set.len(), 2);
    /// set.abort_all();
    /// while let Some(output) = set.join_next().await {
    ///     assert!(output.unwrap_err().is_cancelled());
    /// }
    /// assert!(set.is_empty() && set.try_join_next().is_none());
    ///
    /// set.spawn(async { executor().yield_now().await });
    /// set.detach_all(); // the task runs on
    /// assert!(set.is_empty());
    /// # });
    /// ```
    pub fn abort_all(&mut self) {
        self.shared.cancel_all();
    }

    /// Empties the set and lets its tasks run on. Outputs are dropped.
    pub fn detach_all(&mut self) {
        let before = std::mem::take(self);
        let members = before.shared.members.take();
        drop(members);
    }

    /// How many tasks there are whose output was not taken.
    pub fn len(&self) -> usize {
        self.shared.members.borrow().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the task that `start` makes of the future that it is given, which runs `future` and
    /// reports to this set.
    pub(crate) fn add<F>(
        &mut self,
        future: F,
        start: impl FnOnce(Reporting<T, F>) -> JoinHandle<()>,
    ) -> AbortHandle
    where
        F: Future<Output = T>,
        T: 'static,
    {
        let number = self.shared.spawned.get();
        self.shared.spawned.set(number + 1);
        let key = self.shared.members.borrow_mut().insert(Member {
            number,
            handle: None,
            is_done: false,
        });
        let handle = start(Reporting {
            future,
            report: Report {
                shared: Rc::clone(&self.shared),
                key,
                is_polled: false,
                output: None,
            },
        });
        if let Some(member) = self.shared.members.borrow_mut().get_mut(key) {
            member.handle = Some(handle);
        }
        AbortHandle {
            members: Rc::downgrade(&self.shared) as Weak<dyn Members>,
            key,
            number,
        }
    }
}

impl<T> JoinSetShared<T> {
    fn cancel_all(&self) {
        // Cancelling only marks and schedules.
        for (_, member) in &*self.members.borrow() {
            if let Some(handle) = &member.handle {
                handle.cancel();
            }
        }
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        JoinSet::new()
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.is_closed.set(true);
        shared.cancel_all();
        // Handles first: an output may panic when it is dropped.
        let members = shared.members.take();
        let outputs = shared.done.take();
        drop(members);
        let mut panics = FirstPanic::default();
        panics.catch(|| drop(shared.waiting.take()));
        for output in outputs {
            panics.catch(|| drop(output));
        }
        if !std::thread::panicking()
            && let Some(payload) = panics.take()
        {
            std::panic::resume_unwind(payload);
        }
    }
}

impl_debug! { [T] JoinSet[T], it: len: it.len(), done: it.shared.done.borrow().len() }

/// The future of a member and the report of its end, dropped in this order.
pub(crate) struct Reporting<T, F> {
    future: F,
    report: Report<T>,
}

impl<T, F: Future<Output = T>> Reporting<T, F> {
    pub(crate) async fn run(self) {
        // As a whole: captured one by one, the parts of a future that was never polled would be
        // dropped in another order.
        let Reporting { future, mut report } = self;
        {
            let mut future = pin!(future);
            report.output = poll_fn(|cx| {
                report.is_polled = true;
                let polled = future.as_mut().poll(cx).map(Some);
                report.is_polled = polled.is_ready();
                polled
            })
            .await;
            // Until the future is dropped, a panic is one of the task.
        }
        report.is_polled = false;
    }
}

/// Tells the set how the task has ended, when it is dropped.
struct Report<T> {
    shared: Rc<JoinSetShared<T>>,
    key: usize,
    /// The future is being polled or, with an output, dropped.
    is_polled: bool,
    output: Option<T>,
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        let output = self.output.take();
        let result = match output {
            Some(output) if !self.is_polled => Ok(output),
            unusable => {
                panic::fenced(|| drop(unusable));
                Err(JoinError {
                    is_panic: self.is_polled,
                })
            }
        };
        if self.shared.is_closed.get() {
            return panic::fenced(|| drop(result));
        }
        let mut members = self.shared.members.borrow_mut();
        let Some(member) = members.get_mut(self.key) else {
            drop(members);
            return panic::fenced(|| drop(result));
        };
        member.is_done = true;
        drop(members);
        self.shared.done.borrow_mut().push_back((self.key, result));
        if let Some(waker) = self.shared.waiting.take() {
            panic::contain("a waker panicked", || waker.wake());
        }
    }
}

/// Cancels one task of a [`JoinSet`]. Dropping it changes nothing.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::task::JoinSet;
///
/// let mut set = JoinSet::new();
/// let handle = set.spawn(std::future::pending::<()>());
/// handle.abort();
/// let error = set.join_next().await.unwrap().unwrap_err();
/// assert!(error.is_cancelled() && !error.is_panic());
/// assert!(handle.is_finished());
/// # });
/// ```
#[derive(Clone)]
pub struct AbortHandle {
    members: Weak<dyn Members>,
    key: usize,
    number: u64,
}

/// The members of a set, whatever their outputs are.
trait Members {
    fn with(&self, f: &mut dyn FnMut(&Slab<Member>));
}

impl<T> Members for JoinSetShared<T> {
    fn with(&self, f: &mut dyn FnMut(&Slab<Member>)) {
        f(&self.members.borrow());
    }
}

impl AbortHandle {
    /// Cancels the task: its future is dropped when the scheduler comes to it, and
    /// [`join_next`](JoinSet::join_next) gives an error for it. No effect on one that is done.
    pub fn abort(&self) {
        self.look(|member| {
            if let Some(handle) = &member.handle {
                handle.cancel();
            }
        });
    }

    /// Whether the task is done, or the set is gone.
    pub fn is_finished(&self) -> bool {
        self.look(|member| member.is_done).unwrap_or(true)
    }

    /// None if the member has left.
    fn look<R>(&self, f: impl Fn(&Member) -> R) -> Option<R> {
        let mut result = None;
        self.members.upgrade()?.with(&mut |members| {
            let member = members.get(self.key);
            result = member.filter(|it| it.number == self.number).map(&f);
        });
        result
    }
}

impl_debug! { AbortHandle, it: is_finished: it.is_finished() }

/// A task of a [`JoinSet`] has ended without an output.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::task::JoinSet;
///
/// let mut set = JoinSet::new();
/// set.spawn(std::future::pending::<()>());
/// set.abort_all();
/// let error = set.join_next().await.unwrap().unwrap_err();
/// assert!(error.is_cancelled() && !error.is_panic());
/// assert_eq!(error.to_string(), "the task was cancelled");
/// # });
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinError {
    is_panic: bool,
}

impl JoinError {
    /// Whether the task was cancelled, or dropped with its executor.
    pub fn is_cancelled(&self) -> bool {
        !self.is_panic
    }

    /// Whether the task has panicked. The panic itself went through the executor's
    /// [`run`](crate::LocalExecutor::run), or into the log if it was
    /// [isolated](crate::PanicPolicy::Isolate).
    pub fn is_panic(&self) -> bool {
        self.is_panic
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_panic {
            true => "the task has panicked",
            false => "the task was cancelled",
        })
    }
}

impl std::error::Error for JoinError {}
