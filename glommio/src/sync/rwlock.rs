//! A lock for many readers or one writer, with hand-over in order of arrival.
//!
//! The value is in a `RefCell`, which the counts keep from ever refusing a borrow. Its check costs
//! a load and an addition, and saves the unsafe code.
//!
//! Cost: while no future waits, an access is two loads, two comparisons and a store, and so is its
//! end, besides that check.

mod order;

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::DerefMut;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use order::{Access, Hold, Order};

use super::OneThread;
use crate::error::{GlommioError, ResourceType, Result};
use crate::reactor::budget;
use crate::wait_queue::WaitKey;

/// What locking gives: a guard, or an error if the lock is closed.
pub type LockResult<T> = Result<T, ()>;

/// What an attempt to lock gives: a guard, or an error if the lock is closed or cannot be had now.
pub type TryLockResult<T> = Result<T, ()>;

/// A value that many tasks of one executor may read, or one may write, also across awaits.
///
/// Tasks that wait are admitted strictly in the order in which they came: readers that follow each
/// other together, but none before a writer that came earlier. There is no poisoning.
///
/// Not reentrant: a task that asks for what it holds waits for itself forever. That includes
/// reading: a second `read` while it holds a guard waits behind a writer that came in between, which waits
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

impl<T> RwLock<T> {
    /// A lock that is free.
    pub fn new(value: T) -> Self {
        RwLock {
            order: Order::new(),
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
    pub fn read(&self) -> impl Future<Output = LockResult<RwLockReadGuard<'_, T>>> {
        Locking::new(self)
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
    pub fn write(&self) -> impl Future<Output = LockResult<RwLockWriteGuard<'_, T>>> {
        Locking::new(self)
    }

    /// Locks for reading if no task writes, and none waits.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed, else `WouldBlock` if this would have to wait.
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        self.try_lock()
    }

    /// Locks for writing if no task reads or writes, and none waits.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        self.try_lock()
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
    /// let mut lock = glommio::sync::RwLock::new(vec![1]);
    /// lock.try_write()?.push(2);
    /// lock.get_mut()?.push(3); // without locking: nothing else refers to it
    /// let guard = lock.try_read()?;
    /// assert_eq!((guard.len(), lock.try_read()?.len()), (3, 3));
    /// assert!(lock.try_write().is_err() && lock.close().is_err());
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
        self.order.is_closed()
    }

    fn try_lock<'a, G: Guard<'a, T>>(&'a self) -> TryLockResult<G> {
        if self.order.take_now(G::ACCESS) {
            return Ok(G::new(self));
        }
        self.order.check_open()?;
        Err(GlommioError::WouldBlock(ResourceType::RwLock))
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

/// A guard on the way to a task. Not an `async fn`, of which the compiler would make a function
/// that hands the guard over in memory.
#[must_use = "futures do nothing unless polled"]
struct Locking<'a, T, G> {
    lock: &'a RwLock<T>,
    key: Option<WaitKey>,
    guard: PhantomData<G>,
}

impl<'a, T, G> Locking<'a, T, G> {
    #[inline]
    fn new(lock: &'a RwLock<T>) -> Self {
        Locking {
            lock,
            key: None,
            guard: PhantomData,
        }
    }
}

/// Nothing is pinned in it.
impl<T, G> Unpin for Locking<'_, T, G> {}

impl<'a, T, G: Guard<'a, T>> Future for Locking<'a, T, G> {
    type Output = LockResult<G>;

    // Out of line, the guard would come back through memory, in halves that are read as one: the
    // processor waits for that several times as long as the rest takes.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LockResult<G>> {
        ready!(budget::poll_leave(cx));
        // A future that does not have to wait has no place in the order to care for.
        if self.key.is_none() && self.lock.order.take_now(G::ACCESS) {
            budget::spend();
            return Poll::Ready(Ok(G::new(self.lock)));
        }
        let admitted = ready!(self.poll_in_order(cx));
        Poll::Ready(admitted.map(|()| G::new(self.lock)))
    }
}

impl<'a, T, G: Guard<'a, T>> Locking<'a, T, G> {
    /// For a future that has just found the lock taken, or was woken.
    #[inline(never)]
    fn poll_in_order(&mut self, cx: &Context<'_>) -> Poll<Result<(), ()>> {
        let Locking { lock, key, .. } = self;
        let admitted = ready!(lock.order.poll_admission(G::ACCESS, key, cx));
        budget::spend();
        Poll::Ready(admitted)
    }
}

impl<T, G> Drop for Locking<'_, T, G> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            self.lock.order.give_up(&mut self.key);
        }
    }
}

/// What ends an access of its kind when it is dropped.
trait Guard<'a, T> {
    const ACCESS: Access;

    /// That of an access that was given.
    fn new(lock: &'a RwLock<T>) -> Self;
}

impl<'a, T> Guard<'a, T> for RwLockReadGuard<'a, T> {
    const ACCESS: Access = Access::Read;

    #[inline]
    fn new(lock: &'a RwLock<T>) -> Self {
        RwLockReadGuard {
            value: lock.value.borrow(),
            _hold: Hold::new(&lock.order),
        }
    }
}

impl<'a, T> Guard<'a, T> for RwLockWriteGuard<'a, T> {
    const ACCESS: Access = Access::Write;

    #[inline]
    fn new(lock: &'a RwLock<T>) -> Self {
        RwLockWriteGuard {
            value: lock.value.borrow_mut(),
            _hold: Hold::new(&lock.order),
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

guard_impls!(RwLockReadGuard);

guard_impls!(RwLockWriteGuard);

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
