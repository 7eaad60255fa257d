//! The executor under the tests: a queue, another of remote wakes, a registry, and a look at what
//! happened.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use crate::mailbox::{Notifier, RemoteWakeQueue};
use crate::task::{
    JoinHandle, OwnedTask, RemoteWake, RunQueue, Runnable, Schedule, TaskList, spawn,
    spawn_unchecked,
};

thread_local! {
    static CURRENT: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// Dropping it shuts every task down, like a real one.
pub(super) struct Executor {
    core: Rc<Core>,
}

struct Core {
    queue: RunQueue,
    tasks: TaskList,
    shared: Arc<Shared>,
}

struct Shared {
    notifier: Arc<Notifier>,
    remote_wakes: RemoteWakeQueue<RemoteWake>,
    /// Tasks whose memory was not freed yet.
    allocated: AtomicUsize,
    /// Remote wakes ever sent.
    sent: AtomicUsize,
}

struct Owner(Arc<Shared>);

/// What outlives an executor: counts of its tasks and remote wakes.
pub(super) struct Meter(Arc<Shared>);

impl Executor {
    pub(super) fn new() -> Self {
        let notifier = Arc::new(Notifier::new().expect("a descriptor is free"));
        Self {
            core: Rc::new(Core {
                queue: RunQueue::default(),
                tasks: TaskList::new(),
                shared: Arc::new(Shared {
                    remote_wakes: RemoteWakeQueue::new(notifier.clone()),
                    notifier,
                    allocated: AtomicUsize::new(0),
                    sent: AtomicUsize::new(0),
                }),
            }),
        }
    }

    /// Queues a new task.
    pub(super) fn spawn<F: Future + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        let (runnable, handle, task) = self.spawn_unregistered(future);
        self.register(runnable, task);
        handle
    }

    /// Makes a task that the test keeps itself.
    pub(super) fn spawn_unregistered<F: Future + 'static>(
        &self,
        future: F,
    ) -> (Runnable, JoinHandle<F::Output>, OwnedTask) {
        spawn(future, self.owner(), self.core.tasks.cells())
    }

    /// Queues a new task that borrows.
    ///
    /// # Safety
    /// As for `spawn_unchecked`.
    pub(super) unsafe fn spawn_scoped<F: Future>(&self, future: F) -> JoinHandle<F::Output> {
        // SAFETY: promised by the caller.
        let (runnable, handle, task) =
            unsafe { spawn_unchecked(future, self.owner(), self.core.tasks.cells()) };
        self.register(runnable, task);
        handle
    }

    fn owner(&self) -> Owner {
        self.core.shared.allocated.fetch_add(1, Ordering::SeqCst);
        Owner(self.core.shared.clone())
    }

    fn register(&self, runnable: Runnable, task: OwnedTask) {
        self.core.tasks.push(task);
        self.core.queue.push(runnable);
    }

    /// Calls `f` with this executor current.
    pub(super) fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(Option<Rc<Core>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.set(self.0.take());
            }
        }
        let _leave = Leave(CURRENT.replace(Some(self.core.clone())));
        f()
    }

    /// Takes one task from the queue and runs it. False: the queue was empty.
    pub(super) fn run_one(&self) -> bool {
        let Some(runnable) = self.core.queue.pop() else {
            return false;
        };
        self.enter(|| self.core.tasks.run(runnable, Runnable::run, || {}));
        true
    }

    /// Delivers remote wakes and runs tasks until neither is left; says how many runs that took.
    pub(super) fn run(&self) -> usize {
        let mut runs = 0;
        loop {
            self.deliver();
            if !self.run_one() {
                return runs;
            }
            runs += 1;
        }
    }

    /// Delivers what other threads have sent.
    pub(super) fn deliver(&self) {
        self.core.shared.notifier.take();
        self.enter(|| {
            self.core
                .shared
                .remote_wakes
                .take()
                .for_each(RemoteWake::deliver)
        });
    }

    /// Tasks in the queue.
    pub(super) fn queued(&self) -> usize {
        self.core.queue.len()
    }

    /// Drops what is in the queue, unrun.
    pub(super) fn discard_queue(&self) {
        self.enter(|| {
            while let Some(runnable) = self.core.queue.pop() {
                drop(runnable);
            }
        });
    }

    /// Tasks that are not over.
    pub(super) fn registered(&self) -> usize {
        self.core.tasks.len()
    }

    pub(super) fn meter(&self) -> Meter {
        Meter(self.core.shared.clone())
    }

    /// Drops every future.
    pub(super) fn shut_down(&self) {
        self.enter(|| {
            drop(self.core.shared.remote_wakes.close());
            while !self.core.tasks.is_empty() {
                let tasks = self.core.tasks.take_all();
                tasks.iter().for_each(OwnedTask::shutdown);
            }
        });
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.enter(|| {
            drop(self.core.shared.remote_wakes.close());
            while !self.core.tasks.is_empty() {
                self.core
                    .tasks
                    .take_all()
                    .iter()
                    .for_each(OwnedTask::shutdown);
            }
        });
        self.discard_queue();
    }
}

