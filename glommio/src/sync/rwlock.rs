//! A lock for many readers or one writer, with hand-over in order of arrival.
//!
//! Invariant: if futures wait, the oldest of them cannot be admitted. So each change that may break
//! it, an access that ends and a wait that ends, is followed by [`serve`]. An access is counted
//! from the moment it is given to a waiting future, which may be before that future is polled and
//! makes a guard of it.
//!
//! The value is in a `RefCell`, which the counts keep from ever refusing a borrow. Its check costs
//! a load and an addition, and saves the unsafe code.
//!
//! Cost: while no future waits, an access is two loads, two comparisons and a store, and so is its
//! end, besides that check.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::OneThread;
use crate::error::{GlommioError, ResourceType, Result};
use crate::reactor::wake;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_first};

/// What locking gives: a guard, or an error if the lock is closed.
pub type LockResult<T> = Result<T, ()>;

/// What an attempt to lock gives: a guard, or an error if the lock is closed or cannot be had now.
pub type TryLockResult<T> = Result<T, ()>;

/// A value that many tasks of one executor may read, or one may write, also across awaits.
///
/// Tasks that wait are admitted strictly in the order in which they came: readers that follow each
/// other together, but none before a writer that came earlier. There is no poisoning.
///
/// Not reentrant: a task that asks for what it holds waits for itself for ever. That includes
/// reading: a second `read` beside a guard waits behind a writer that came in between, which waits
/// for the guard.
///
/// # Examples
///
/// ```
/// use glommio::sync::RwLock;
///
/// glommio::LocalExecutor::default().run(async {
///     let lock = RwLock::new(vec![1]);
///     {
///         let first = lock.read().await?;
///         let second = lock.read().await?;
///         assert_eq!(*first, *second);
///     }
///     lock.write().await?.push(2);
///     assert_eq!(lock.into_inner()?, [1, 2]);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct RwLock<T> {
    order: Order,
    value: RefCell<T>,
    _one_thread: OneThread,
}

/// Who has the lock, and who waits for it.
#[derive(Debug)]
struct Order {
    /// How many read, or [`WRITTEN`].
    accesses: Cell<isize>,
    /// How many among them are no guards yet.
    unclaimed: Cell<usize>,
    stage: Cell<Stage>,
    /// With what each wants; of the notified ones, what it was given, if it was not the end.
    waiters: RefCell<WaitQueue<Option<Access>>>,
}

