//! What programs say about stalls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::detection::StallDetection;
use crate::shares::TaskQueueHandle;

/// Decides what a stall is, and is called for each.
///
/// An executor whose task computes or blocks for long without an `.await` runs none of its other
/// tasks meanwhile. With a handler, given to
/// [`LocalExecutorBuilder::detect_stalls`](crate::LocalExecutorBuilder::detect_stalls) or
/// [`LocalExecutor::detect_stalls`](crate::LocalExecutor::detect_stalls), each turn of a task queue
/// gets a budget: the preemption interval and the handler's [`threshold`](Self::threshold) on top.
/// If the queue has not given the thread back when the budget ends, the thread is sent a
/// [`signal`](Self::signal), in which its stack is taken; when the queue does give the thread back,
/// [`stall`](Self::stall) is called, once.
///
/// All methods are called on the executor's thread, with no task running and nothing inside the
/// executor locked. A panic in them leaves [`LocalExecutor::run`](crate::LocalExecutor::run) as
/// that of a task does. `stall` and `threshold` are part of the scheduler: they must not block, and
/// everything that they do is time that no task gets.
///
/// # Cost
///
/// A thread for each executor with detection, which sleeps unless a queue's turn lasts as long as a
/// budget; two readings of the clock, a call of `threshold` and a few atomic operations for each
/// turn of a queue. For a detection, putting names to the frames of the stack: the first time this
/// reads the program's debug information and takes long, tens of milliseconds or more.
///
/// # Signals
///
/// The handler for the signal is installed for the whole process when the first executor uses it,
/// and stays until the process ends, doing nothing when no executor uses it any more. A handler
/// that the program had installed before is called as well. From then on the default action of the
/// signal, which for most of them ends the process, does not happen. A program that installs a
/// handler of its own later, and does not call the one that was there, gets its detections without
/// stacks.
///
/// A blocking system call of the stalled task is interrupted; those that can be are restarted
/// (`SA_RESTART`), others such as `poll` and `nanosleep` return `EINTR` to their caller (see
/// `signal(7)`). The standard library goes on by itself.
///
/// Unwinding a stack in a signal handler is outside of what POSIX allows there. Nothing is
/// allocated and no lock of ours is taken, and what the unwinder prepares at its first use is
/// prepared when detection is switched on. With glibc 2.35 or newer it takes no lock either. What
/// remains: with other C libraries, a task that is interrupted inside the dynamic linker (`dlopen`)
/// can hang; and code without unwind tables ends the stack early.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutorBuilder, StallDetection, StallDetectionHandler, TaskBuilder, TaskQueueHandle};
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
///
/// #[derive(Debug, Default, Clone)]
/// struct Record(Arc<Mutex<Vec<String>>>);
///
/// impl StallDetectionHandler for Record {
///     fn threshold(&self, _: TaskQueueHandle, preempt_interval: Duration) -> Option<Duration> {
///         Some(preempt_interval / 10)
///     }
///
///     fn stall(&self, detection: StallDetection<'_>) {
///         let seen = format!("{} by {:?}", detection.queue_name, detection.overage);
///         self.0.lock().unwrap().push(seen);
///     }
///
///     fn stall_in_task(&self, task: &str, _: StallDetection<'_>) {
///         self.0.lock().unwrap().push(task.to_owned());
///     }
/// }
///
/// let record = Record::default();
/// let executor = LocalExecutorBuilder::default()
///     .preempt_timer(Duration::from_millis(10))
///     .detect_stalls(Some(Box::new(record.clone())))
///     .make()?;
/// executor.run(async {
///     let task = TaskBuilder::new().name("checksum").spawn_local(async {
///         // No other task runs meanwhile: this should have been `glommio::timer::sleep`.
///         std::thread::sleep(Duration::from_millis(30));
///     });
///     task.await;
/// });
/// let seen = record.0.lock().unwrap();
/// assert!(seen.iter().any(|it| it == "checksum"));
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub trait StallDetectionHandler: fmt::Debug + Send + Sync {
    /// How long the turn of a queue that is about to run may last beyond the preemption interval,
    /// at the end of which its tasks are asked to give the thread back. `None`: this turn is
    /// not timed. Default: 10 ms.
    fn threshold(&self, _queue: TaskQueueHandle, _preempt_interval: Duration) -> Option<Duration> {
        Some(Duration::from_millis(10))
    }

    /// Called for a stall, after the queue has given the thread back: never for one that does not
    /// end. Default: a warning in the log.
    fn stall(&self, detection: StallDetection<'_>) {
        tracing::warn!("{detection}");
    }

    /// As [`stall`](Self::stall), and called in its place if the budget ended in a poll of a task
    /// that has a name, given by [`TaskBuilder`](crate::TaskBuilder). Default: calls `stall`,
    /// inside a span of the log, `stall`, whose field `task` is the name.
    fn stall_in_task(&self, task: &str, detection: StallDetection<'_>) {
        let span = tracing::warn_span!("stall", task);
        span.in_scope(|| self.stall(detection));
    }

    /// The signal that the executor's thread is sent when a budget ends. Asked once, when the
    /// detection is switched on. Default: `SIGUSR1`.
    ///
    /// Several executors may use one signal, also one that the program uses otherwise.
    fn signal(&self) -> u8 {
        libc::SIGUSR1 as u8
    }
}

/// The handler with all defaults: 10 ms, `SIGUSR1`, a warning in the log.
#[derive(Debug)]
pub struct DefaultStallDetectionHandler {}

impl StallDetectionHandler for DefaultStallDetectionHandler {}

/// A handler that one executor after the other uses.
#[derive(Debug)]
pub(in crate::executor) struct SharedHandler(Arc<dyn StallDetectionHandler>);

impl SharedHandler {
    pub(in crate::executor) fn new(handler: Box<dyn StallDetectionHandler>) -> Self {
        SharedHandler(Arc::from(handler))
    }

    /// This handler, for a further executor.
    pub(in crate::executor) fn boxed(&self) -> Box<dyn StallDetectionHandler> {
        Box::new(SharedHandler(Arc::clone(&self.0)))
    }
}

impl StallDetectionHandler for SharedHandler {
    fn threshold(&self, queue: TaskQueueHandle, preempt_interval: Duration) -> Option<Duration> {
        self.0.threshold(queue, preempt_interval)
    }

    fn stall(&self, detection: StallDetection<'_>) {
        self.0.stall(detection);
    }

    fn stall_in_task(&self, task: &str, detection: StallDetection<'_>) {
        self.0.stall_in_task(task, detection);
    }

    fn signal(&self) -> u8 {
        self.0.signal()
    }
}
