//! Finds the code that keeps an executor's thread to itself.
//!
//! Owns the handler that the program gave, the budget of the queue whose turn it is, and the
//! watchdog.
//!
//! ```text
//!   executor's thread                              watchdog's thread
//!   begin: threshold(queue), arm(budget)  ───────▶ sleeps until the deadline
//!     the queue's tasks
//!        ⚡ handler: frames into memory   ◀─────── deadline passed: the signal
//!     the queue's tasks go on
//!   end: disarm, elapsed > budget?
//!   report: names for the frames, stall(detection)
//! ```
//!
//! Whether there was a stall is decided by the executor's own clock at the end of the turn, so each
//! turn over its budget is reported exactly once, however late the watchdog got its CPU; what
//! depends on the watchdog is the stack.
//!
//! Invariants: user code (`threshold`, `signal`, `stall`, the destructor of the handler) runs with
//! nothing borrowed. A turn is disarmed on every way out of it. Detection that is switched off or
//! replaced in the middle of a turn ends at once, and that turn is not reported.
//!
//! Cost while off: one look at an `Option` for each turn of a queue.

#![forbid(unsafe_code)]

mod detection;
mod handler;
mod watchdog;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use backtrace::Backtrace;
pub use detection::StallDetection;
pub(super) use handler::SharedHandler;
pub use handler::{DefaultStallDetectionHandler, StallDetectionHandler};
use watchdog::Watchdog;

use super::task_queue::TaskQueue;
use crate::clock;
use crate::error::Result;
use crate::panic;
use crate::shares::TaskQueueHandle;
use crate::sys::affinity::AffinityMask;

/// The name of a task. Those that are literals take no memory.
pub(super) type Name = Cow<'static, str>;

/// The stall detection of one executor, on or off.
pub(super) struct Stalls {
    detector: RefCell<Option<Rc<Detector>>>,
    /// Where the watchdog runs: a thread that shares the one CPU of its executor could not tell in
    /// time that a task has it.
    affinity: Option<AffinityMask>,
}

pub(super) struct Detector {
    handler: Box<dyn StallDetectionHandler>,
    /// `None` once the detection is off; a turn that began before may still hold the detector.
    watchdog: RefCell<Option<Watchdog>>,
    /// When the budget of the turn under way ends.
    deadline: Cell<Option<Instant>>,
    /// The task in whose poll it has ended, if that has a name.
    stalled: RefCell<Option<Name>>,
}

impl Stalls {
    /// Switched off. `affinity` is for the watchdogs to come; without, theirs is the executor's.
    pub(super) fn new(affinity: Option<AffinityMask>) -> Self {
        Stalls {
            detector: RefCell::default(),
            affinity,
        }
    }

    /// Switches the detection on, over, or off.
    pub(super) fn detect(
        &self,
        handler: Option<Box<dyn StallDetectionHandler>>,
        executor: usize,
    ) -> Result<(), ()> {
        let detector = match handler {
            Some(handler) => {
                let name = format!("stalls-{executor}");
                let watchdog = Watchdog::start(handler.signal(), name, self.affinity)?;
                Some(Rc::new(Detector {
                    handler,
                    watchdog: RefCell::new(Some(watchdog)),
                    deadline: Cell::new(None),
                    stalled: RefCell::default(),
                }))
            }
            None => None,
        };
        self.replace(detector);
        Ok(())
    }

    /// Switches the detection off.
    pub(super) fn stop(&self) {
        self.replace(None);
    }

    fn replace(&self, detector: Option<Rc<Detector>>) {
        let before = self.detector.replace(detector);
        if let Some(before) = before {
            // A turn in the middle of which this happens keeps the rest alive until it ends.
            drop(before.watchdog.take());
        }
    }

    /// Asks the handler about a queue that is about to run, and arms the watchdog for its turn.
    /// Runs user code.
    #[inline]
    pub(super) fn begin(
        &self,
        queue: TaskQueueHandle,
        interval: impl FnOnce() -> Duration,
    ) -> Option<TimedTurn> {
        let detector = self.detector.borrow().clone()?;
        detector.begin(queue, interval())
    }

