//! Children that are to be reaped though their owners do not wait for them any more.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Mutex, PoisonError, TryLockError};

use crate::executor::spawn_local_into;
use crate::io::PollableFd;
use crate::reactor::current;
use crate::shares::TaskQueueHandle;
use crate::sys::fork_detect::Origin;
use crate::sys::pidfd::ChildFd;

/// Those that outlived their executor, or were dropped where none runs.
static LEFT: Mutex<Vec<ChildFd>> = Mutex::new(Vec::new());

/// Reaps the child of the process `origin` when it has ended: at once, by a task of the executor on
/// this thread, or in a later [`reap_left`].
pub(super) fn reap(child: ChildFd, origin: Origin) {
    reap_left();
    if has_ended(&child) {
        return;
    }
    let orphan = Orphan {
        child: Some(child),
        origin,
    };
    // A forked process cannot use the ring of its parent.
    if current::try_current().is_some_and(|reactor| !reactor.is_inherited()) {
        // The default queue is always there, and a queue of the user must not be kept busy. If that
        // fails, dropping the future leaves the child to others.
        if let Ok(task) = spawn_local_into(orphan.reaped(), TaskQueueHandle::default()) {
            task.detach();
        }
    }
}

/// Reaps those that have ended since.
pub(super) fn reap_left() {
    let mut left = match LEFT.try_lock() {
        Ok(left) => left,
        Err(TryLockError::Poisoned(left)) => left.into_inner(),
        // Another thread is at it.
        Err(TryLockError::WouldBlock) => return,
    };
    left.retain(|child| !has_ended(child));
}

/// Whether the child needs not be reaped any more: it was, by this or by other code.
fn has_ended(child: &ChildFd) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

struct Orphan {
    /// `None` once it was reaped.
    child: Option<ChildFd>,
    origin: Origin,
}

impl Orphan {
    async fn reaped(self) {
        // An error leaves it to `drop`.
        let Ok(mut orphan) = PollableFd::new(self) else {
            return;
        };
        while orphan.readable().await.is_ok() {
            if orphan.get_ref().has_ended() {
                orphan.get_mut().child = None;
                return;
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.child.as_ref().is_none_or(has_ended)
    }
}

impl AsRawFd for Orphan {
    fn as_raw_fd(&self) -> RawFd {
        let child = self.child.as_ref();
        child.expect("it is watched until it is reaped").as_raw_fd()
    }
}

/// The executor ends before the child.
impl Drop for Orphan {
    fn drop(&mut self) {
        if let Some(child) = self.child.take()
            && self.origin.is_here()
            && !has_ended(&child)
        {
            let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
            left.push(child);
        }
    }
}
