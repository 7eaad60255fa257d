//! A task queue whose shares follow from the deadlines of its work.
//!
//! ```text
//!   push_work ──▶ accounting (all items) ──▶ law, once a period ──▶ shares
//!       │              ▲ removed when done
//!       └──▶ channel ──┴─▶ worker: one action at a time ──▶ oneshot of that item
//! ```
//!
//! An item is in the accounting from its admission until its action is done, or until its caller
//! gives it up before the worker has come to it. No borrow of the accounting is held while methods
//! of a source run.

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use slab::Slab;

use crate::channels::{local_channel, oneshot};
use crate::executor::{consume_budget, executor};
use crate::shares::{Latency, Shares, SharesManager, TaskQueueHandle};
use crate::time;

/// How a [`DeadlineQueue`] comes by its shares.
#[derive(Debug, Copy, Clone)]
pub enum ControllerStatus {
    /// The controller sets them.
    Enabled,
    /// They are these, from 1 to 1000.
    Disabled(usize),
}

/// Work with a deadline, which knows how far it is.
pub trait DeadlineSource {
    /// How much there is to do, in units of its own. May grow.
    fn total_units(&self) -> u64;

    /// How much of it is done.
    fn processed_units(&self) -> u64;

    /// How long it should take, counted from when it is pushed.
    fn expected_duration(&self) -> Duration;

    /// What the work results in.
    type Output;

    /// Does the work. Called once, in the task queue of the controller.
    fn action(self: Rc<Self>) -> Pin<Box<dyn Future<Output = Self::Output> + 'static>>;
}

impl<T> fmt::Debug for dyn DeadlineSource<Output = T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (processed, total) = (self.processed_units(), self.total_units());
        write!(f, "DeadlineSource({processed}/{total})")
    }
}

/// A task queue that gets the shares it needs for its work to be done in time, and no more.
///
/// The work is done one after the other. All of it counts from when it is pushed: the queue
/// compares what should be done by now, if each item progressed evenly towards its deadline, with
/// what is done, and a proportional-integral controller turns the difference into shares, once each
/// adjustment period.
///
/// It works best for work that takes long compared with the period (250 ms, say), reports its units
/// often, and has an immediate effect: direct I/O rather than buffered.
///
/// # Examples
///
/// ```
/// use glommio::controllers::{DeadlineQueue, DeadlineSource};
/// use std::{cell::Cell, future::Future, pin::Pin, rc::Rc, time::Duration};
///
/// struct Flush(Cell<u64>);
///
/// impl DeadlineSource for Flush {
///     type Output = &'static str;
///
///     fn expected_duration(&self) -> Duration {
///         Duration::from_secs(1)
///     }
///
///     fn action(self: Rc<Self>) -> Pin<Box<dyn Future<Output = Self::Output>>> {
///         Box::pin(async move {
///             for page in 1..=self.total_units() {
///                 self.0.set(page);
///                 glommio::yield_if_needed().await;
///             }
///             "flushed"
///         })
///     }
///
///     fn total_units(&self) -> u64 {
///         100
///     }
///
///     fn processed_units(&self) -> u64 {
///         self.0.get()
///     }
/// }
///
/// glommio::LocalExecutor::default().run(async {
///     let queue = DeadlineQueue::new("flush", Duration::from_millis(250));
///     let done = queue.push_work(Rc::new(Flush(Cell::new(0)))).await?;
///     assert_eq!(done, "flushed");
///     Ok::<_, std::io::Error>(())
/// })?;
/// # Ok::<_, std::io::Error>(())
/// ```
pub struct DeadlineQueue<T> {
    queue: TaskQueueHandle,
    controller: Rc<Controller<T>>,
    work: local_channel::LocalSender<Work<T>>,
    /// Of what was admitted last; at first the time of creation.
    last_deadline: Cell<Instant>,
}

type Source<T> = Rc<dyn DeadlineSource<Output = T>>;

/// An item for the worker.
struct Work<T> {
    entry: Rc<Cell<Option<Entry<T>>>>,
    reply: oneshot::Sender<T>,
}