    /// What times the turn under way, if its budget has an end.
    #[inline]
    pub(super) fn timing(&self) -> Option<Rc<Detector>> {
        let detector = self.detector.borrow();
        let timing = detector.as_ref().filter(|it| it.deadline.get().is_some());
        timing.cloned()
    }
}

impl Detector {
    fn begin(self: Rc<Self>, queue: TaskQueueHandle, interval: Duration) -> Option<TimedTurn> {
        let threshold = self.handler.threshold(queue, interval)?;
        let budget = interval.saturating_add(threshold);
        let started = clock::real();
        let deadline = started.checked_add(budget);
        self.watchdog.borrow().as_ref()?.arm(deadline);
        self.deadline.set(deadline);
        Some(TimedTurn {
            detector: Some(self),
            started,
            budget,
        })
    }
}

impl Detector {
    fn is_over_budget(&self) -> bool {
        let deadline = self.deadline.get();
        deadline.is_some_and(|deadline| clock::real() >= deadline)
    }

    /// The turn is over. Returns the named task in whose poll its budget ended.
    fn finish(&self) -> Option<Name> {
        self.deadline.set(None);
        self.stalled.take()
    }
}

/// A poll of a task with a name, in a turn that is timed. Polls may be nested: the innermost in
/// which the budget ends is the one that is named.
pub(super) struct Watched<'a> {
    detector: Rc<Detector>,
    name: &'a Name,
    /// The budget had ended before, in another task.
    is_late: bool,
}

impl<'a> Watched<'a> {
    pub(super) fn begin(detector: Rc<Detector>, name: &'a Name) -> Self {
        let is_late = detector.is_over_budget();
        Watched {
            detector,
            name,
            is_late,
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if !self.is_late && self.detector.is_over_budget() {
            let mut stalled = self.detector.stalled.borrow_mut();
            stalled.get_or_insert_with(|| self.name.clone());
        }
    }
}

/// A turn of a queue with the watchdog armed. Dropped, also by a panic of the queue's tasks, it is
/// disarmed and forgotten.
pub(super) struct TimedTurn {
    /// `None` when the turn is over.
    detector: Option<Rc<Detector>>,
    started: Instant,
    budget: Duration,
}

impl TimedTurn {
    /// Disarms the watchdog when the queue's turn has ended. Returns what is to be reported.
    pub(super) fn end(mut self) -> Option<Stall> {
        // Before disarming: a stack that is taken in between belongs to a turn that was in time.
        let elapsed = clock::real() - self.started;
        let detector = self.detector.take()?;
        let task = detector.finish();
        let trace = detector.watchdog.borrow().as_ref()?.trap().disarm();
        let overage = elapsed.checked_sub(self.budget)?;
        Some(Stall {
            detector,
            task,
            trace: trace.unwrap_or_else(|| Backtrace::from(Vec::new())),
            budget: self.budget,
            overage,
        })
    }
}

impl Drop for TimedTurn {
    fn drop(&mut self) {
        if let Some(detector) = self.detector.take() {
            drop(detector.finish());
            if let Some(watchdog) = detector.watchdog.borrow().as_ref() {
                watchdog.trap().disarm();
            }
            // It may be the last to hold a handler that was replaced.
            panic::fenced(|| drop(detector));
        }
    }
}

/// A stall that the handler has not been told of yet.
pub(super) struct Stall {
    detector: Rc<Detector>,
    task: Option<Name>,
    trace: Backtrace,
    budget: Duration,
    overage: Duration,
}

impl Stall {
    /// Tells the handler: user code, so the caller's state must be consistent before.
    pub(super) fn report(mut self, executor: usize, queue: &TaskQueue) {
        self.trace.resolve();
        let detection = StallDetection {
            executor,
            queue_handle: queue.handle(),
            queue_name: queue.name(),
            trace: self.trace,
            budget: self.budget,
            overage: self.overage,
        };
        let handler = &self.detector.handler;
        match &self.task {
            Some(name) => handler.stall_in_task(name, detection),
            None => handler.stall(detection),
        }
    }
}
