//! The executor of one task under loom, and what its laws are checked with.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread::{self, JoinHandle as Thread, ThreadId};

use crate::mailbox::{Notifier, RemoteWakeQueue, Signal};
use crate::task::{CellStore, JoinHandle, OwnedTask, RemoteWake, Runnable, Schedule, spawn};

/// The executor of one task, on the thread that made it.
pub(super) struct Owner {
    pub(super) world: Arc<World>,
    pub(super) task: Option<OwnedTask>,
    pub(super) handle: Option<JoinHandle<usize>>,
    /// What the task waits for.
    pub(super) signals: Arc<AtomicUsize>,
}

/// What every thread may see. Counts are not loom's: they add no order and no interleavings.
pub(super) struct World {
    owner: ThreadId,
    queue: OwnerOnly<RefCell<VecDeque<Runnable>>>,
    sent: Sent,
    /// See [`World::look`].
    handover: AtomicUsize,
    pub(super) polls: Count,
    pub(super) completed: Count,
    dropped: Count,
    allocated: Count,
}

/// What remote wakes travel through.
pub(super) enum Sent {
    /// A queue that loom does not see. `None`: the owner is gone.
    Unseen(Mutex<Option<Vec<RemoteWake>>>),
    /// The queue of an executor.
    Queued(RemoteWakeQueue<RemoteWake, NoSignal>),
}

impl Sent {
    fn push(&self, wake: RemoteWake) -> Result<(), RemoteWake> {
        match self {
            Sent::Queued(queue) => queue.push(wake),
            Sent::Unseen(sent) => match &mut *sent.lock().expect("no panic") {
                Some(sent) => {
                    assert!(sent.is_empty(), "one remote wake per task at a time");
                    sent.push(wake);
                    Ok(())
                }
                None => Err(wake),
            },
        }
    }

    fn take(&self) -> Vec<RemoteWake> {
        match self {
            Sent::Queued(queue) => queue.take().collect(),
            Sent::Unseen(sent) => match &mut *sent.lock().expect("no panic") {
                Some(sent) => std::mem::take(sent),
                None => Vec::new(),
            },
        }
    }

    fn close(&self) -> Vec<RemoteWake> {
        match self {
            Sent::Queued(queue) => queue.close().collect(),
            Sent::Unseen(sent) => {
                let sent = sent.lock().expect("no panic").take();
                sent.unwrap_or_default()
            }
        }
    }
}

pub(super) fn queue() -> RemoteWakeQueue<RemoteWake, NoSignal> {
    RemoteWakeQueue::new(Arc::new(Notifier::with_signal(NoSignal)))
}

/// These models do not sleep.
pub(super) struct NoSignal;

impl Signal for NoSignal {
    fn raise(&self) {
        unreachable!("the owner never announces sleep here");
    }

    fn clear(&self) {}
}

/// Touched by the owner only; the models cannot do otherwise, for lack of a way to it.
struct OwnerOnly<T>(T);

// SAFETY: see above: `Schedule::schedule` and `Owner` are the only ways, and both are the owner's.
unsafe impl<T> Send for OwnerOnly<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OwnerOnly<T> {}

impl Owner {
    pub(super) fn new() -> Self {
        Self::with(Sent::Unseen(Mutex::new(Some(Vec::new()))))
    }

    pub(super) fn with(sent: Sent) -> Self {
        let world = Arc::new(World {
            owner: thread::current().id(),
            queue: OwnerOnly(RefCell::default()),
            sent,
            handover: AtomicUsize::new(0),
            polls: Count::new(0),
            completed: Count::new(0),
            dropped: Count::new(0),
            allocated: Count::new(1),
        });
        let signals = Arc::new(AtomicUsize::new(0));
        Self {
            world,
            task: None,
            handle: None,
            signals,
        }
    }

    /// Spawns a task that waits for `expected` signals, polls it once, and gives out its wakers.
    pub(super) fn start<const WAKERS: usize>(&mut self, expected: usize) -> [Waker; WAKERS] {
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let future = Waits {
            world: self.world.clone(),
            signals: self.signals.clone(),
            expected,
            wakers: Some((WAKERS, wakers.clone())),
            plain: UnsafeCell::new(0),
        };
        self.spawn(future);
        let wakers = std::mem::take(&mut *wakers.lock().expect("no panic"));
        wakers.try_into().expect("the first poll left them")
    }

    /// Spawns a task and polls it once.
    pub(super) fn spawn(&mut self, future: impl Future<Output = usize> + 'static) {
        let ticket = Ticket {
            world: self.world.clone(),
            canary: UnsafeCell::new(()),
        };
        let (runnable, handle, task) = spawn(future, ticket, &CellStore::new());
        assert!(!runnable.run());
        (self.task, self.handle) = (Some(task), Some(handle));
    }

    /// Delivers remote wakes and runs the task until neither is left.
    pub(super) fn turn(&mut self) {
        loop {
            self.world.look();
            let sent = self.world.sent.take();
            sent.into_iter().for_each(RemoteWake::deliver);
            let Some(runnable) = self.world.queue.0.borrow_mut().pop_front() else {
                break;
            };
            if runnable.run() {
                assert!(self.task.take().is_some(), "a task is over once");
            }
        }
    }

