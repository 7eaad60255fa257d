//! The cell's foreign side under every interleaving: wakes, clones and drops on other threads against
//! running, detaching and shutting down on the owner's.
//!
//! Each model ends with the same laws: the future was dropped once, by the owner; no memory is left;
//! every plain access was ordered (loom reports the others). Letters travel through a queue that loom
//! does not see and which therefore orders nothing: the word must do it all.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize as Count, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
};

use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicUsize, Ordering},
    thread::{self, JoinHandle as Thread, ThreadId},
};

use crate::task::{CellStore, JoinHandle, Mail, OwnedTask, Runnable, Schedule, spawn};

/// Two foreign wakes, each of which publishes half of what the task waits for.
#[test]
fn loom_wakes_publish() {
    bounded(|| {
        let mut owner = Owner::new();
        let wakers = owner.start::<2>(2);
        let threads = wakers.map(|waker| {
            let signals = owner.signals.clone();
            thread::spawn(move || {
                signals.fetch_add(1, Ordering::Relaxed);
                waker.wake();
            })
        });
        owner.turn();
        join(threads);
        owner.turn();
        assert_eq!(owner.output(), Some(Some(2)), "no wake was lost");
        owner.end();
    });
}

/// The same through borrowed wakers of one waker's clones, on a detached task.
#[test]
fn loom_detached_task_completes() {
    bounded(|| {
        let mut owner = Owner::new();
        let [waker] = owner.start::<1>(2);
        owner.handle = None;
        let signals = owner.signals.clone();
        let thread = thread::spawn(move || {
            for _ in 0..2 {
                let clone = waker.clone();
                signals.fetch_add(1, Ordering::Relaxed);
                clone.wake_by_ref();
            }
        });
        owner.turn();
        join([thread]);
        owner.turn();
        assert_eq!(owner.world.completed.load(SeqCst), 1);
        owner.end();
    });
}

/// One thread wakes with its waker while another drops the last other one: a wake is no disposal.
#[test]
fn loom_wake_against_last_drop() {
    bounded(|| {
        let mut owner = Owner::new();
        let [wakes, drops] = owner.start::<2>(1);
        owner.handle = None;
        let signals = owner.signals.clone();
        let threads = [
            thread::spawn(move || {
                signals.fetch_add(1, Ordering::Relaxed);
                wakes.wake();
            }),
            thread::spawn(move || drop(drops)),
        ];
        owner.turn();
        join(threads);
        owner.turn();
        assert_eq!(
            owner.world.completed.load(SeqCst),
            1,
            "polled after the wake"
        );
        owner.end();
    });
}

/// Two threads drop the two last wakers of a task, and the owner its handle: somebody sees that it is
/// abandoned, and it is never polled again.
#[test]
fn loom_abandoned_by_three() {
    bounded(|| {
        let mut owner = Owner::new();
        let wakers = owner.start::<2>(1);
        let threads = wakers.map(|waker| thread::spawn(move || drop(waker)));
        owner.turn();
        owner.handle = None;
        join(threads);
        owner.turn();
        assert!(owner.task.is_none(), "disposed of");
        assert_eq!(owner.world.polls.load(SeqCst), 1);
        owner.end();
    });
}

/// The executor dies while one thread wakes and another clones and drops.
#[test]
fn loom_shutdown_against_wake_and_clone() {
    bounded(|| {
        let mut owner = Owner::new();
        let [wakes, clones] = owner.start::<2>(1);
        let threads = [
            thread::spawn(move || {
                wakes.wake_by_ref();
                wakes.wake();
            }),
            thread::spawn(move || drop(clones.clone())),
        ];
        owner.shutdown();
        assert_eq!(owner.output(), Some(None));
        owner.handle = None;
        join(threads);
        owner.end();
    });
}

/// The executor dies, and the handle goes later, while a thread drops the last waker.
#[test]
fn loom_shutdown_against_last_drop() {
    bounded(|| {
        let mut owner = Owner::new();
        let [waker] = owner.start::<1>(1);
        let thread = thread::spawn(move || drop(waker));
        owner.turn();
        owner.shutdown();
        owner.handle = None;
        join([thread]);
        owner.end();
    });
}

/// A letter that the dying owner did not see is dropped by another thread, perhaps as the last
/// reference of all.
#[test]
fn loom_letter_dropped_elsewhere() {
    bounded(|| {
        let mut owner = Owner::new();
        let [waker] = owner.start::<1>(1);
        join([thread::spawn(move || waker.wake())]);
        let letters = owner.close();
        let thread = thread::spawn(move || drop(letters));
        owner.shutdown();
        owner.handle = None;
        join([thread]);
        owner.end();
    });
}

/// The task completes and the owner gives up its side while wakers come and go elsewhere.
#[test]
fn loom_completion_against_wake() {
    bounded(|| {
        let mut owner = Owner::new();
        let [foreign, local] = owner.start::<2>(0);
        let thread = thread::spawn(move || {
            let clone = foreign.clone();
            foreign.wake();
            clone.wake_by_ref();
        });
        local.wake();
        owner.turn();
        assert_eq!(owner.output(), Some(Some(0)));
        owner.handle = None;
        join([thread]);
        owner.turn();
        owner.end();
    });
}

