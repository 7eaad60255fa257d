//! A counting semaphore with hand-over in order of arrival.
//!
//! Invariant: if futures wait, the oldest of them wants more units than are available. So each
//! change that may break it, units that come back and a wait that ends, is followed by
//! [`Semaphore::serve`].
//!
//! Cost: while no future waits, taking units and giving them back is two loads, a comparison and a
//! store each.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use super::OneThread;
use crate::error::{GlommioError, ResourceType, Result};
use crate::noted::{Holder, waits_for};
use crate::reactor::{budget, wake};
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_first};

/// A number of units, which tasks of one executor take, wait for and give back.
///
/// Waiters are served strictly in the order in which they came. Units that come back belong to the
/// first of them as soon as they suffice for it; a smaller request behind a large one waits, so
/// that the large one is served at some time.
///
/// # Examples
///
/// At most two downloads at a time:
///
/// ```
/// use glommio::{sync::Semaphore, spawn_local, timer::sleep};
/// use std::{rc::Rc, time::Duration};
///
/// glommio::LocalExecutor::default().run(async {
///     let limit = Rc::new(Semaphore::new(2));
///     let downloads: Vec<_> = (0..5)
///         .map(|_| {
///             let limit = limit.clone();
///             spawn_local(async move {
///                 let _permit = limit.acquire_permit(1).await?;
///                 sleep(Duration::from_millis(1)).await;
///                 Ok::<_, glommio::GlommioError<()>>(())
///             })
///         })
///         .collect();
///     for download in downloads {
///         download.await?;
///     }
///     assert_eq!(limit.available(), 2);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Debug)]
pub struct Semaphore {
    available: Cell<u64>,
    stage: Cell<Stage>,
    /// With the units that each wants; of the notified ones, those that it was given.
    waiters: RefCell<WaitQueue<u64>>,
    holder: Holder,
    /// Whether errors name a read-write lock.
    is_rwlock: bool,
    _one_thread: OneThread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Open, and no future waits.
    Free,
    /// Open, and futures wait.
    Awaited,
    Closed,
}

impl Semaphore {
    /// A semaphore with `avail` units.
    pub fn new(avail: u64) -> Semaphore {
        Semaphore::of("semaphore", avail)
    }

    /// One that debugging knows as `what`.
    pub(super) fn of(what: &'static str, avail: u64) -> Semaphore {
        Semaphore {
            available: Cell::new(avail),
            stage: Cell::new(Stage::Free),
            waiters: RefCell::new(WaitQueue::new()),
            holder: Holder::of(what),
            is_rwlock: false,
            _one_thread: OneThread::default(),
        }
    }

    /// The turns of a read-write lock.
    pub(super) fn of_rwlock(turns: u64) -> Semaphore {
        Semaphore {
            is_rwlock: true,
            ..Semaphore::of("read-write lock", turns)
        }
    }

    /// How many units can be taken now. Those that waiters were given are not among them.
    #[inline]
    pub fn available(&self) -> u64 {
        self.available.get()
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.stage.get() == Stage::Closed
    }

    /// Takes `units`, waiting until they are there. They are given back by
    /// [`signal`](Self::signal), not by themselves. Taking more than there will ever be waits
    /// forever, taking none is immediate.
    ///
    /// # Errors
    ///
    /// `Closed` if the semaphore is closed, or is closed while this waits.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped loses its place in the order, and gives back units that it was
    /// given.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{GlommioError, sync::Semaphore};
    /// use std::rc::Rc;
    ///
    /// let tokens = Rc::new(Semaphore::new(3));
    /// tokens.acquire(2).await?;
    /// assert!(!tokens.try_acquire(2)?, "one is left");
    /// tokens.signal(2);
    ///
    /// let permit = tokens.acquire_permit(2).await?;
    /// let other = tokens.acquire_static_permit(1).await?; // may be moved into a task
    /// assert!(matches!(tokens.try_acquire_permit(1), Err(GlommioError::WouldBlock(_))));
    /// drop((permit, other));
    /// assert_eq!(tokens.available(), 3);
    ///
    /// let _permit = tokens.try_acquire_static_permit(1)?;
    /// tokens.close();
    /// assert!(tokens.is_closed() && tokens.try_acquire(1).is_err());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    #[inline]
    pub fn acquire(&self, units: u64) -> impl Future<Output = Result<(), ()>> {
        self.acquire_with(units, |_| ())
    }

