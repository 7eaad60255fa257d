//! A lock for many readers or one writer: a semaphore, of which a reader takes one unit and a writer all,
//! beside a value.
//!
//! The value is in a `RefCell`, which the units keep from ever refusing a borrow. Its check costs
//! a load and an addition, and saves the unsafe code.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::future::Future;
use std::ops::DerefMut;

use super::semaphore::{Permit, Semaphore};
use crate::error::{GlommioError, ResourceType, Result};

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
    turns: Semaphore,
    value: RefCell<T>,
}

/// What a writer takes. A reader takes 1.
const ALL: u64 = u64::MAX;

impl<T> RwLock<T> {
    /// A lock that is free.
    pub fn new(value: T) -> Self {
        RwLock {
            turns: Semaphore::of_rwlock(ALL),
            value: RefCell::new(value),
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
        (self.turns).acquire_with(1, |turns| self.read_guard(turns.permit(1)))
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
        (self.turns).acquire_with(ALL, |turns| self.write_guard(turns.permit(ALL)))
    }

    /// Locks for reading if no task writes, and none waits.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed, else `WouldBlock` if this would have to wait.
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        Ok(self.read_guard(self.turns.try_acquire_permit(1)?))
    }

    /// Locks for writing if no task reads or writes, and none waits.
    ///
    /// # Errors
    ///
    /// As [`try_read`](Self::try_read).
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        Ok(self.write_guard(self.turns.try_acquire_permit(ALL)?))
    }

    /// The value, without locking.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.turns.check_open(0)?;
        Ok(self.value.get_mut())
    }

    /// The value.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed; the value is dropped then.
    pub fn into_inner(self) -> LockResult<T> {
        self.turns.check_open(0)?;
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
        // An access that was given and not taken yet is no guard.
        if !self.is_closed() && self.value.try_borrow_mut().is_err() {
            let why = "Lock is still held by fiber(s)";
            return Err(GlommioError::CanNotBeClosed(ResourceType::RwLock, why));
        }
        self.turns.close();
        Ok(())
    }

    /// Whether the lock was closed.
    pub fn is_closed(&self) -> bool {
        self.turns.is_closed()
    }

    #[inline]
    fn read_guard<'a>(&'a self, turn: Permit<'a>) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard {
            value: self.value.borrow(),
            _turn: turn,
        }
    }

    #[inline]
    fn write_guard<'a>(&'a self, turns: Permit<'a>) -> RwLockWriteGuard<'a, T> {
        RwLockWriteGuard {
            value: self.value.borrow_mut(),
            _turns: turns,
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

/// The value of an [`RwLock`] that is locked for reading until this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T> {
    /// Before the turn, and so dropped before it.
    value: Ref<'a, T>,
    _turn: Permit<'a>,
}

/// The value of an [`RwLock`] that is locked for writing until this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T> {
    /// Before the turns, and so dropped before them.
    value: RefMut<'a, T>,
    _turns: Permit<'a>,
}

guard_impls!(RwLockReadGuard);

guard_impls!(RwLockWriteGuard);

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