impl<T: 'static> DeadlineQueue<T> {
    /// A queue named `name`, whose shares are set anew each `adjustment_period`. Its latency class
    /// is [`Latency::Matters`] with that period if it is below 100 ms.
    ///
    /// Dropping it ends the worker when it has done what was pushed; the task queue stays.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn new(name: &'static str, adjustment_period: Duration) -> DeadlineQueue<T> {
        let controller = Rc::new(Controller {
            adjustment_period,
            items: RefCell::new(Slab::new()),
            law: Cell::new(Law::START),
            bumps: Cell::new(0),
            static_shares: Cell::new(None),
        });
        let latency = match adjustment_period {
            short if short < Duration::from_millis(100) => Latency::Matters(short),
            _ => Latency::NotImportant,
        };
        let shares = Shares::Dynamic(Rc::clone(&controller) as Rc<dyn SharesManager>);
        let queue = executor().create_task_queue(shares, latency, name);
        let (work, items) = local_channel::new_unbounded();
        executor()
            .spawn_local_into(do_work(items, name), queue)
            .expect("the queue was just created")
            .detach();
        DeadlineQueue {
            queue,
            controller,
            work,
            last_deadline: Cell::new(time::now()),
        }
    }

    /// Has the action of `source` run in the queue, behind all that was pushed before, and waits
    /// for its output.
    ///
    /// Its deadline is its expected duration from now, and must not be earlier than that of the
    /// work before it.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the deadline is earlier, or too far to be counted; `BrokenPipe` if an
    /// action has panicked, and so ended the worker, before this was called, `Other` if one
    /// does later.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its action began, the work is not done and counts no more. Dropped later, the
    /// action runs to its end and its output is dropped.
    pub async fn push_work(&self, source: Source<T>) -> io::Result<T> {
        consume_budget().await;
        let deadline = time::now().checked_add(source.expected_duration());
        let deadline = deadline.ok_or_else(|| {
            let text = "the expected duration is too long to have a deadline";
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        if deadline < self.last_deadline.get() {
            let text =
                "the deadline is earlier than that of the work before; they must not decrease";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.last_deadline.set(deadline);
        let entry = Entry::new(&self.controller, Item { source, deadline });
        let entry = Rc::new(Cell::new(Some(entry)));
        let _unless_begun = GiveUp(Rc::clone(&entry));
        let (reply, answer) = oneshot::oneshot();
        self.work.try_send(Work { entry, reply }).map_err(|_| {
            let text = "the worker of the queue is gone: an action has panicked";
            io::Error::new(io::ErrorKind::BrokenPipe, text)
        })?;
        let text = "the worker of the queue has ended: an action has panicked";
        answer.await.map_err(|_| io::Error::other(text))
    }

    /// The task queue, to spawn helpers into it or to read its statistics.
    pub fn task_queue(&self) -> TaskQueueHandle {
        self.queue
    }

    /// Sees to it that the controller gives at least 250 shares until the returned value is
    /// dropped, and all other such values, too. Has no effect while it is disabled.
    pub fn bump_priority(&self) -> PriorityBump<T> {
        let bumps = &self.controller.bumps;
        bumps.set(bumps.get() + 1);
        PriorityBump {
            controller: Rc::clone(&self.controller),
        }
    }

    /// Sets the shares, clamped to 1..=1000, until [`enable`](Self::enable) is called.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::controllers::{ControllerStatus, DeadlineQueue};
    /// use std::time::Duration;
    ///
    /// let queue = DeadlineQueue::<()>::new("flush", Duration::from_millis(250));
    /// println!("the shares of {:?}", queue.task_queue());
    /// let bump = queue.bump_priority(); // a request waits for the flush
    /// drop(bump);
    /// queue.disable(100); // a fixed number of shares
    /// assert!(matches!(queue.status(), ControllerStatus::Disabled(100)));
    /// queue.enable();
    /// assert!(matches!(queue.status(), ControllerStatus::Enabled));
    /// # });
    /// ```
    pub fn disable(&self, shares: usize) {
        let shares = shares.clamp(1, MAX_SHARES as usize);
        self.controller.static_shares.set(Some(shares));
    }

    /// Has the controller set the shares again, from where it stopped. Does nothing if it does so
    /// already.
    pub fn enable(&self) {
        self.controller.static_shares.set(None);
    }

    /// Whether the controller sets the shares.
    pub fn status(&self) -> ControllerStatus {
        match self.controller.static_shares.get() {
            None => ControllerStatus::Enabled,
            Some(shares) => ControllerStatus::Disabled(shares),
        }
    }
}

/// Does the work, one item at a time.
async fn do_work<T>(items: local_channel::LocalReceiver<Work<T>>, name: &'static str) {
    while let Some(Work { entry, reply }) = items.recv().await {
        let Some(entry) = entry.take() else {
            continue;
        };
        let output = entry.source().action().await;
        // Before the caller knows: it may count on the source being dropped.
        drop(entry);
        if reply.send(output).is_err() {
            tracing::warn!(
                "queue {name}: the output of an action is dropped, as its caller is gone"
            );
        }
    }
}

/// Takes an item out of the accounting when its caller is dropped, unless the worker has it.
struct GiveUp<T>(Rc<Cell<Option<Entry<T>>>>);

impl<T> Drop for GiveUp<T> {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// The place of an item in the accounting.
struct Entry<T> {
    controller: Rc<Controller<T>>,
    key: usize,
}

impl<T> Entry<T> {
    fn new(controller: &Rc<Controller<T>>, item: Item<T>) -> Entry<T> {
        let key = controller.items.borrow_mut().insert(item);
        Entry {
            controller: Rc::clone(controller),
            key,
        }
    }

    fn source(&self) -> Source<T> {
        Rc::clone(&self.controller.items.borrow()[self.key].source)
    }
}

impl<T> Drop for Entry<T> {
    fn drop(&mut self) {
        let item = self.controller.items.borrow_mut().remove(self.key);
        drop(item);
    }
}

struct Item<T> {
    source: Source<T>,
    deadline: Instant,
}

impl<T> Clone for Item<T> {
    fn clone(&self) -> Self {
        Item {
            source: Rc::clone(&self.source),
            deadline: self.deadline,
        }
    }
}

/// The accounting, and the state of the controller.
struct Controller<T> {
    adjustment_period: Duration,
    items: RefCell<Slab<Item<T>>>,
    law: Cell<Law>,
    bumps: Cell<usize>,
    /// In force while the controller is disabled.
    static_shares: Cell<Option<usize>>,
}

impl<T> SharesManager for Controller<T> {
    fn shares(&self) -> usize {
        self.shares_at(time::now())
    }

    fn adjustment_period(&self) -> Duration {
        self.adjustment_period
    }
}

impl<T> Controller<T> {
    fn shares_at(&self, now: Instant) -> usize {
        if let Some(shares) = self.static_shares.get() {
            return shares;
        }
        let items: Vec<Item<T>> = self
            .items
            .borrow()
            .iter()
            .map(|(_, it)| it.clone())
            .collect();
        let is_overdue = |item: &Item<T>| {
            let late = now.saturating_duration_since(item.deadline);
            late.as_secs() > MAX_LATENESS_SECONDS
        };
        // Read before `items` calls into sources, which may come back and change it.
        let mut law = self.law.get();
        if items.iter().any(is_overdue) {
            law.shares = MAX_SHARES;
        } else {
            let units = |item: &Item<T>| item.source.total_units() as f64 * item.elapsed(now);
            let expected: f64 = items.iter().map(units).sum();
            let done = |item: &Item<T>| item.source.processed_units() as f64;
            let processed: f64 = items.iter().map(done).sum();
            let min_shares = match self.bumps.get() {
                0 => 1.0,
                _ => BUMPED_SHARES,
            };
            law = law.next(expected, processed, min_shares);
        }
        self.law.set(law);
        law.shares as usize
    }
}

impl<T> Item<T> {
    /// How much of its time has gone by, from 0 to 1.
    fn elapsed(&self, now: Instant) -> f64 {
        let expected = self.source.expected_duration();
        if expected.is_zero() {
            return 1.0;
        }
        let remaining = self.deadline.saturating_duration_since(now);
        1.0 - (remaining.as_secs_f64() / expected.as_secs_f64()).min(1.0)
    }
}

/// A proportional-integral controller in its incremental form: what it changes is added to the
/// shares, so that nothing winds up while they are at one end.
#[derive(Clone, Copy, Debug)]
struct Law {
    /// The error before, normalized: 1 if nothing is done, 0 if all that should be is, negative if
    /// more is.
    error: f64,
    /// A whole number from 1 to 1000.
    shares: f64,
}

/// A full error gives nearly all shares at once. There is no derivative: units are reported in
/// bursts.
const PROPORTIONAL_GAIN: f64 = 850.0;

/// As much again in six periods.
const INTEGRAL_GAIN: f64 = PROPORTIONAL_GAIN / 6.0;

const MAX_SHARES: f64 = 1000.0;
const BUMPED_SHARES: f64 = 250.0;

/// So many whole seconds an item may be late before the queue gets all shares.
const MAX_LATENESS_SECONDS: u64 = 5;

/// Fewer units to be done by now say nothing yet.
const MIN_EXPECTED_UNITS: f64 = 0.01;

impl Law {
    const START: Law = Law {
        error: 0.0,
        shares: 1.0,
    };

    fn next(self, expected: f64, processed: f64, min_shares: f64) -> Law {
        let error = 1.0 - processed / expected;
        if expected < MIN_EXPECTED_UNITS || !error.is_finite() {
            return self;
        }
        let change = PROPORTIONAL_GAIN * (error - self.error) + INTEGRAL_GAIN * error;
        let shares = (self.shares + change).trunc().clamp(min_shares, MAX_SHARES);
        Law { error, shares }
    }
}

/// Keeps the shares of a [`DeadlineQueue`] from falling low until it is dropped; see
/// [`bump_priority`](DeadlineQueue::bump_priority).
#[must_use = "dropping it ends the bump"]
pub struct PriorityBump<T> {
    controller: Rc<Controller<T>>,
}

impl<T> Drop for PriorityBump<T> {
    fn drop(&mut self) {
        let bumps = &self.controller.bumps;
        bumps.set(bumps.get() - 1);
    }
}

impl_debug! {
    /// Without a look at the sources, and without evaluating the law.
    [T] Controller[T], it:
    items: it.items.borrow().len(), law: it.law.get(), bumps: it.bumps.get(),
    static_shares: it.static_shares.get(); ..
}

impl_debug! { [T: fmt::Debug] DeadlineQueue[T], it: queue, controller; .. }

impl_debug! { [T: fmt::Debug] PriorityBump[T], it: controller }