/// The task is cancelled while another thread wakes it.
#[test]
fn loom_cancel_against_wake() {
    bounded(|| {
        let mut owner = Owner::new();
        let [waker] = owner.start::<1>(1);
        let thread = thread::spawn(move || waker.wake());
        owner.handle.as_ref().expect("it is not detached").cancel();
        owner.turn();
        assert_eq!(owner.output(), Some(None));
        assert_eq!(owner.world.polls.load(SeqCst), 1);
        owner.handle = None;
        join([thread]);
        owner.turn();
        owner.end();
    });
}

/// The executor of one task, on the thread that made it.
struct Owner {
    world: Arc<World>,
    task: Option<OwnedTask>,
    handle: Option<JoinHandle<usize>>,
    /// What the task waits for.
    signals: Arc<AtomicUsize>,
}

/// What every thread may see. Counts are not loom's: they add no order and no interleavings.
struct World {
    owner: ThreadId,
    queue: OwnerOnly<RefCell<VecDeque<Runnable>>>,
    /// `None`: the owner is gone.
    letters: Mutex<Option<Vec<Mail>>>,
    /// See [`World::look`].
    post_office: AtomicUsize,
    polls: Count,
    completed: Count,
    dropped: Count,
    allocated: Count,
}

/// Touched by the owner only; the models cannot do otherwise, for lack of a way to it.
struct OwnerOnly<T>(T);

// SAFETY: see above: `Schedule::schedule` and `Owner` are the only ways, and both are the owner's.
unsafe impl<T> Send for OwnerOnly<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for OwnerOnly<T> {}

impl Owner {
    fn new() -> Self {
        let world = Arc::new(World {
            owner: thread::current().id(),
            queue: OwnerOnly(RefCell::default()),
            letters: Mutex::new(Some(Vec::new())),
            post_office: AtomicUsize::new(0),
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
    fn start<const WAKERS: usize>(&mut self, expected: usize) -> [Waker; WAKERS] {
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let future = Waits {
            world: self.world.clone(),
            signals: self.signals.clone(),
            expected,
            wakers: Some((WAKERS, wakers.clone())),
            plain: UnsafeCell::new(0),
        };
        let ticket = Ticket {
            world: self.world.clone(),
            canary: UnsafeCell::new(()),
        };
        let (runnable, handle, task) = spawn(future, ticket, &CellStore::new());
        assert!(!runnable.run());
        (self.task, self.handle) = (Some(task), Some(handle));
        let wakers = std::mem::take(&mut *wakers.lock().expect("no panic"));
        wakers.try_into().expect("the first poll left them")
    }

    /// Delivers letters and runs the task until neither is left.
    fn turn(&mut self) {
        loop {
            self.world.look();
            let letters = match &mut *self.world.letters.lock().expect("no panic") {
                Some(letters) => std::mem::take(letters),
                None => Vec::new(),
            };
            letters.into_iter().for_each(Mail::deliver);
            let Some(runnable) = self.world.queue.0.borrow_mut().pop_front() else {
                break;
            };
            if runnable.run() {
                assert!(self.task.take().is_some(), "a task is over once");
            }
        }
    }

    /// As an executor that dies.
    fn shutdown(&mut self) {
        drop(self.close());
        if let Some(task) = self.task.take() {
            task.shutdown();
        }
        let queue = self.world.queue.0.take();
        drop(queue);
    }

    /// Nothing is mailed any more. What was, is given out undelivered.
    fn close(&mut self) -> Option<Vec<Mail>> {
        self.world.look();
        self.world.letters.lock().expect("no panic").take()
    }

    /// `Some` if the task is over.
    fn output(&mut self) -> Option<Option<usize>> {
        let handle = self.handle.as_mut().expect("it is not detached");
        match Pin::new(handle).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    /// With all other threads gone, checks the laws.
    fn end(mut self) {
        self.handle = None;
        self.turn();
        self.shutdown();
        assert_eq!(self.world.dropped.load(SeqCst), 1, "dropped once");
        assert_eq!(self.world.allocated.load(SeqCst), 0, "no memory is left");
    }
}

impl World {
    /// Where loom may change threads around the queue of letters, which it does not see. Relaxed: it
    /// orders nothing.
    fn look(&self) {
        self.post_office.fetch_add(1, Ordering::Relaxed);
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

    fn schedule(&self, runnable: Runnable) {
        assert!(self.is_owner());
        self.world.queue.0.borrow_mut().push_back(runnable);
    }

    fn mail(&self, mail: Mail) {
        self.world.look();
        let bounced = match &mut *self.world.letters.lock().expect("no panic") {
            Some(letters) => {
                assert!(letters.is_empty(), "one letter per task at a time");
                letters.push(mail);
                None
            }
            None => Some(mail),
        };
        drop(bounced);
        // The letter may have been delivered by now, and the task's other references dropped.
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

fn join<const THREADS: usize>(threads: [Thread<()>; THREADS]) {
    for thread in threads {
        thread.join().expect("the thread ends well");
    }
}

/// Four preemptions per run: enough for each of these threads to be interrupted inside its operation,
/// and few enough for seconds.
pub(super) fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(model);
}
