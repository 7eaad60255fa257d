//! The way back of a woken task to its executor.

use super::current;
use super::remote::RemoteHandle;
use crate::task::{BiasedRef, Local, RemoteWake, Runnable, Schedule};

/// Returns a woken task to its executor.
pub(super) struct Scheduler(BiasedRef<RemoteHandle>);

impl Scheduler {
    #[inline]
    pub(super) fn new(remote: BiasedRef<RemoteHandle>) -> Self {
        Scheduler(remote)
    }
}

impl Schedule for Scheduler {
    #[inline]
    fn is_owner(&self) -> bool {
        self.0.is_local()
    }

    #[inline]
    fn schedule(&self, task: Runnable, has_yielded: bool) {
        current::peek(|core| {
            let core = core.expect("`is_owner` was asked before");
            core.enqueue(task, has_yielded);
        });
    }

    fn send(&self, wake: RemoteWake) {
        // The executor is gone, and all futures with it: only the memory of the wakes is left.
        if let Err(wake) = self.0.send(wake) {
            drop(wake);
        }
    }
}