const WRITTEN: isize = -1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Open, and no future waits.
    Free,
    /// Open, and futures wait.
    Awaited,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Order {
    /// Gives the access if that is possible and no future waits.
    #[inline]
    fn take_now(&self, access: Access) -> Option<Hold<'_>> {
        let is_given = self.stage.get() == Stage::Free && self.admit(access);
        // Made only if it was given: its drop ends the access.
        is_given.then(|| Hold { order: self })
    }

    /// Gives the access if none is in the way that was given before.
    #[inline]
    fn admit(&self, access: Access) -> bool {
        let accesses = self.accesses.get();
        let is_possible = match access {
            Access::Read => accesses >= 0,
            Access::Write => accesses == 0,
        };
        if is_possible {
            self.accesses.set(match access {
                Access::Read => accesses + 1,
                Access::Write => WRITTEN,
            });
        }
        is_possible
    }

    /// Ends an access.
    #[inline]
    fn release(&self) {
        let accesses = self.accesses.get();
        self.accesses.set(match accesses {
            WRITTEN => 0,
            readers => readers - 1,
        });
    }

    fn is_held(&self) -> bool {
        self.accesses.get().unsigned_abs() > self.unclaimed.get()
    }

    fn check_open(&self) -> LockResult<()> {
        match self.stage.get() {
            Stage::Closed => Err(GlommioError::Closed(ResourceType::RwLock)),
            _ => Ok(()),
        }
    }

    /// Admits waiters, one borrow for each: what is woken may come back in.
    #[cold]
    fn serve(&self) {
        std::iter::from_fn(|| self.serve_oldest()).for_each(wake);
    }

    /// Admits the oldest waiter, if that is possible; it is to be woken.
    fn serve_oldest(&self) -> Option<Waker> {
        let mut waiters = self.waiters.borrow_mut();
        let access = (*waiters.oldest()?)?;
        if !self.admit(access) {
            return None;
        }
        self.unclaimed.update(|accesses| accesses + 1);
        let oldest = waiters.notify_oldest();
        self.note(waiters.waiting());
        oldest
    }

    /// Takes the entry of a future away. What it was given ends.
    fn leave(&self, key: &mut Option<WaitKey>) -> Option<Removed<Option<Access>>> {
        let mut waiters = self.waiters.borrow_mut();
        let left = waiters.leave(key);
        self.note(waiters.waiting());
        if let Some(Removed::Notified(Some(_))) = left {
            self.unclaimed.update(|accesses| accesses - 1);
            self.release();
        }
        left
    }

    /// Notes that so many futures wait now.
    fn note(&self, waiting: usize) {
        if self.stage.get() != Stage::Closed {
            self.stage.set(match waiting {
                0 => Stage::Free,
                _ => Stage::Awaited,
            });
        }
    }

    fn close(&self) {
        self.stage.set(Stage::Closed);
        let waiting = self.waiters.borrow().waiting();
        let close_oldest = || {
            let mut waiters = self.waiters.borrow_mut();
            *waiters.oldest()? = None;
            waiters.notify_oldest()
        };
        std::iter::from_fn(close_oldest)
            .take(waiting)
            .for_each(wake);
    }
}

impl<T> RwLock<T> {
    /// A lock that is free.
    pub fn new(value: T) -> Self {
        RwLock {
            order: Order {
                accesses: Cell::new(0),
                unclaimed: Cell::new(0),
                stage: Cell::new(Stage::Free),
                waiters: RefCell::new(WaitQueue::new()),
            },
            value: RefCell::new(value),
            _one_thread: OneThread::default(),
        }
    }

    /// Locks for reading, waiting until no task writes and none that came before waits.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed, or is closed while this waits.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped loses its place in the order.
    #[inline]
    pub async fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        if let Some(hold) = self.order.take_now(Access::Read) {
            return Ok(self.read_guard(hold));
        }
        let hold = self.admission(Access::Read).await?;
        Ok(self.read_guard(hold))
    }

    /// Locks for writing, waiting until no task reads or writes and none that came before waits.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    #[inline]
    pub async fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        if let Some(hold) = self.order.take_now(Access::Write) {
            return Ok(self.write_guard(hold));
        }
        let hold = self.admission(Access::Write).await?;
        Ok(self.write_guard(hold))
    }

    /// Locks for reading if no task writes, and none waits.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed, else `WouldBlock` if this would have to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, sync::RwLock};
    ///
    /// let lock = RwLock::new(1);
    /// let guard = lock.try_read()?;
    /// assert_eq!(*lock.try_read()? + *guard, 2);
    /// assert!(matches!(lock.try_write(), Err(GlommioError::WouldBlock(_))));
    /// # Ok::<_, GlommioError<()>>(())
    /// ```
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let hold = self.try_hold(Access::Read)?;
        Ok(self.read_guard(hold))
    }

    /// Locks for writing if no task reads or writes, and none waits.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let hold = self.try_hold(Access::Write)?;
        Ok(self.write_guard(hold))
    }

    /// The value, without locking.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.order.check_open()?;
        Ok(self.value.get_mut())
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed; the value is dropped then.
    pub fn into_inner(self) -> LockResult<T> {
        self.order.check_open()?;
        Ok(self.value.into_inner())
    }

    /// Closes the lock, for good. All who wait, and all who come, get an error. Does nothing to a
    /// closed one.
    ///
    /// # Errors
    ///
    /// `CanNotBeClosed` if a task holds a guard; the lock stays open then.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = glommio::sync::RwLock::new(1);
    /// let guard = lock.try_read()?;
    /// assert!(lock.close().is_err());
    /// drop(guard);
    /// lock.close()?;
    /// assert!(lock.is_closed() && lock.try_read().is_err());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn close(&self) -> LockResult<()> {
        if !self.is_closed() && self.order.is_held() {
            let why = "Lock is still held by fiber(s)";
            return Err(GlommioError::CanNotBeClosed(ResourceType::RwLock, why));
        }
        self.order.close();
        Ok(())
    }

    /// Whether the lock was closed.
    pub fn is_closed(&self) -> bool {
        self.order.stage.get() == Stage::Closed
    }

    /// The way to an access that could not be had at once.
    fn admission(&self, access: Access) -> Admission<'_> {
        Admission {
            order: &self.order,
            access,
            key: None,
        }
    }

    fn try_hold(&self, access: Access) -> TryLockResult<Hold<'_>> {
        self.order.take_now(access).ok_or_else(|| {
            let would_block = || GlommioError::WouldBlock(ResourceType::RwLock);
            self.order.check_open().err().unwrap_or_else(would_block)
        })
    }

    #[inline]
    fn read_guard<'a>(&'a self, hold: Hold<'a>) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard {
            value: self.value.borrow(),
            _hold: hold,
        }
    }

    #[inline]
    fn write_guard<'a>(&'a self, hold: Hold<'a>) -> RwLockWriteGuard<'a, T> {
        RwLockWriteGuard {
            value: self.value.borrow_mut(),
            _hold: hold,
        }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        // Locked, since the value's `Debug` may try to lock.
        match self.try_read() {
            Ok(value) => shown.field("value", &*value),
            Err(_) => shown.field("value", &format_args!("<locked or closed>")),
        };
        shown.field("is_closed", &self.is_closed()).finish()
    }
}