impl Schedule for Owner {
    fn is_owner(&self) -> bool {
        CURRENT
            .try_with(|current| {
                let current = current.borrow();
                current
                    .as_ref()
                    .is_some_and(|core| Arc::ptr_eq(&core.shared, &self.0))
            })
            .unwrap_or(false)
    }

    fn schedule(&self, runnable: Runnable, _: bool) {
        assert!(self.is_owner(), "tasks are scheduled on their own thread");
        CURRENT.with_borrow(|current| {
            let core = current.as_ref().expect("is_owner says so");
            core.queue.push(runnable);
        });
    }

    fn send(&self, wake: RemoteWake) {
        self.0.sent.fetch_add(1, Ordering::SeqCst);
        // One to an executor that is gone comes back and is dropped.
        let _ = self.0.remote_wakes.push(wake);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.allocated.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Meter {
    /// Tasks whose memory is not freed.
    pub(super) fn allocated(&self) -> usize {
        self.0.allocated.load(Ordering::SeqCst)
    }

    /// Remote wakes sent so far.
    pub(super) fn sent(&self) -> usize {
        self.0.sent.load(Ordering::SeqCst)
    }
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(super) struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    pub(super) fn note(&self, event: &'static str) {
        self.0.borrow_mut().push(event);
    }

    /// What was noted since the last call.
    pub(super) fn take(&self) -> Vec<&'static str> {
        self.0.take()
    }

    /// Notes `event` when it is dropped.
    pub(super) fn on_drop(&self, event: &'static str) -> OnDrop<impl FnMut() + use<>> {
        let log = self.clone();
        OnDrop(move || log.note(event))
    }
}

/// Calls a function when it is dropped.
pub(super) struct OnDrop<F: FnMut()>(pub(super) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A future that hands its waker out, and is ready when told.
#[derive(Clone, Default)]
pub(super) struct Gate(Rc<GateState>);

#[derive(Default)]
struct GateState {
    is_open: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    polls: Cell<usize>,
}

impl Gate {
    /// The next poll is ready. Wakes nobody.
    pub(super) fn open(&self) {
        self.0.is_open.set(true);
    }

    /// The waker of the last poll.
    pub(super) fn take_waker(&self) -> Waker {
        self.0.waker.take().expect("the gate was polled")
    }

    pub(super) fn polls(&self) -> usize {
        self.0.polls.get()
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.polls.set(self.0.polls.get() + 1);
        if self.0.is_open.get() {
            Poll::Ready(())
        } else {
            let old = self.0.waker.replace(Some(cx.waker().clone()));
            drop(old);
            Poll::Pending
        }
    }
}

/// A waker that counts.
#[derive(Default)]
pub(super) struct Count(AtomicUsize);

impl Count {
    pub(super) fn wakes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A counting waker, and its count.
pub(super) fn counting_waker() -> (Waker, Arc<Count>) {
    let count = Arc::new(Count::default());
    (count.clone().into(), count)
}

/// Polls once with a waker of no consequence.
pub(super) fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Calls `f` on another thread and waits for its end.
pub(super) fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(f).join().expect("the other thread ends well"))
}
