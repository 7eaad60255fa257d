//! The threads for calls that block, in three pools that do not wait for each other.

use crate::blocking::{BlockingPool, PoolSettings, RetryTimer};
use crate::panic::FirstPanic;
#[cfg(feature = "metrics")]
use crate::stats::{PoolCounts, SharedCounts};

/// What an executor says about these threads.
pub(crate) struct PoolsSettings {
    /// For the calls of users.
    pub(crate) blocking: PoolSettings,
    /// The number and places of these were asked for. Otherwise there is one mask, and as many
    /// threads as are needed.
    pub(crate) is_placed: bool,
    /// For calls of this crate on files, which the ring does not have: one mask, and as many threads
    /// as are needed.
    pub(crate) files: PoolSettings,
    /// For looking up host names.
    pub(crate) lookups: PoolSettings,
}

pub(super) struct Pools {
    blocking: BlockingPool,
    files: BlockingPool,
    lookups: BlockingPool,
}

impl Pools {
    /// The two timers are those by which the pools for users and for files ask the system for a
    /// thread again.
    pub(super) fn new(
        settings: PoolsSettings,
        retry_blocking: Box<dyn RetryTimer>,
        retry_files: Box<dyn RetryTimer>,
    ) -> Self {
        let make = if settings.is_placed {
            BlockingPool::new
        } else {
            BlockingPool::elastic
        };
        Pools {
            blocking: make(settings.blocking, Some(retry_blocking)),
            files: BlockingPool::elastic(settings.files, Some(retry_files)),
            // A lookup has a caller that can be told of an error.
            lookups: BlockingPool::new(settings.lookups, None),
        }
    }

    pub(super) fn close(&self, panics: &mut FirstPanic) {
        for pool in [&self.blocking, &self.files, &self.lookups] {
            pool.close(panics);
        }
    }

    /// Whether a thread makes a call, or soon will.
    #[cfg(feature = "simulation")]
    pub(super) fn are_busy(&self) -> bool {
        [&self.blocking, &self.files, &self.lookups]
            .iter()
            .any(|pool| pool.is_busy())
    }

    #[cfg(feature = "metrics")]
    pub(super) fn counts(&self) -> [SharedCounts<PoolCounts>; 3] {
        [&self.blocking, &self.files, &self.lookups].map(BlockingPool::counts)
    }

    /// The pool that runs blocking calls for users of this executor.
    pub(super) fn blocking(&self) -> &BlockingPool {
        &self.blocking
    }

    /// The pool that makes calls on files for this crate.
    pub(super) fn files(&self) -> &BlockingPool {
        &self.files
    }

    /// The pool that looks up host names for this executor.
    pub(super) fn lookups(&self) -> &BlockingPool {
        &self.lookups
    }
}
