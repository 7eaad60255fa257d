//! The task queues of one executor: which there are, which are active, and whose turn it is.
//!
//! Invariant: a queue is in `ready` or has its turn exactly if it `is_active`; a queue with runnable
//! tasks is active.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::slices::Slices;
use super::task_panic::PanicPolicy;
use super::task_queue::TaskQueue;
use crate::clock;
use crate::error::{ExecutorErrorKind, GlommioError, QueueErrorKind, Result};
use crate::fair_queue::FairQueue;
use crate::shares::{Latency, SHARES_MAX, Shares, TaskQueueHandle};
use crate::stats::TaskQueueStats;
use crate::task::Runnable;

/// See the module.
pub(super) struct Queues {
    /// By index; `None` where a queue was removed.
    by_index: RefCell<Vec<Option<Rc<TaskQueue>>>>,
    /// Indexes of the active queues, but for the one whose turn it is.
    ready: RefCell<FairQueue<usize>>,
    /// Of the active queues.
    slices: Slices,
    /// How long all turns lasted together that were charged, and when the one under way began.
    charged: Cell<Duration>,
    charged_since: Cell<Option<Instant>>,
    current: Cell<TaskQueueHandle>,
    /// Of new queues.
    on_panic: PanicPolicy,
    /// No queue has ever had another policy than to unwind.
    all_unwind: Cell<bool>,
}

impl Queues {
    /// The default queue alone. A round lasts for `slice` unless a queue asks for less.
    pub(super) fn new(slice: Duration, on_panic: PanicPolicy) -> Self {
        let queues = Queues {
            by_index: RefCell::default(),
            ready: RefCell::new(FairQueue::new()),
            slices: Slices::new(slice),
            charged: Cell::default(),
            charged_since: Cell::default(),
            current: Cell::default(),
            on_panic,
            all_unwind: Cell::new(on_panic == PanicPolicy::Unwind),
        };
        queues.create(Shares::default(), Latency::NotImportant, "default");
        queues
    }

    pub(super) fn create(&self, shares: Shares, latency: Latency, name: &str) -> TaskQueueHandle {
        let handle = TaskQueueHandle::from_index(self.by_index.borrow().len());
        // The place is taken first: reading the shares runs user code, which may create a queue.
        self.by_index.borrow_mut().push(None);
        let queue = Rc::new(TaskQueue::new(handle, shares, latency, name, self.on_panic));
        self.by_index.borrow_mut()[handle.index()] = Some(queue);
        handle
    }

    /// Takes a queue out, which is to be dropped with nothing borrowed: the destructor of its
    /// `SharesManager` may come back in.
    ///
    /// # Errors
    ///
    /// `NotFound`; `StillActive` for the default queue and one that has tasks.
    pub(super) fn remove(&self, handle: TaskQueueHandle) -> Result<Rc<TaskQueue>, ()> {
        let queue = self.get(handle)?;
        let is_default = handle == TaskQueueHandle::default();
        if is_default || queue.unfinished.get() > 0 || queue.is_active.get() {
            return Err(queue_error(handle, QueueErrorKind::StillActive));
        }
        self.by_index.borrow_mut()[handle.index()] = None;
        Ok(queue)
    }

    /// Takes out what is at `index`; nothing if no queue ever was.
    pub(super) fn take(&self, index: usize) -> Option<Option<Rc<TaskQueue>>> {
        self.by_index.borrow_mut().get_mut(index).map(Option::take)
    }

    pub(super) fn get(&self, handle: TaskQueueHandle) -> Result<Rc<TaskQueue>, ()> {
        self.at(handle.index())
            .ok_or_else(|| queue_error(handle, QueueErrorKind::NotFound))
    }

    pub(super) fn at(&self, index: usize) -> Option<Rc<TaskQueue>> {
        self.by_index.borrow().get(index)?.clone()
    }

    /// Sets what a panic of a task of that queue does.
    pub(super) fn set_on_panic(
        &self,
        handle: TaskQueueHandle,
        policy: PanicPolicy,
    ) -> Result<(), ()> {
        self.get(handle)?.set_on_panic(policy);
        if policy != PanicPolicy::Unwind {
            self.all_unwind.set(false);
        }
        Ok(())
    }

    /// The queue with that handle, if a panic of its tasks does not unwind.
    #[inline]
    pub(super) fn isolating(&self, handle: TaskQueueHandle) -> Option<Rc<TaskQueue>> {
        if self.all_unwind.get() {
            return None;
        }
        let queue = self.at(handle.index());
        queue.filter(|it| it.on_panic() != PanicPolicy::Unwind)
    }

    /// What each of them counted since this was last called.
    pub(super) fn take_stats(&self) -> Vec<TaskQueueStats> {
        let queues = self.by_index.borrow();
        queues.iter().flatten().map(|it| it.take_stats()).collect()
    }

