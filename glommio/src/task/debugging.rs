//! Looks at the tasks of a thread: how many there are, and what becomes of some of them.
//!
//! With the feature `debugging` only, which makes each task larger and slower.

// A task carries its trace behind the schedule, so that it goes with the task's memory, on
// whichever thread that is. What is counted belongs to the thread that spawned the task: the trace
// refers to it, and it may outlive its thread.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;
use crate::noted::{self, Awaited, MOST, NotedPoll};
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
pub(super) type Label = Cow<'static, str>;

thread_local! {
    static HERE: Here = Here {
        tasks: Arc::default(),
        next_id: Cell::new(1),
        label: Cell::new(None),
        filter: Cell::new(|label| label.is_some()),
        unlisted: RefCell::default(),
    };
}

/// What a thread knows of its tasks.
struct Here {
    tasks: Arc<Tasks>,
    next_id: Cell<u64>,
    label: Cell<Option<Label>>,
    filter: Cell<fn(Option<&str>) -> bool>,
    /// The tasks that are being polled and in no list, each inside a poll of the one before.
    unlisted: RefCell<Vec<NonNull<()>>>,
}

/// The tasks that one thread has spawned. Others take theirs out when they free them.
#[derive(Default)]
struct Tasks {
    alive: AtomicUsize,
    /// Where the task was spawned that is being polled, or null.
    polled: AtomicPtr<Location<'static>>,
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

/// What is known of a task. Dropped with the task's memory.
pub(super) struct Trace {
    /// None in a task that was spawned while the thread's locals were being destroyed.
    tasks: Option<Arc<Tasks>>,
    /// The task's number.
    pub(super) id: u64,
    /// Whether its events are logged.
    is_traced: bool,
    /// On the task's own thread, as all that follows.
    pub(super) label: Option<Label>,
    /// The type of its future, which names the function that it is of.
    pub(super) future: &'static str,
    pub(super) spawned_at: Option<&'static Location<'static>>,
    pub(super) spawned: Instant,
    /// When the round of its last poll began.
    pub(super) polled: Cell<Instant>,
    /// What it waits for since, if there are so many.
    awaited: [Cell<Awaited>; MOST],
    awaited_len: Cell<usize>,
}

impl Trace {
    /// A task is being spawned on this thread.
    pub(super) fn begin(future: &'static str) -> Self {
        let now = noted::now();
        let mut trace = Trace {
            tasks: None,
            id: 0,
            is_traced: false,
            label: None,
            future,
            spawned_at: noted::take_spawned_at(),
            spawned: now,
            polled: Cell::new(now),
            awaited: [const { Cell::new(Awaited::BlockingCall) }; MOST],
            awaited_len: Cell::new(0),
        };
        let _ = HERE.try_with(|here| {
            trace.label = here.label.take();
            trace.is_traced = (here.filter.get())(trace.label.as_deref());
            here.tasks.alive.fetch_add(1, Ordering::Relaxed);
            trace.tasks = Some(Arc::clone(&here.tasks));
            trace.id = here.next_id.replace(here.next_id.get() + 1);
            if trace.is_traced {
                let traced = Traced {
                    label: trace.label.clone(),
                    spawned: clock::real(),
                    last: "",
                };
                here.tasks.traced().insert(trace.id, traced);
            }
            trace.note("spawned");
        });
        trace
    }

    /// Something happens to the task, on its own thread.
    pub(super) fn note(&self, event: &'static str) {
        if let Some(tasks) = &self.tasks
            && self.is_traced
        {
            if let Some(traced) = tasks.traced().get_mut(&self.id) {
                traced.last = event;
            }
            log(self.id, self.label.as_deref(), event);
        }
    }

    /// A poll of the task begins. If no list has that, it is `unlisted` at this address.
    #[inline]
    pub(super) fn begin_poll(&self, unlisted: Option<NonNull<()>>) -> Polling<'_> {
        if let Some(task) = unlisted {
            let _ = HERE.try_with(|here| here.unlisted.borrow_mut().push(task));
        }
        self.polled.set(noted::now());
        let spawned_at = self
            .spawned_at
            .map_or(ptr::null_mut(), |it| (&raw const *it).cast_mut());
        Polling {
            trace: self,
            noted: NotedPoll::begin(self.id),
            outer: self.show_polled(spawned_at),
            is_unlisted: unlisted.is_some(),
        }
    }

    /// Tells other threads where the task was spawned that is being polled. Returns what it told before.
    #[inline]
    fn show_polled(&self, spawned_at: *mut Location<'static>) -> *mut Location<'static> {
        let Some(tasks) = &self.tasks else {
            return ptr::null_mut();
        };
        let before = tasks.polled.load(Ordering::Relaxed);
        tasks.polled.store(spawned_at, Ordering::Relaxed);
        before
    }

    /// What it waits for, and how many more things there are.
    pub(super) fn awaited(&self) -> (Vec<Awaited>, usize) {
        let noted = self.awaited_len.get();
        let kept = self.awaited.iter().take(noted).map(Cell::get).collect();
        (kept, noted.saturating_sub(MOST))
    }
}

/// Tells any thread what is polled on one.
pub(crate) struct Polled(Arc<Tasks>);

impl Polled {
    /// Of the calling thread.
    pub(crate) fn here() -> Self {
        Polled(
            HERE.try_with(|here| Arc::clone(&here.tasks))
                .unwrap_or_default(),
        )
    }

    /// Where the task was spawned that is being polled, if that is known.
    pub(crate) fn spawned_at(&self) -> Option<&'static Location<'static>> {
        let spawned_at = self.0.polled.load(Ordering::Relaxed);
        // SAFETY: null, or made of such a reference (`begin_poll`).
        unsafe { spawned_at.as_ref() }
    }
}

/// The addresses of the tasks of this thread that are being polled and in no list.
pub(super) fn unlisted() -> Vec<NonNull<()>> {
    let unlisted = HERE.try_with(|here| here.unlisted.borrow().clone());
    unlisted.unwrap_or_default()
}

/// A poll of a task, which ends when this is dropped.
pub(super) struct Polling<'a> {
    trace: &'a Trace,
    noted: NotedPoll,
    outer: *mut Location<'static>,
    is_unlisted: bool,
}

impl Drop for Polling<'_> {
    #[inline]
    fn drop(&mut self) {
        let Polling {
            trace,
            noted,
            outer,
            is_unlisted,
        } = self;
        let noted = noted.end(|place, awaited| trace.awaited[place].set(awaited));
        trace.awaited_len.set(noted);
        trace.show_polled(*outer);
        if *is_unlisted {
            let _ = HERE.try_with(|here| here.unlisted.borrow_mut().pop());
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let Some(tasks) = &self.tasks else { return };
        tasks.alive.fetch_sub(1, Ordering::Relaxed);
        if self.is_traced {
            drop(tasks.traced().remove(&self.id));
            log(self.id, self.label.as_deref(), "destroyed");
        }
    }
}

/// A panic of the subscriber must not get between a task and its end.
fn log(id: u64, label: Option<&str>, event: &'static str) {
    panic::log(|| tracing::debug!(task = id, label, "task is {event}"));
}
