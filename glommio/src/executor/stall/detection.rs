//! What is reported of a stall.

use std::fmt;
use std::time::Duration;

use backtrace::Backtrace;

use crate::shares::TaskQueueHandle;

/// A turn of a task queue that outlasted its budget.
#[derive(Debug)]
pub struct StallDetection<'a> {
    /// The [number](crate::LocalExecutor::id) of the executor.
    pub executor: usize,
    /// The queue that had its turn.
    pub queue_handle: TaskQueueHandle,
    /// The name under which the queue was created.
    pub queue_name: &'a str,
    /// The stack at the end of the budget, the interrupted function first. The frames have their
    /// names, as far as the program has symbols.
    ///
    /// Without frames if the queue gave the thread back before the signal came, if the thread blocks
    /// the signal, or if a later [handler](super::StallDetectionHandler#signals) of the program swallows
    /// it. Cut off after 256 frames.
    pub trace: Backtrace,
    /// How long the queue could have had the thread: the preemption interval and the threshold.
    pub budget: Duration,
    /// How much longer it had the thread.
    pub overage: Duration,
}

impl fmt::Display for StallDetection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "executor {}: task queue {:?} (index {}) went {:?} over its budget of {:?}",
            self.executor,
            self.queue_name,
            self.queue_handle.index(),
            self.overage,
            self.budget,
        )?;
        if self.trace.frames().is_empty() {
            return f.write_str(
                "; there is no stack: the queue gave the thread back first, or the signal did not reach this handler",
            );
        }
        write!(
            f,
            "; at the end of the budget it was here:\n{:?}",
            self.trace
        )
    }
}
