//! Waiting for other tasks of the same executor: semaphores, locks, gates, cells and cancellation.
//!
//! | type | for |
//! |---|---|
//! | [`Semaphore`] | a number of units that tasks take and give back |
//! | [`RwLock`] | a value with many readers or one writer, held across awaits |
//! | [`Mutex`] | a value with one user at a time, held across awaits |
//! | [`Gate`] | waiting until all tasks of a group are done, and letting no more in |
//! | [`OnceCell`] | a value that the first task to need it makes |
//! | [`CancellationToken`] | telling a tree of tasks to stop, also on other executors |
//!
//! ```
//! use glommio::sync::{Gate, Semaphore};
//! use std::rc::Rc;
//!
//! glommio::LocalExecutor::default().run(async {
//!     let (workers, limit) = (Gate::new(), Rc::new(Semaphore::new(2)));
//!     for _ in 0..10 {
//!         let limit = limit.clone();
//!         let worker = workers.spawn(async move {
//!             let _permit = limit.acquire_permit(1).await.expect("it is never closed");
//!             // At most two tasks are here.
//!         })?;
//!         worker.detach();
//!     }
//!     workers.close().await // until all are done
//! })?;
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! None of them uses atomics or leaves its thread, except [`RemoteCancellation`]. None needs a running
//! executor, except [`Gate::spawn`], [`Gate::spawn_into`] and [`RemoteCancellation::attach`]. There is
//! no poisoning: what a task held is given back when it panics, as when it ends.
//!
//! # Order
//!
//! Semaphores and locks serve first come, first served, and hand over: what is released belongs at
//! once to the task that has waited longest, and a newcomer cannot overtake it. A future that was
//! served and is dropped before it was polled gives back what it got.
//!
//! **Drop futures that you no longer poll.** A released permit or lock goes to the oldest waiter at
//! once and is not taken back. If that waiter is a future that you keep and do not poll, such as the
//! losing arm of a race that you stored, all tasks behind it wait until it is polled or dropped.

#![forbid(unsafe_code)]

/// What a guard is, with the value in its field `value`.
macro_rules! guard_impls {
    ($Guard:ident) => {
        impl<T> std::ops::Deref for $Guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.value
            }
        }

        impl<T: std::fmt::Debug> std::fmt::Debug for $Guard<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($Guard)).field(&**self).finish()
            }
        }
    };
}

mod cancellation;
mod gate;
mod mutex;
mod once_cell;
mod rwlock;
mod semaphore;

pub use cancellation::{CancellationToken, Cancelled, RemoteCancellation};
pub use gate::{Gate, Pass};
pub use mutex::{Mutex, MutexGuard};
pub use once_cell::OnceCell;
pub use rwlock::{LockResult, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockResult};
pub use semaphore::{Permit, Semaphore, StaticPermit};

#[doc(hidden)]
#[deprecated = "renamed to `RemoteCancellation`"]
pub type ForeignCancellation = RemoteCancellation;

/// Keeps a type on its thread, as 0.9 does: programs must not come to rely on more than one
/// executor.
type OneThread = std::marker::PhantomData<std::rc::Rc<()>>;