    /// As [`acquire`](Self::acquire), for units that come back when the permit is dropped.
    #[inline]
    pub fn acquire_permit(&self, units: u64) -> impl Future<Output = Result<Permit<'_>, ()>> {
        self.acquire_with(units, move |semaphore| semaphore.permit(units))
    }

    /// As [`acquire_permit`](Self::acquire_permit), for a permit that keeps the semaphore alive and
    /// can move into a task.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    #[inline]
    pub fn acquire_static_permit(
        self: &Rc<Self>,
        units: u64,
    ) -> impl Future<Output = Result<StaticPermit, ()>> {
        self.acquire_with(units, move |_| self.static_permit(units))
    }

    /// Takes `units` if that is possible now, and no task waits. `Ok(false)` means that it is not.
    ///
    /// # Errors
    ///
    /// `Closed` if the semaphore is closed.
    pub fn try_acquire(&self, units: u64) -> Result<bool, ()> {
        self.try_take(units)
    }

    /// As [`try_acquire`](Self::try_acquire), for units that come back when the permit is dropped.
    ///
    /// # Errors
    ///
    /// `Closed` if the semaphore is closed, else `WouldBlock` if the units cannot be had now.
    pub fn try_acquire_permit(&self, units: u64) -> Result<Permit<'_>, ()> {
        self.try_take_or_error(units)?;
        Ok(self.permit(units))
    }

    /// As [`try_acquire_permit`](Self::try_acquire_permit), for a permit that keeps the semaphore
    /// alive.
    pub fn try_acquire_static_permit(self: &Rc<Self>, units: u64) -> Result<StaticPermit, ()> {
        self.try_take_or_error(units)?;
        Ok(self.static_permit(units))
    }

    /// Adds `units`, which need not have been taken before, and serves waiters. Works on a closed
    /// semaphore, too. The count ends at [`u64::MAX`]; what goes beyond is lost.
    #[inline]
    pub fn signal(&self, units: u64) {
        self.release(units);
        if self.stage.get() == Stage::Awaited {
            self.serve();
        }
    }

    /// Closes the semaphore, for good. All who wait, and all who come, get an error. Permits stay
    /// valid. Does nothing to a closed one.
    pub fn close(&self) {
        self.stage.set(Stage::Closed);
        let waiting = self.waiters.borrow().waiting();
        let close_oldest = || {
            let mut waiters = self.waiters.borrow_mut();
            // Notified and given nothing.
            *waiters.oldest()? = 0;
            waiters.notify_oldest()
        };
        std::iter::from_fn(close_oldest)
            .take(waiting)
            .for_each(wake);
    }

    /// Takes the units if that is possible without regard to others. None can be taken also while
    /// futures wait.
    #[inline]
    fn take_now(&self, units: u64) -> bool {
        let left = match self.stage.get() {
            Stage::Free => self.available.get().checked_sub(units),
            Stage::Awaited => return units == 0,
            Stage::Closed => return false,
        };
        if let Some(left) = left {
            self.available.set(left);
        }
        left.is_some()
    }

    /// Takes the units if they are there and no future waits.
    ///
    /// # Errors
    ///
    /// The semaphore is closed.
    fn try_take(&self, units: u64) -> Result<bool, ()> {
        self.check_open(units)?;
        Ok(self.stage.get() == Stage::Free && self.take_now(units))
    }

    /// See [`acquire`](Self::acquire); `permit` makes what stands for the units.
    #[inline]
    pub(super) fn acquire_with<'a, P, T>(&'a self, units: u64, permit: P) -> Acquire<'a, P>
    where
        P: Fn(&'a Semaphore) -> T,
    {
        Acquire {
            semaphore: self,
            units,
            key: None,
            permit,
        }
    }

    #[inline]
    fn release(&self, units: u64) {
        let available = self.available.get().saturating_add(units);
        self.available.set(available);
    }

    /// # Errors
    ///
    /// The semaphore, of which so many units are requested, is closed.
    pub(super) fn check_open(&self, requested: u64) -> Result<(), ()> {
        if self.is_closed() {
            return Err(GlommioError::Closed(self.resource(requested)));
        }
        Ok(())
    }

    fn resource(&self, requested: u64) -> ResourceType<()> {
        let available = self.available.get();
        match self.is_rwlock {
            true => ResourceType::RwLock,
            false => ResourceType::Semaphore {
                requested,
                available,
            },
        }
    }

    fn try_take_or_error(&self, units: u64) -> Result<(), ()> {
        if self.try_take(units)? {
            return Ok(());
        }
        Err(GlommioError::WouldBlock(self.resource(units)))
    }

    /// The permit for units that were taken.
    #[inline]
    pub(super) fn permit(&self, units: u64) -> Permit<'_> {
        self.holder.taken();
        Permit {
            semaphore: self,
            units,
        }
    }

    #[inline]
    fn static_permit(self: &Rc<Self>, units: u64) -> StaticPermit {
        self.holder.taken();
        StaticPermit {
            semaphore: Rc::clone(self),
            units,
        }
    }

    /// Hands units to waiters, one borrow for each: what is woken may come back in.
    #[cold]
    fn serve(&self) {
        std::iter::from_fn(|| self.serve_oldest()).for_each(wake);
    }

    /// Serves the oldest waiter, if there are units for it; it is to be woken.
    fn serve_oldest(&self) -> Option<Waker> {
        let mut waiters = self.waiters.borrow_mut();
        let units = *waiters.oldest()?;
        self.available.set(self.available.get().checked_sub(units)?);
        let oldest = waiters.notify_oldest();
        self.note(waiters.waiting());
        oldest
    }

    /// Takes the entry of a future away. What it was given comes back.
    fn leave(&self, key: &mut Option<WaitKey>) -> Option<Removed<u64>> {
        let mut waiters = self.waiters.borrow_mut();
        let left = waiters.leave(key);
        self.note(waiters.waiting());
        if let Some(Removed::Notified(units)) = left {
            self.release(units);
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
}

/// Units on the way to a future, which gets them as what `permit` makes.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Acquire<'a, P> {
    semaphore: &'a Semaphore,
    units: u64,
    key: Option<WaitKey>,
    permit: P,
}

