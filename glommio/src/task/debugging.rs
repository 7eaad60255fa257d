//! Looks at the tasks of a thread: how many there are, and what becomes of some of them.
//!
//! With the feature `debugging` only, which makes each task larger and slower.

// A task carries its trace behind the schedule, so that it goes with the task's memory, on
// whichever thread that is. What is counted belongs to the thread that spawned the task: the trace
// refers to it, and it may outlive its thread.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::panic;

/// Follows the tasks that the calling thread spawns. All functions act on that thread.
///
/// A task is traced if a filter says so when it is spawned: by default, if it was given a label.
/// What becomes of a traced task is logged with [`tracing`] at the level `debug`: that it is
/// spawned, scheduled, polled, ready, over (its future is dropped now) and destroyed (its memory is
/// given back).
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, spawn_local, task::debugging::TaskDebugger};
///
/// LocalExecutor::default().run(async {
///     let before = TaskDebugger::task_count();
///     TaskDebugger::set_label("connection");
///     let task = spawn_local(std::future::pending::<()>());
///     assert_eq!(TaskDebugger::task_count(), before + 1);
///     task.cancel().await;
///     assert_eq!(TaskDebugger::task_count(), before);
/// });
/// ```
#[derive(Debug)]
pub struct TaskDebugger {
    _of_its_thread: PhantomData<*const ()>,
}

impl TaskDebugger {
    /// Labels the next task that is spawned on this thread, however it is spawned. The name that
    /// [`TaskBuilder`](crate::TaskBuilder) gives a task is its label, too.
    pub fn set_label(label: &'static str) {
        label_next(Cow::Borrowed(label));
    }

    /// Has `filter` choose by its label which tasks to trace, from the next one on.
    ///
    /// It is called while a task is spawned, and must not spawn.
    pub fn set_filter(filter: fn(Option<&str>) -> bool) {
        let _ = HERE.try_with(|here| here.filter.set(filter));
    }

    /// Logs those traced tasks that were spawned more than `older_than` ago and have not been
    /// destroyed, and what happened to each last.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{spawn_local, task::debugging::TaskDebugger};
    /// use std::time::Duration;
    ///
    /// TaskDebugger::set_filter(|label| label == Some("upload"));
    /// TaskDebugger::set_label("upload");
    /// let upload = spawn_local(std::future::pending::<()>());
    /// TaskDebugger::debug_aged_tasks(Duration::from_secs(60)); // logs uploads that are older than a minute
    /// upload.cancel().await;
    /// # });
    /// ```
    pub fn debug_aged_tasks(older_than: Duration) {
        let Ok(tasks) = HERE.try_with(|here| Arc::clone(&here.tasks)) else {
            return;
        };
        // Copied, for whoever listens to the log may spawn.
        let traced = tasks.traced().clone();
        for (id, task) in traced {
            let age = clock::real() - task.spawned;
            if age > older_than {
                let Traced { label, last, .. } = task;
                let label = label.as_deref();
                tracing::debug!(task = id, label, ?age, "task is old, and was last {last}");
            }
        }
    }

    /// The tasks that were spawned on this thread and whose memory has not been given back. A task
    /// that is over counts for as long as a handle or a waker refers to it. The future of
    /// [`run`](crate::LocalExecutor::run) is a task.
    pub fn task_count() -> usize {
        HERE.try_with(|here| here.tasks.alive.load(Ordering::Relaxed))
            .unwrap_or(0)
    }
}

/// As [`TaskDebugger::set_label`].
pub(crate) fn label_next(label: Label) {
    let before = HERE.try_with(|here| here.label.replace(Some(label)));
    drop(before);
}

/// What a task is called.
type Label = Cow<'static, str>;

thread_local! {
    static HERE: Here = Here {
        tasks: Arc::default(),
        next_id: Cell::new(1),
        label: Cell::new(None),
        filter: Cell::new(|label| label.is_some()),
    };
}

/// What a thread knows of its tasks.
struct Here {
    tasks: Arc<Tasks>,
    next_id: Cell<u64>,
    label: Cell<Option<Label>>,
    filter: Cell<fn(Option<&str>) -> bool>,
}

/// The tasks that one thread has spawned. Others take theirs out when they free them.
#[derive(Default)]
struct Tasks {
    alive: AtomicUsize,
    /// By number, which is the order in which they were spawned.
    traced: Mutex<BTreeMap<u64, Traced>>,
}

#[derive(Clone)]
struct Traced {
    label: Option<Label>,
    spawned: Instant,
    /// What happened to it last.
    last: &'static str,
}

impl Tasks {
    fn traced(&self) -> MutexGuard<'_, BTreeMap<u64, Traced>> {
        // Nothing in here panics half-way.
        self.traced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a task that is traced. Dropped with the task's memory.
pub(super) struct Trace {
    /// None in a task that was spawned while the thread's locals were being destroyed.
    tasks: Option<Arc<Tasks>>,
    /// The task's number, if its events are logged.
    id: Option<u64>,
}

impl Trace {
    /// A task is being spawned on this thread.
    pub(super) fn begin() -> Self {
        HERE.try_with(|here| {
            let label = here.label.take();
            let is_traced = (here.filter.get())(label.as_deref());
            here.tasks.alive.fetch_add(1, Ordering::Relaxed);
            let trace = Trace {
                tasks: Some(Arc::clone(&here.tasks)),
                id: is_traced.then(|| here.next_id.replace(here.next_id.get() + 1)),
            };
            if let Some(id) = trace.id {
                let traced = Traced {
                    label,
                    spawned: clock::real(),
                    last: "",
                };
                here.tasks.traced().insert(id, traced);
            }
            trace.note("spawned");
            trace
        })
        .unwrap_or(Trace {
            tasks: None,
            id: None,
        })
    }

    /// Something happens to the task, on its own thread.
    pub(super) fn note(&self, event: &'static str) {
        if let Some((tasks, id)) = self.tasks.as_ref().zip(self.id) {
            let label = tasks.traced().get_mut(&id).and_then(|traced| {
                traced.last = event;
                traced.label.clone()
            });
            log(id, label, event);
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let Some(tasks) = &self.tasks else { return };
        tasks.alive.fetch_sub(1, Ordering::Relaxed);
        if let Some(id) = self.id {
            let traced = tasks.traced().remove(&id);
            let label = traced.and_then(|traced| traced.label);
            log(id, label, "destroyed");
        }
    }
}

/// A panic of the subscriber must not get between a task and its end.
fn log(id: u64, label: Option<Label>, event: &'static str) {
    let label = label.as_deref();
    panic::log(|| tracing::debug!(task = id, label, "task is {event}"));
}