/// An access on the way to a future.
#[must_use = "futures do nothing unless polled"]
struct Admission<'a> {
    order: &'a Order,
    access: Access,
    key: Option<WaitKey>,
}

impl<'a> Future for Admission<'a> {
    type Output = LockResult<Hold<'a>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Admission { order, access, key } = &mut *self;
        let order = *order;
        poll_first(cx, key.is_none(), |waker| {
            if let Err(closed) = order.check_open() {
                if let Some(Removed::Waiting(known)) = order.leave(key) {
                    waker.drop_later(known);
                }
                return Poll::Ready(Err(closed));
            }
            let mut waiters = order.waiters.borrow_mut();
            let was_told = key.as_ref().map(|key| waiters.is_notified(key));
            match was_told {
                Some(true) => order.unclaimed.update(|accesses| accesses - 1),
                None if waiters.waiting() == 0 && order.admit(*access) => {}
                _ => {
                    waiters.wait(key, waker, Some(*access));
                    order.note(waiters.waiting());
                    return Poll::Pending;
                }
            }
            waiters.finish(key, waker);
            Poll::Ready(Ok(Hold { order }))
        })
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.key.is_none() {
            return;
        }
        let left = self.order.leave(&mut self.key);
        // Readers behind a writer that gives up, or whoever is next behind an access that ends.
        self.order.serve();
        drop(left);
    }
}

/// An access, which ends when this is dropped.
struct Hold<'a> {
    order: &'a Order,
}

impl Drop for Hold<'_> {
    #[inline]
    fn drop(&mut self) {
        self.order.release();
        if self.order.stage.get() == Stage::Awaited {
            self.order.serve();
        }
    }
}

/// The value of an [`RwLock`] that is locked for reading until this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T> {
    /// Before the hold, and so dropped before it.
    value: Ref<'a, T>,
    _hold: Hold<'a>,
}

/// The value of an [`RwLock`] that is locked for writing until this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T> {
    /// Before the hold, and so dropped before it.
    value: RefMut<'a, T>,
    _hold: Hold<'a>,
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwLockReadGuard").field(&**self).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwLockWriteGuard").field(&**self).finish()
    }
}
