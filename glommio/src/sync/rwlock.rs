//! A lock for many readers or one writer, with hand-over in order of arrival.
//!
//! Invariant: if futures wait, the oldest of them cannot be admitted. So each change that may break it, an
//! access that ends and a wait that ends, is followed by [`serve`]. An access is counted from the moment it
//! is given to a waiting future, which may be before that future is polled and makes a guard of it.
//!
//! The value is in a `RefCell`, which the counts keep from ever refusing a borrow. Its check costs a load and
//! an addition, and saves the unsafe code.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::OneThread;
use crate::error::{GlommioError, ResourceType, Result};
use crate::reactor::wake;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_waiting};

/// What locking gives: a guard, or an error if the lock is closed.
pub type LockResult<T> = Result<T, ()>;

/// What an attempt to lock gives: a guard, or an error if the lock is closed or cannot be had now.
pub type TryLockResult<T> = Result<T, ()>;

/// A value that many tasks of one executor may read, or one may write, also across awaits.
///
/// Tasks that wait are admitted strictly in the order in which they came: readers that follow each other
/// together, but none before a writer that came earlier. There is no poisoning.
///
/// Not reentrant: a task that asks for what it holds waits for itself for ever. That includes reading: a
/// second `read` beside a guard waits behind a writer that came in between, which waits for the guard.
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
    state: RefCell<State>,
    value: RefCell<T>,
    _one_thread: OneThread,
}

#[derive(Debug)]
struct State {
    readers: usize,
    is_written: bool,
    /// Those among them that are no guards yet.
    unclaimed: usize,
    is_closed: bool,
    /// With what each wants; of the notified ones, what it was given, if it was not the end.
    waiters: WaitQueue<Option<Access>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl State {
    /// `Ok(true)` if the access was given.
    #[inline]
    fn try_admit(&mut self, access: Access) -> LockResult<bool> {
        self.check_open()?;
        Ok(self.waiters.waiting() == 0 && self.admit(access))
    }

    #[inline]
    fn admit(&mut self, access: Access) -> bool {
        match access {
            _ if self.is_written => return false,
            Access::Read => self.readers += 1,
            Access::Write if self.readers > 0 => return false,
            Access::Write => self.is_written = true,
        }
        true
    }

    #[inline]
    fn release(&mut self, access: Access) {
        match access {
            Access::Read => self.readers -= 1,
            Access::Write => self.is_written = false,
        }
    }

    /// Admits the oldest waiter, if that is possible; it is to be woken.
    fn serve_oldest(&mut self) -> Option<Waker> {
        let access = (*self.waiters.oldest()?)?;
        if !self.admit(access) {
            return None;
        }
        self.unclaimed += 1;
        self.waiters.notify_oldest()
    }

    /// Takes the entry of a future away. What it was given ends.
    fn leave(&mut self, key: &mut Option<WaitKey>) -> Option<Removed<Option<Access>>> {
        let left = self.waiters.leave(key);
        if let Some(Removed::Notified(Some(access))) = left {
            self.unclaimed -= 1;
            self.release(access);
        }
        left
    }

    fn is_held(&self) -> bool {
        self.readers + usize::from(self.is_written) > self.unclaimed
    }

    #[inline]
    fn check_open(&self) -> LockResult<()> {
        if self.is_closed {
            return Err(GlommioError::Closed(ResourceType::RwLock));
        }
        Ok(())
    }
}

/// Admits waiters, one borrow for each: what is woken may come back in.
#[cold]
fn serve(state: &RefCell<State>) {
    std::iter::from_fn(|| state.borrow_mut().serve_oldest()).for_each(wake);
}

impl<T> RwLock<T> {
    /// A lock that is free.
    pub fn new(value: T) -> Self {
        RwLock {
            state: RefCell::new(State {
                readers: 0,
                is_written: false,
                unclaimed: 0,
                is_closed: false,
                waiters: WaitQueue::new(),
            }),
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
    pub async fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let hold = self.hold(Access::Read).await?;
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
    pub async fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let hold = self.hold(Access::Write).await?;
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
        self.state.get_mut().check_open()?;
        Ok(self.value.get_mut())
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed; the value is dropped then.
    pub fn into_inner(self) -> LockResult<T> {
        self.state.borrow().check_open()?;
        Ok(self.value.into_inner())
    }

    /// Closes the lock, for good. All who wait, and all who come, get an error. Does nothing to a closed one.
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
        let mut state = self.state.borrow_mut();
        if !state.is_closed && state.is_held() {
            let why = "Lock is still held by fiber(s)";
            return Err(GlommioError::CanNotBeClosed(ResourceType::RwLock, why));
        }
        state.is_closed = true;
        let waiting = state.waiters.waiting();
        drop(state);
        let close_oldest = || {
            let mut state = self.state.borrow_mut();
            *state.waiters.oldest()? = None;
            state.waiters.notify_oldest()
        };
        std::iter::from_fn(close_oldest)
            .take(waiting)
            .for_each(wake);
        Ok(())
    }

    /// Whether the lock was closed.
    pub fn is_closed(&self) -> bool {
        self.state.borrow().is_closed
    }

    async fn hold(&self, access: Access) -> LockResult<Hold<'_>> {
        // A future that does not have to wait has no place in the order to care for.
        if !self.state.borrow_mut().try_admit(access)? {
            let state = &self.state;
            let key = None;
            Admission { state, access, key }.await?;
        }
        Ok(Hold {
            state: &self.state,
            access,
        })
    }

    fn try_hold(&self, access: Access) -> TryLockResult<Hold<'_>> {
        if !self.state.borrow_mut().try_admit(access)? {
            return Err(GlommioError::WouldBlock(ResourceType::RwLock));
        }
        Ok(Hold {
            state: &self.state,
            access,
        })
    }

    fn read_guard<'a>(&'a self, hold: Hold<'a>) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard {
            value: self.value.borrow(),
            _hold: hold,
        }
    }

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
struct Admission<'a> {
    state: &'a RefCell<State>,
    access: Access,
    key: Option<WaitKey>,
}

impl Future for Admission<'_> {
    type Output = LockResult<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Admission { state, access, key } = &mut *self;
        poll_waiting(cx, |waker| {
            let mut state = state.borrow_mut();
            if let Err(closed) = state.check_open() {
                if let Some(Removed::Waiting(known)) = state.leave(key) {
                    waker.drop_later(known);
                }
                return Poll::Ready(Err(closed));
            }
            let is_admitted = match key {
                Some(key) => state.waiters.is_notified(key),
                None => state.try_admit(*access)?,
            };
            if !is_admitted {
                state.waiters.wait(key, waker, Some(*access));
                return Poll::Pending;
            }
            if state.waiters.finish(key, waker) {
                state.unclaimed -= 1;
            }
            Poll::Ready(Ok(()))
        })
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.key.is_none() {
            return;
        }
        let left = self.state.borrow_mut().leave(&mut self.key);
        // Readers behind a writer that gives up, or whoever is next behind an access that ends.
        serve(self.state);
        drop(left);
    }
}

/// An access, which ends when this is dropped.
struct Hold<'a> {
    state: &'a RefCell<State>,
    access: Access,
}

impl Drop for Hold<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.release(self.access);
        let is_awaited = state.waiters.waiting() > 0;
        drop(state);
        if is_awaited {
            serve(self.state);
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

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
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