    /// As an executor that dies.
    pub(super) fn shutdown(&mut self) {
        drop(self.close());
        if let Some(task) = self.task.take() {
            task.shutdown();
        }
        let queue = self.world.queue.0.take();
        drop(queue);
    }

    /// No remote wake is sent any more. What was, is given out undelivered.
    pub(super) fn close(&mut self) -> Vec<RemoteWake> {
        self.world.look();
        self.world.sent.close()
    }

    /// `Some` if the task is over.
    pub(super) fn output(&mut self) -> Option<Option<usize>> {
        let handle = self.handle.as_mut().expect("it is not detached");
        match Pin::new(handle).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// With all other threads gone, checks the laws.
    pub(super) fn end(mut self) {
        self.handle = None;
        self.turn();
        self.shutdown();
        assert_eq!(self.world.dropped.load(SeqCst), 1, "dropped once");
        assert_eq!(self.world.allocated.load(SeqCst), 0, "no memory is left");
    }
}

impl World {
    /// Where loom may change threads around the queue of remote wakes, which it does not see.
    /// Relaxed: it orders nothing.
    fn look(&self) {
        self.handover.fetch_add(1, Ordering::Relaxed);
    }
}

/// Ready when enough signals came.
struct Waits {
    world: Arc<World>,
    signals: Arc<AtomicUsize>,
    expected: usize,
    /// How many wakers the first poll leaves, and where; it is pending whatever the signals.
    wakers: Option<(usize, Arc<Mutex<Vec<Waker>>>)>,
    /// Loom reports whoever comes here without being ordered after the one before.
    plain: UnsafeCell<usize>,
}

impl Future for Waits {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        assert_eq!(thread::current().id(), self.world.owner);
        self.world.polls.fetch_add(1, SeqCst);
        // SAFETY: the owner polls, one poll at a time.
        self.plain.with_mut(|plain| unsafe { *plain += 1 });
        if let Some((count, wakers)) = self.wakers.take() {
            let clones = (0..count).map(|_| cx.waker().clone());
            wakers.lock().expect("no panic").extend(clones);
            return Poll::Pending;
        }
        // A detached task that nobody woke with enough signals is abandoned, and must be.
        let signals = self.signals.load(Ordering::Relaxed);
        if signals < self.expected {
            return Poll::Pending;
        }
        self.world.completed.fetch_add(1, SeqCst);
        Poll::Ready(signals)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        assert_eq!(thread::current().id(), self.world.owner);
        // SAFETY: whoever drops the future is the only one to reach it.
        self.plain.with_mut(|plain| unsafe { *plain += 1 });
        self.world.dropped.fetch_add(1, SeqCst);
    }
}

/// Keeps a waker of its own, which it drops in the second poll, while another thread clones the one
/// that the poll was lent. Ready in the third.
pub(super) struct Lends {
    pub(super) world: Arc<World>,
    pub(super) own: Option<Waker>,
}

/// Lent to a thread that is joined before the loan is over.
struct Lent(*const Waker);

// SAFETY: a `&Waker` may be sent.
unsafe impl Send for Lent {}

impl Lent {
    fn copy(self) -> Waker {
        // SAFETY: the lender waits for this thread.
        unsafe { (*self.0).clone() }
    }
}

impl Future for Lends {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        match self.world.polls.fetch_add(1, SeqCst) {
            0 => {
                self.own = Some(cx.waker().clone());
                cx.waker().wake_by_ref();
            }
            1 => {
                let lent = Lent(cx.waker());
                let thread = thread::spawn(move || lent.copy());
                drop(self.own.take());
                thread.join().expect("the thread ends well").wake();
            }
            _ => return Poll::Ready(0),
        }
        Poll::Pending
    }
}

impl Drop for Lends {
    fn drop(&mut self) {
        self.world.dropped.fetch_add(1, SeqCst);
    }
}

/// The task's schedule: the canary tells loom of every use of it and of its end.
struct Ticket {
    world: Arc<World>,
    canary: UnsafeCell<()>,
}

// SAFETY: the canary is read by all and written by the one that drops it: that these are ordered is
// what the models show.
unsafe impl Send for Ticket {}
// SAFETY: as above.
unsafe impl Sync for Ticket {}

impl Schedule for Ticket {
    fn is_owner(&self) -> bool {
        self.canary.with(|_| ());
        thread::current().id() == self.world.owner
    }

    fn schedule(&self, runnable: Runnable, _: bool) {
        assert!(self.is_owner());
        self.world.queue.0.borrow_mut().push_back(runnable);
    }

    fn send(&self, wake: RemoteWake) {
        self.world.look();
        let returned = self.world.sent.push(wake).err();
        drop(returned);
        // The remote wake may have been delivered by now, and the task's other references dropped.
        self.world.look();
        self.canary.with(|_| ());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.canary.with_mut(|_| ());
        self.world.allocated.fetch_sub(1, SeqCst);
    }
}

pub(super) fn join<const THREADS: usize>(threads: [Thread<()>; THREADS]) {
    for thread in threads {
        thread.join().expect("the thread ends well");
    }
}

/// Four preemptions per run: enough for each of these threads to be interrupted inside its
/// operation, and few enough for seconds.
pub(super) fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(model);
}
