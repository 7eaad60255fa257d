//! The threads for calls that block, in three pools that do not wait for each other. Each is made when
//! it is first asked for: most executors use none.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use crate::blocking::{BlockingPool, PoolSettings, RetryTimer};
use crate::mailbox::Notifier;
use crate::panic::FirstPanic;
#[cfg(feature = "metrics")]
use crate::stats::{PoolCounts, SharedCounts};
use crate::sys::affinity::AffinityMask;

/// What an executor says about these threads.
pub(crate) struct PoolsSettings {
    /// Their names begin with it.
    pub(crate) thread_name: String,
    /// If their number and places were asked for, the masks of the threads for calls of users.
    /// Otherwise they have the executor's, and there are as many as are needed.
    pub(crate) placed: Option<Vec<Option<AffinityMask>>>,
    /// The mask of the executor.
    pub(crate) own: Option<AffinityMask>,
    /// The mask that its thread had before.
    pub(crate) inherited: Option<AffinityMask>,
}

pub(super) struct Pools {
    settings: PoolsSettings,
    retry: Arc<Retry>,
    retry_timer: Rc<dyn RetryTimer>,
    blocking: OnceCell<BlockingPool>,
    files: OnceCell<BlockingPool>,
    lookups: OnceCell<BlockingPool>,
    is_closed: Cell<bool>,
}

/// Has an executor ask the system again for threads that its pools lack, when it comes to its next turn.
pub(super) struct Retry {
    is_due: AtomicBool,
    notifier: Arc<Notifier>,
}

impl Retry {
    pub(super) fn new(notifier: Arc<Notifier>) -> Arc<Self> {
        Arc::new(Retry {
            is_due: AtomicBool::new(false),
            notifier,
        })
    }
}

impl Wake for Retry {
    fn wake(self: Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.notifier.notify();
    }
}

/// Host names that an executor looks up at a time. The resolver may wait half a minute for an
/// answer that does not come, and keeps its thread for so long.
const LOOKUP_THREADS: usize = 4;

impl Pools {
    /// `retry_timer` wakes `retry`.
    pub(super) fn new(
        settings: PoolsSettings,
        retry: Arc<Retry>,
        retry_timer: Rc<dyn RetryTimer>,
    ) -> Self {
        Pools {
            settings,
            retry,
            retry_timer,
            blocking: OnceCell::new(),
            files: OnceCell::new(),
            lookups: OnceCell::new(),
            is_closed: Cell::new(false),
        }
    }

    pub(super) fn close(&self, panics: &mut FirstPanic) {
        self.is_closed.set(true);
        self.made().for_each(|pool| pool.close(panics));
    }

    /// Asks the system for threads again, if that is due.
    #[inline]
    pub(super) fn retry_if_due(&self) {
        if self.retry.is_due.load(Ordering::Relaxed) {
            self.retry.is_due.swap(false, Ordering::Acquire);
            self.made().for_each(BlockingPool::retry);
        }
    }

    #[cfg(feature = "metrics")]
    pub(super) fn counts(&self) -> [SharedCounts<PoolCounts>; 3] {
        [self.blocking(), self.files(), self.lookups()].map(BlockingPool::counts)
    }

    /// The pool that runs blocking calls for users of this executor.
    pub(super) fn blocking(&self) -> &BlockingPool {
        self.get(&self.blocking, || {
            let timer = Rc::clone(&self.retry_timer);
            match &self.settings.placed {
                Some(masks) => BlockingPool::new(self.threads("blocking", masks.clone()), timer),
                None => BlockingPool::elastic(self.own_threads("blocking"), timer),
            }
        })
    }

    /// The pool that makes calls on files for this crate, which the ring does not have.
    pub(super) fn files(&self) -> &BlockingPool {
        self.get(&self.files, || {
            BlockingPool::elastic(self.own_threads("files"), Rc::clone(&self.retry_timer))
        })
    }

    /// The pool that looks up host names for this executor.
    pub(super) fn lookups(&self) -> &BlockingPool {
        self.get(&self.lookups, || {
            let masks = vec![self.settings.inherited; LOOKUP_THREADS];
            BlockingPool::new(self.threads("lookup", masks), Rc::clone(&self.retry_timer))
        })
    }

    /// One that is made after the others were closed is closed, too.
    fn get<'a>(
        &self,
        pool: &'a OnceCell<BlockingPool>,
        make: impl FnOnce() -> BlockingPool,
    ) -> &'a BlockingPool {
        pool.get_or_init(|| {
            let pool = make();
            if self.is_closed.get() {
                pool.close(&mut FirstPanic::default());
            }
            pool
        })
    }

    pub(super) fn made(&self) -> impl Iterator<Item = &BlockingPool> {
        let pools = [&self.blocking, &self.files, &self.lookups];
        pools.into_iter().filter_map(OnceCell::get)
    }

    fn own_threads(&self, purpose: &str) -> PoolSettings {
        self.threads(purpose, vec![self.settings.own])
    }

    fn threads(&self, purpose: &str, affinity: Vec<Option<AffinityMask>>) -> PoolSettings {
        PoolSettings {
            thread_name: format!("{}-{purpose}", self.settings.thread_name),
            affinity,
        }
    }
}
