//! The executor proper, composed of its parts.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "debugging")]
use super::dumps::Listed;
use super::meter::Meter;
use super::progress::Progress;
use super::queues::Queues;
use super::registry::TaskRegistry;
use super::remote::Remote;
use super::stall::Stalls;
use super::task_panic::PanicPolicies;
use super::task_queue::TaskQueue;
use crate::error::Result;
use crate::mailbox::Notifier;
#[cfg(feature = "metrics")]
use crate::metrics::Registered;
use crate::reactor::Reactor;
use crate::shares::{Latency, Shares, TaskQueueHandle};
use crate::stats::ExecutorStats;
use crate::task::Runnable;
use crate::waiters::Notice;

/// The executor proper, shared with the thread-local while it runs.
pub(crate) struct Core {
    pub(super) remote: Remote,
    pub(super) reactor: Rc<Reactor>,
    pub(super) queues: Queues,
    pub(super) progress: Progress,
    pub(super) meter: Meter,
    pub(super) tasks: TaskRegistry,
    pub(super) stalls: Stalls,
    pub(super) task_panics: PanicPolicies,
    #[cfg(feature = "debugging")]
    pub(super) listed: Listed,
    /// Given when its pool is to end.
    pool_ending: Option<Arc<Notice>>,
    /// Its metrics, in the list of all.
    #[cfg(feature = "metrics")]
    pub(super) registered: Registered,
}

impl Core {
    pub(super) fn new(
        id: usize,
        notifier: Arc<Notifier>,
        reactor: Rc<Reactor>,
        queues: Queues,
        stalls: Stalls,
        pool_ending: Option<Arc<Notice>>,
        #[cfg(feature = "metrics")] registered: Registered,
    ) -> Self {
        Core {
            #[cfg(feature = "debugging")]
            listed: Listed::new(id, Arc::clone(&notifier)),
            remote: Remote::new(id, notifier),
            reactor,
            queues,
            progress: Progress::default(),
            meter: Meter::new(),
            tasks: TaskRegistry::new(),
            stalls,
            task_panics: PanicPolicies::default(),
            pool_ending,
            #[cfg(feature = "metrics")]
            registered,
        }
    }

    pub(crate) fn id(&self) -> usize {
        self.remote.id()
    }

    /// What is given when the pool of this executor is to end.
    pub(crate) fn pool_ending(&self) -> Option<Arc<Notice>> {
        self.pool_ending.clone()
    }

    pub(crate) fn reactor(&self) -> &Rc<Reactor> {
        &self.reactor
    }

    pub(crate) fn create_queue(
        &self,
        shares: Shares,
        latency: Latency,
        name: &str,
    ) -> TaskQueueHandle {
        self.queues.create(shares, latency, name)
    }

    pub(crate) fn remove_queue(&self, handle: TaskQueueHandle) -> Result<(), ()> {
        let removed = self.queues.remove(handle)?;
        self.reactor.io_counters().forget(handle);
        drop(removed);
        Ok(())
    }

    /// The queue that spawns from here go to: that of the task being polled.
    pub(crate) fn current_queue(&self) -> TaskQueueHandle {
        self.queues.current()
    }

    pub(super) fn queue(&self, handle: TaskQueueHandle) -> Result<Rc<TaskQueue>, ()> {
        self.queues.get(handle)
    }

    /// Ends the turn of the current queue as soon as the running task suspends.
    pub(crate) fn yield_current_queue(&self) {
        self.queues.yield_current();
    }

    /// Appends a runnable task to its queue. It `has_yielded` if it was woken while it was polled.
    pub(super) fn enqueue(&self, task: Runnable, has_yielded: bool) {
        let epoch = self.progress.queued();
        if let Some(latency) = self.queues.push(task, epoch, has_yielded) {
            let round_start = self.reactor.round_start();
            self.reactor.limit_slice(round_start, latency);
        }
    }

    /// How long it has had nothing to run, in all.
    pub(crate) fn slept(&self) -> Duration {
        self.meter.slept()
    }

    /// What was counted since this was last called.
    pub(super) fn take_stats(&self) -> ExecutorStats {
        let mut stats = self.meter.take_stats(self.progress.polls());
        stats.panics = self.task_panics.isolated.take();
        stats
    }
}

impl_debug! { Core, it: id: it.id(), queues, reactor; .. }
