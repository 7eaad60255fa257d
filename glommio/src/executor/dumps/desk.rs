//! Where threads ask an executor for a dump. It makes that by itself, between two rounds.

#![forbid(unsafe_code)]

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::report::Dump;
use crate::mailbox::Notifier;
use crate::sys::fork_detect::PerProcess;
use crate::task::debugging::Polled;

/// An executor has not sent a dump.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NoDump {
    /// The number of the executor.
    pub executor: usize,
    /// Where the task was spawned that its thread polls, if it polls one and that is known.
    pub running: Option<&'static Location<'static>>,
}

impl fmt::Display for NoDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executor {} does not answer: ", self.executor)?;
        match self.running {
            Some(location) => write!(f, "it polls the task that was spawned at {location}"),
            None => write!(f, "it polls no task that is known here"),
        }
    }
}

impl std::error::Error for NoDump {}

/// Where others ask an executor for a dump.
pub(in crate::executor) struct Desk {
    pub(in crate::executor) id: usize,
    notifier: Arc<Notifier>,
    /// What is polled on its thread.
    polled: Polled,
    is_asked: AtomicBool,
    /// None once it is gone.
    asking: Mutex<Option<Vec<SyncSender<Dump>>>>,
}

impl Desk {
    /// From where its dump is to be received.
    pub(in crate::executor) fn ask(&self) -> Receiver<Dump> {
        let (answer, answered) = sync_channel(1);
        if let Some(asking) = &mut *lock(&self.asking) {
            asking.push(answer);
        }
        self.is_asked.store(true, Ordering::Release);
        self.notifier.notify();
        answered
    }

    pub(in crate::executor) fn silent(&self) -> NoDump {
        NoDump {
            executor: self.id,
            running: self.polled.spawned_at(),
        }
    }
}

/// Keeps an executor among those that are asked, until it is dropped.
pub(in crate::executor) struct Listed(Arc<Desk>);

impl Listed {
    /// An executor of the calling thread.
    pub(in crate::executor) fn new(id: usize, notifier: Arc<Notifier>) -> Self {
        let desk = Arc::new(Desk {
            id,
            notifier,
            polled: Polled::here(),
            is_asked: AtomicBool::new(false),
            asking: Mutex::new(Some(Vec::new())),
        });
        if let Some(mut desks) = registry() {
            desks.push(Arc::clone(&desk));
        }
        Listed(desk)
    }

    /// Sends what `dump` makes to those who have asked.
    pub(in crate::executor) fn answer(&self, dump: impl FnOnce() -> Dump) {
        if !self.0.is_asked.swap(false, Ordering::Acquire) {
            return;
        }
        let asking = lock(&self.0.asking).as_mut().map(std::mem::take);
        let dump = dump();
        for answer in asking.into_iter().flatten() {
            // It may have given up.
            let _ = answer.try_send(dump.clone());
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if let Some(mut desks) = registry() {
            desks.retain(|it| !Arc::ptr_eq(it, &self.0));
        }
        // Those who ask, now or later, are told by that.
        lock(&self.0.asking).take();
    }
}

/// Those of the executors that were not dropped, in the order in which they were made.
pub(in crate::executor) fn desks() -> Vec<Arc<Desk>> {
    registry().map_or_else(Vec::new, |desks| desks.clone())
}

/// That of this process; see `metrics.rs`.
fn registry() -> Option<MutexGuard<'static, Vec<Arc<Desk>>>> {
    static EXECUTORS: PerProcess<Mutex<Vec<Arc<Desk>>>> = PerProcess::new();
    EXECUTORS.get().ok().map(lock)
}

/// Nothing under these locks can leave what they protect half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
