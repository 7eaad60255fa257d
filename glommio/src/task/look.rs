//! A look at the tasks of an executor, for [`debugging`](super::debugging).

use std::panic::Location;
use std::time::Instant;

use super::debugging::{Label, unlisted};
use super::header::TaskPtr;
use super::lists::TaskList;
use super::state::{RUNNING, SCHEDULED};
use crate::noted::Awaited;

/// What a task is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Running,
    /// It was spawned or woken, and waits for its turn.
    Queued,
    Waiting,
}

/// A task as it is now.
pub(crate) struct SeenTask {
    pub(crate) id: u64,
    pub(crate) name: Option<Label>,
    pub(crate) future: &'static str,
    pub(crate) spawned_at: Option<&'static Location<'static>>,
    pub(crate) spawned: Instant,
    pub(crate) polled: Instant,
    pub(crate) queue: usize,
    pub(crate) doing: Doing,
    /// What it said in its last poll, and how much more it said.
    pub(crate) awaited: (Vec<Awaited>, usize),
}

impl TaskList {
    /// The tasks in the list, and those that are being polled for the first time, by their numbers.
    pub(crate) fn look(&self) -> Vec<SeenTask> {
        // Their polls are further down the stack, and keep them.
        let first_polls = unlisted().into_iter().map(|it| TaskPtr::new(it.cast()));
        let listed = self.all().into_iter();
        let mut seen: Vec<_> = listed.chain(first_polls).map(SeenTask::of).collect();
        seen.sort_unstable_by_key(|task| task.id);
        seen
    }
}

impl SeenTask {
    fn of(task: TaskPtr) -> Self {
        let trace = task.trace();
        let state = task.state();
        SeenTask {
            id: trace.id,
            name: trace.label.clone(),
            future: trace.future,
            spawned_at: trace.spawned_at,
            spawned: trace.spawned,
            polled: trace.polled.get(),
            queue: task.header().queue(),
            doing: if state.has(RUNNING) {
                Doing::Running
            } else if state.has(SCHEDULED) {
                Doing::Queued
            } else {
                Doing::Waiting
            },
            awaited: trace.awaited(),
        }
    }
}
