//! What other threads send to an executor: wakes, and the notification that there are some.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use crate::mailbox::{Notifier, RemoteWakeQueue, Taken};
use crate::sys::door::looks_too_early;
use crate::task::{Biased, BiasedRef, Local, RemoteWake};

thread_local! {
    /// The address of the remote handle of this thread's executor: to compare, with nothing to
    /// borrow. Without a destructor.
    static CURRENT_REMOTE: Cell<*const RemoteHandle> = const { Cell::new(ptr::null()) };
}

/// The part of an executor that other threads share. Outlives it for as long as a waker does.
pub(super) struct RemoteHandle {
    id: usize,
    wakes: RemoteWakeQueue<RemoteWake>,
    notifier: Arc<Notifier>,
}

impl Local for RemoteHandle {
    #[inline]
    fn is_local(&self) -> bool {
        ptr::eq(CURRENT_REMOTE.get(), self)
    }
}

impl RemoteHandle {
    /// Sends a wake to the executor. Gives it back if that is gone.
    pub(super) fn send(&self, wake: RemoteWake) -> Result<(), RemoteWake> {
        self.wakes.push(wake)
    }
}

/// The executor's own side of it.
pub(super) struct Remote {
    handle: Biased<RemoteHandle>,
    /// Wakes from other threads that were taken out of their queue and not delivered yet.
    taken: RefCell<Taken<RemoteWake>>,
}

impl Remote {
    pub(super) fn new(id: usize, notifier: Arc<Notifier>) -> Self {
        Remote {
            handle: Biased::new(RemoteHandle {
                id,
                wakes: RemoteWakeQueue::new(Arc::clone(&notifier)),
                notifier,
            }),
            taken: RefCell::default(),
        }
    }

    pub(super) fn id(&self) -> usize {
        self.handle.id
    }

    #[inline]
    pub(super) fn refer(&self) -> BiasedRef<RemoteHandle> {
        self.handle.refer()
    }

    /// Whether other threads have sent something since this was last called.
    pub(super) fn take_notification(&self) -> bool {
        if self.handle.notifier.is_notified() && looks_too_early() {
            return false;
        }
        self.handle.notifier.take()
    }

    /// The oldest wake that is not delivered yet.
    pub(super) fn next_wake(&self) -> Option<RemoteWake> {
        let mut taken = self.taken.borrow_mut();
        taken.next().or_else(|| {
            *taken = self.handle.wakes.take();
            taken.next()
        })
    }

    /// As if another thread had sent something.
    pub(super) fn notify(&self) {
        self.handle.notifier.notify();
    }

    /// No task is to be woken any more.
    pub(super) fn close(&self) {
        drop((self.handle.wakes.close(), self.taken.take()));
    }

    /// The descriptor by which others end a sleep is closed.
    pub(super) fn close_signal(&self) {
        self.handle.notifier.close_signal();
    }
}

/// Has the wakers of this executor's tasks, or of none, know that they are on its thread.
pub(super) fn set_current(remote: Option<&Remote>) {
    let address = remote.map_or(ptr::null(), |remote| &raw const *remote.handle);
    CURRENT_REMOTE.set(address);
}
