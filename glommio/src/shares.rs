//! The parameters of a task queue: its handle, its weight and its latency.
//!
//! Types only; the executor keeps the queues and `fair_queue` the virtual runtimes.
//!
//! Shares are weights in the sense of stride scheduling (Waldspurger and Weihl,
//! 1995): of the queues that want the CPU, each gets the part
//! `shares / sum of shares` of the time. The invariant kept here is that a weight
//! the scheduler sees lies in [`SHARES_MIN`]`..=`[`SHARES_MAX`], whatever the user
//! or a [`SharesManager`] says, so it can be divided by.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// Names a task queue of an executor.
///
/// The default handle is that of the queue every executor starts with.
///
/// # Examples
///
/// ```
/// assert_eq!(glommio::TaskQueueHandle::default().index(), 0);
/// ```
#[derive(Default, Debug, Copy, Clone, Eq, PartialEq, Hash)]
pub struct TaskQueueHandle {
    index: usize,
}

impl TaskQueueHandle {
    pub(crate) const fn from_index(index: usize) -> Self {
        TaskQueueHandle { index }
    }

    /// The number of the queue in its executor; 0 is the default queue.
    pub fn index(&self) -> usize {
        self.index
    }
}

/// How soon the executor should come round again while a queue has work.
///
/// It does not change how much of the CPU the queue gets; [`Shares`] do.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::{Latency, Shares, executor};
/// use std::time::Duration;
///
/// // Timers, I/O and other queues are looked at within a millisecond while requests are served.
/// let latency = Latency::Matters(Duration::from_millis(1));
/// let requests = executor().create_task_queue(Shares::Static(800), latency, "requests");
/// # executor().remove_task_queue(requests).unwrap();
/// # });
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Latency {
    /// The executor should look at I/O, timers and the other queues within
    /// about this time while the queue has work; about 20 µs is the least. Alone on an executor, a
    /// value above the builder's `preempt_timer` lengthens the interval.
    Matters(Duration),

    /// The builder's `preempt_timer` is good enough.
    NotImportant,
}

/// The weight of a task queue against the other queues of its executor.
///
/// Each queue that has work gets `shares / sum of shares` of the time; the sum is over these
/// queues, and a queue alone gets all. Weights are clamped to 1..=1000: 0 acts as 1 and
/// 5000 as 1000, so a queue can ask for less than others but not for more
/// than the most.
///
/// While other queues wait, a turn of the queue is over after `shares / 1000` of the builder's
/// `preempt_timer` (100 ms), but not before 1 ms. So a queue of 10 shares or more waits for about 100 ms
/// for each 1000 shares of the others, if tasks yield when they are asked to; one with fewer
/// shares for up to a second, and so does one whose tasks run for too long before they yield.
///
/// The default is `Static(1000)`.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::{Latency, Shares, executor};
///
/// // While both have work, requests get 800 of 1000 parts of the time.
/// let requests = executor().create_task_queue(Shares::Static(800), Latency::NotImportant, "requests");
/// let reports = executor().create_task_queue(Shares::Static(200), Latency::NotImportant, "reports");
/// # executor().remove_task_queue(requests).unwrap();
/// # executor().remove_task_queue(reports).unwrap();
/// # });
/// ```
#[derive(Debug, Clone)]
pub enum Shares {
    /// A weight that never changes.
    Static(usize),

    /// A weight that is read again and again while the queue runs.
    Dynamic(Rc<dyn SharesManager>),
}

impl Shares {
    /// The weight now, between [`SHARES_MIN`] and [`SHARES_MAX`].
    ///
    /// Calls into user code for `Dynamic`.
    pub(crate) fn current(&self) -> usize {
        match self {
            Shares::Static(shares) => clamp_shares(*shares),
            Shares::Dynamic(manager) => clamp_shares(manager.shares()),
        }
    }

    /// How long a reading of [`current`](Self::current) stays good; `None` means
    /// forever.
    ///
    /// Calls into user code for `Dynamic`.
    pub(crate) fn adjustment_period(&self) -> Option<Duration> {
        match self {
            Shares::Static(_) => None,
            Shares::Dynamic(manager) => Some(manager.adjustment_period()),
        }
    }
}

impl Default for Shares {
    fn default() -> Self {
        Shares::Static(SHARES_MAX)
    }
}

/// Decides the weight of a task queue while the program runs.
///
/// Both methods are called on the executor thread, between tasks, and must be
/// cheap.
///
/// # Examples
///
/// ```
/// use glommio::{Shares, SharesManager};
/// use std::{cell::Cell, rc::Rc};
///
/// struct Backlog(Cell<usize>);
///
/// impl SharesManager for Backlog {
///     fn shares(&self) -> usize {
///         self.0.get() / 10
///     }
/// }
///
/// let backlog = Rc::new(Backlog(Cell::new(5_000)));
/// let shares = Shares::Dynamic(backlog.clone());
/// # assert!(format!("{shares:?}").contains("500"));
/// ```
pub trait SharesManager {
    /// The weight of the queue now. Clamped to 1..=1000 by the scheduler.
    fn shares(&self) -> usize;

    /// How long to wait before [`shares`](Self::shares) is called again. Default 250 ms.
    ///
    /// It is called when the queue is about to run and more than this time has passed since the
    /// last call, so not at all while the queue is idle.
    fn adjustment_period(&self) -> Duration {
        Duration::from_millis(250)
    }
}

impl fmt::Debug for dyn SharesManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharesManager")
            .field("adjustment_period", &self.adjustment_period())
            .field("shares", &self.shares())
            .finish()
    }
}

/// A weight as the scheduler may use it.
fn clamp_shares(shares: usize) -> usize {
    shares.clamp(SHARES_MIN, SHARES_MAX)
}

/// The least weight; above zero, since run time is divided by the weight.
pub(crate) const SHARES_MIN: usize = 1;

/// The largest weight, and the default.
pub(crate) const SHARES_MAX: usize = 1000;

const _: () = assert!(SHARES_MIN > 0 && SHARES_MIN <= SHARES_MAX);
