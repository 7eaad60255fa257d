//! A lock for one user at a time: a semaphore of one unit beside a value.

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::ops::DerefMut;

use super::semaphore::{Permit, Semaphore};
use super::{LockResult, TryLockResult};

/// A value that one task at a time may use, also across awaits.
///
/// For state that is not held across an await, `RefCell` is the cheaper choice. Tasks that wait are
/// served first come, first served. Not reentrant: a task that locks what it holds waits for itself
/// forever. There is no poisoning.
///
/// Errors name a semaphore with one unit requested, and none available unless the lock is closed and
/// free.
///
/// # Examples
///
/// ```
/// use glommio::{sync::Mutex, spawn_local, yield_if_needed};
/// use std::rc::Rc;
///
/// glommio::LocalExecutor::default().run(async {
///     let log = Rc::new(Mutex::new(Vec::new()));
///     let writer = spawn_local({
///         let log = log.clone();
///         async move {
///             let mut lines = log.lock().await?;
///             lines.push("first half");
///             yield_if_needed().await;
///             lines.push("second half");
///             Ok::<_, glommio::GlommioError<()>>(())
///         }
///     });
///     writer.await?;
///     assert_eq!(log.lock().await?.len(), 2);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct Mutex<T> {
    /// Who has its unit has the value.
    turn: Semaphore,
    value: RefCell<T>,
}

impl<T> Mutex<T> {
    /// A lock that is free.
    pub fn new(value: T) -> Self {
        Mutex {
            turn: Semaphore::of("mutex", 1),
            value: RefCell::new(value),
        }
    }

    /// Locks, waiting until that is possible.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed, or is closed while this waits.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped loses its place in the order.
    #[inline]
    pub async fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let turn = self.turn.acquire_permit(1).await?;
        Ok(self.guard(turn))
    }

    /// Locks if that is possible now and no task waits.
    ///
    /// # Errors
    ///
    /// `Closed` if the lock is closed, else `WouldBlock` if it is held or awaited.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let turn = self.turn.try_acquire_permit(1)?;
        Ok(self.guard(turn))
    }

    /// Closes the lock, for good. All who wait, and all who come, get an error; a guard stays
    /// valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::sync::Mutex;
    ///
    /// let mut queue = Mutex::new(vec![1]);
    /// let guard = queue.try_lock()?;
    /// assert!(queue.try_lock().is_err());
    /// drop(guard);
    /// queue.close();
    /// assert!(queue.is_closed() && queue.try_lock().is_err());
    /// queue.get_mut()?.push(2); // without locking, also of a closed lock
    /// assert_eq!(queue.into_inner()?, [1, 2]);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn close(&self) {
        self.turn.close();
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.turn.is_closed()
    }

    /// The value, without locking, also of a closed lock.
    ///
    /// # Errors
    ///
    /// None; a `Result` as [`RwLock::get_mut`](super::RwLock::get_mut) has it.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        Ok(self.value.get_mut())
    }

    /// The value, also of a closed lock.
    ///
    /// # Errors
    ///
    /// None; a `Result` as [`RwLock::into_inner`](super::RwLock::into_inner) has it.
    pub fn into_inner(self) -> LockResult<T> {
        Ok(self.value.into_inner())
    }

    #[inline]
    fn guard<'a>(&'a self, turn: Permit<'a>) -> MutexGuard<'a, T> {
        MutexGuard {
            value: self.value.borrow_mut(),
            _turn: turn,
        }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        // Locked, since the value's `Debug` may try to lock.
        match self.try_lock() {
            Ok(value) => shown.field("value", &*value),
            Err(_) => shown.field("value", &format_args!("<locked or closed>")),
        };
        shown.field("is_closed", &self.is_closed()).finish()
    }
}

/// The value of a locked [`Mutex`], which is unlocked when this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T> {
    /// Before the turn, and so dropped before it.
    value: RefMut<'a, T>,
    _turn: Permit<'a>,
}

guard_impls!(MutexGuard);

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}