    /// The queue that spawns from here go to: that of the task being polled.
    #[inline]
    pub(super) fn current(&self) -> TaskQueueHandle {
        self.current.get()
    }

    /// The turn of `queue` begins.
    #[inline]
    pub(super) fn set_current(&self, queue: &TaskQueue) {
        self.current.set(queue.handle());
    }

    /// Ends the turn of the current queue as soon as the running task suspends.
    pub(super) fn yield_current(&self) {
        if let Some(queue) = self.at(self.current.get().index()) {
            queue.has_yielded.set(true);
        }
    }

    /// Appends a runnable task to its queue. If that was not active, how long it lets a round last
    /// from now on.
    #[inline]
    pub(super) fn push(&self, task: Runnable, epoch: u64, has_yielded: bool) -> Option<Duration> {
        let queue_index = task.queue();
        let queues = self.by_index.borrow();
        let queue = queues
            .get(queue_index)
            .and_then(Option::as_ref)
            .expect("a queue is not removed before its last task is over");
        queue.push(epoch, task, has_yielded);
        if queue.is_active.get() {
            None
        } else {
            self.activate(queue)
        }
    }

    /// The queue, which had nothing to run, waits for its turn. Out of line: tasks that wake each
    /// other in an active queue need none of it.
    #[inline(never)]
    fn activate(&self, queue: &TaskQueue) -> Option<Duration> {
        queue.is_active.set(true);
        let mut ready = self.ready.borrow_mut();
        let mut virtual_runtime = queue.virtual_runtime.get();
        if ready.is_ahead(virtual_runtime) {
            let now = self.charged_since.get().unwrap_or_else(clock::real);
            let away = queue.away(now - self.charged.get());
            virtual_runtime = virtual_runtime.after_absence(away);
        }
        let virtual_runtime = ready.join(queue.handle().index(), virtual_runtime);
        queue.virtual_runtime.set(virtual_runtime);
        self.slices.enter(queue.latency());
        match queue.latency() {
            Latency::Matters(latency) => Some(latency),
            Latency::NotImportant => None,
        }
    }

    fn deactivate(&self, queue: &TaskQueue) {
        queue.is_active.set(false);
        self.ready.borrow_mut().leave(queue.virtual_runtime.get());
        self.slices.leave(queue.latency());
    }

    /// Whether none waits for its turn.
    #[inline]
    pub(super) fn are_idle(&self) -> bool {
        self.ready.borrow().is_empty()
    }

    /// Nothing is runnable: no queue is behind another any more.
    pub(super) fn settle_up(&self) {
        self.ready.borrow_mut().settle_up();
    }

    /// The active queue with the least virtual runtime. Its turn [ends](Self::end_turn).
    #[inline]
    pub(super) fn next(&self) -> Option<Rc<TaskQueue>> {
        let index = self.ready.borrow_mut().take()?;
        let queue = self.at(index);
        Some(queue.expect("a queue with runnable tasks is not removed"))
    }

    /// A turn of `queue` begins for which others wait. How long it may last, if not as long as a round.
    #[inline]
    pub(super) fn begin_charged_turn(&self, queue: &TaskQueue, now: Instant) -> Option<Duration> {
        self.charged_since.set(Some(now));
        let shares = queue.shares();
        (shares < SHARES_MAX).then(|| self.slices.by_shares(shares))
    }

    /// Charges `queue` for such a turn of `ran` that ends now, of which so much is `counted`.
    pub(super) fn charge(&self, queue: &TaskQueue, ran: Duration, counted: Duration, now: Instant) {
        self.charged_since.set(None);
        self.charged.update(|charged| charged + ran);
        queue.charge(counted, now - self.charged.get());
    }

    /// The turn of `queue` is over. It was free if no other waited for it.
    #[inline]
    pub(super) fn end_turn(&self, queue: &TaskQueue, was_free: bool) {
        queue.has_yielded.set(false);
        if queue.has_runnable() {
            let virtual_runtime = queue.virtual_runtime.get();
            let mut ready = self.ready.borrow_mut();
            ready.put_back(queue.handle().index(), virtual_runtime, was_free);
        } else {
            self.deactivate(queue);
        }
        self.current.set(TaskQueueHandle::default());
    }

    /// How long a round may last.
    #[inline]
    pub(super) fn least_slice(&self) -> Duration {
        self.slices.least()
    }
}

#[cfg(test)]
impl Queues {
    pub(super) fn all(&self) -> Vec<Rc<TaskQueue>> {
        self.by_index.borrow().iter().flatten().cloned().collect()
    }

    pub(super) fn slices(&self) -> &Slices {
        &self.slices
    }
}

impl_debug! { Queues, it: by_index }

fn queue_error(handle: TaskQueueHandle, kind: QueueErrorKind) -> GlommioError<()> {
    GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
        index: handle.index(),
        kind,
    })
}