/// Nothing is pinned in it.
impl<P> Unpin for Acquire<'_, P> {}

impl<'a, P, T> Future for Acquire<'a, P>
where
    P: Fn(&'a Semaphore) -> T,
{
    type Output = Result<T, ()>;

    // Out of line, the guard of a lock would come back through memory, in halves that are read as one: the
    // processor waits for that several times as long as the rest takes.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(budget::poll_leave(cx));
        // A future that does not have to wait has no place in the order to care for.
        if self.key.is_none() && self.semaphore.take_now(self.units) {
            budget::spend();
            return Poll::Ready(Ok((self.permit)(self.semaphore)));
        }
        // The two ways are kept apart, so that a caller has the permit of the first in registers.
        ready!(self.poll_in_order(cx))?;
        Poll::Ready(Ok((self.permit)(self.semaphore)))
    }
}

impl<P> Acquire<'_, P> {
    #[inline(never)]
    fn poll_in_order(&mut self, cx: &Context<'_>) -> Poll<Result<(), ()>> {
        let Acquire {
            semaphore,
            units,
            key,
            ..
        } = self;
        let acquired = ready!(poll_first(cx, key.is_none(), |waker| {
            if semaphore.is_closed() {
                if let Some(Removed::Waiting(known)) = semaphore.leave(key) {
                    waker.drop_later(known);
                }
                return Poll::Ready(semaphore.check_open(*units));
            }
            let mut waiters = semaphore.waiters.borrow_mut();
            let is_served = match key {
                Some(key) => waiters.is_notified(key),
                None => semaphore.try_take(*units)?,
            };
            if is_served {
                // Its units stay taken.
                waiters.finish(key, waker);
                return Poll::Ready(Ok(()));
            }
            waiters.wait(key, waker, *units);
            semaphore.note(waiters.waiting());
            waits_for(Poll::Pending, || semaphore.holder.awaited())
        }));
        budget::spend();
        Poll::Ready(acquired)
    }

    /// Gives up waiting.
    #[cold]
    fn leave(&mut self) {
        let left = self.semaphore.leave(&mut self.key);
        // Those behind it may want less than it did, or what it was given.
        self.semaphore.serve();
        drop(left);
    }
}

impl<P> Drop for Acquire<'_, P> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            self.leave();
        }
    }
}

/// Units of a [`Semaphore`], given back when this is dropped.
#[must_use = "the units are given back when the permit is dropped"]
#[derive(Debug)]
pub struct Permit<'a> {
    semaphore: &'a Semaphore,
    units: u64,
}

impl Drop for Permit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.holder.given_back();
        self.semaphore.signal(self.units);
    }
}

/// As [`Permit`], but keeps the semaphore alive instead of borrowing it.
#[must_use = "the units are given back when the permit is dropped"]
#[derive(Debug)]
pub struct StaticPermit {
    semaphore: Rc<Semaphore>,
    units: u64,
}

impl StaticPermit {
    /// Closes the semaphore that the units came from; see [`Semaphore::close`].
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::sync::Semaphore;
    /// use std::rc::Rc;
    ///
    /// let slots = Rc::new(Semaphore::new(1));
    /// slots.try_acquire_static_permit(1)?.close();
    /// assert!(slots.is_closed());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn close(&self) {
        self.semaphore.close();
    }
}

impl Drop for StaticPermit {
    fn drop(&mut self) {
        self.semaphore.holder.given_back();
        self.semaphore.signal(self.units);
    }
}
