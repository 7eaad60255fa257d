//! The cell against async-task's: one random script, played on both, must give the same events in
//! the same order.
//!
//! The scripts stay on one thread, and every poll that ends pending leaves a waker behind, since
//! async-task leaks a detached future that nothing can wake after its poll. What the awaiter is told
//! is left out, too: async-task wakes it once more than needed, when a task is cancelled; and it
//! ends the process when an awaiter's waker panics, which ours outlives.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use async_task::FallibleTask;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::prop_oneof;

use crate::task::{CellStore, JoinHandle, OwnedTask, RemoteWake, Runnable, Schedule, spawn};

/// What the script does between polls, or in the middle of one.
#[derive(Clone, Debug)]
enum Step {
    /// Runs the task that is first in the queue.
    Run,
    /// Drops the `Runnable` that is first in the queue.
    Discard,
    WakeByRef(usize),
    Wake(usize),
    CloneWaker(usize),
    DropWaker(usize),
    PollHandle,
    Cancel,
    DropHandle,
}

/// What one poll does.
#[derive(Clone, Debug)]
struct PollScript {
    steps: Vec<Step>,
    wakes_itself: bool,
    end: End,
}

/// How a poll ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Pending,
    Ready,
    Panic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Scheduled,
    Polled,
    FutureDropped,
    OutputDropped,
    Joined(bool),
    /// A panic came out of the run.
    Panicked,
}

/// A kind of task cell, each with its own `Runnable` and handle.
trait CellKind: 'static {
    type Runnable;
    type Handle: Future<Output = Option<Output>> + Unpin;

    fn spawn(stage: &Rc<Stage<Self>>, future: Script<Self>) -> (Self::Runnable, Self::Handle)
    where
        Self: Sized;
    fn run(runnable: Self::Runnable);
    fn cancel(handle: Self::Handle) -> Self::Handle;
    /// Lets the task run on without a handle.
    fn detach(handle: Self::Handle);
}

/// Notes its end.
struct Output(Rc<RefCell<Vec<Event>>>);

impl Drop for Output {
    fn drop(&mut self) {
        self.0.borrow_mut().push(Event::OutputDropped);
    }
}

/// Where the play takes place: what the script can reach, and the events so far.
struct Stage<C: CellKind> {
    queue: RefCell<VecDeque<C::Runnable>>,
    handle: RefCell<Option<C::Handle>>,
    wakers: RefCell<Vec<Waker>>,
    events: Rc<RefCell<Vec<Event>>>,
}

impl<C: CellKind> Stage<C> {
    fn note(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }

    fn play(&self, step: &Step) {
        // No borrow is held while a cell is called: it may come back here.
        match *step {
            Step::Run => {
                let runnable = self.queue.borrow_mut().pop_front();
                if let Some(runnable) = runnable
                    && catch_unwind(AssertUnwindSafe(|| C::run(runnable))).is_err()
                {
                    self.note(Event::Panicked);
                }
            }
            Step::Discard => {
                let runnable = self.queue.borrow_mut().pop_front();
                drop(runnable);
            }
            Step::WakeByRef(index) => {
                if let Some(waker) = self.take_waker(index) {
                    waker.wake_by_ref();
                    self.wakers.borrow_mut().push(waker);
                }
            }
            Step::Wake(index) => {
                if let Some(waker) = self.take_waker(index) {
                    waker.wake();
                }
            }
            Step::CloneWaker(index) => {
                if let Some(waker) = self.take_waker(index) {
                    let clone = waker.clone();
                    self.wakers.borrow_mut().extend([waker, clone]);
                }
            }
            Step::DropWaker(index) => drop(self.take_waker(index)),
            Step::PollHandle => {
                let handle = self.handle.take();
                self.poll_handle(handle);
            }
            Step::Cancel => {
                let handle = self.handle.take();
                self.poll_handle(handle.map(C::cancel));
            }
            Step::DropHandle => {
                let handle = self.handle.take();
                if let Some(handle) = handle {
                    C::detach(handle);
                }
            }
        }
    }

    fn take_waker(&self, index: usize) -> Option<Waker> {
        let mut wakers = self.wakers.borrow_mut();
        let count = wakers.len();
        (count > 0).then(|| wakers.swap_remove(index % count))
    }

    fn poll_handle(&self, handle: Option<C::Handle>) {
        let Some(mut handle) = handle else { return };
        match Pin::new(&mut handle).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => {
                self.note(Event::Joined(output.is_some()));
                drop(handle);
                drop(output);
            }
            Poll::Pending => *self.handle.borrow_mut() = Some(handle),
        }
    }
}

/// The future: plays its part of the script, one poll after the other.
struct Script<C: CellKind> {
    stage: Rc<Stage<C>>,
    polls: VecDeque<PollScript>,
}

impl<C: CellKind> Future for Script<C> {
    type Output = Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        self.stage.note(Event::Polled);
        let script = self.polls.pop_front();
        let stage = &self.stage;
        if let Some(script) = &script {
            script.steps.iter().for_each(|step| stage.play(step));
            if script.wakes_itself {
                cx.waker().wake_by_ref();
            }
        }
        match script.map_or(End::Ready, |script| script.end) {
            End::Ready => Poll::Ready(Output(stage.events.clone())),
            End::Pending => {
                stage.wakers.borrow_mut().push(cx.waker().clone());
                Poll::Pending
            }
            // Past the hook, which would print every one of them.
            End::Panic => resume_unwind(Box::new("as the script says")),
        }
    }
}

impl<C: CellKind> Drop for Script<C> {
    fn drop(&mut self) {
        self.stage.note(Event::FutureDropped);
    }
}

/// The events of a play, up to the end of everything.
fn play<C: CellKind>(polls: &[PollScript], steps: &[Step]) -> Vec<Event> {
    let stage = Rc::new(Stage::<C> {
        queue: RefCell::default(),
        handle: RefCell::default(),
        wakers: RefCell::default(),
        events: Rc::default(),
    });
    let script = Script {
        stage: stage.clone(),
        polls: polls.iter().cloned().collect(),
    };
    let (runnable, handle) = C::spawn(&stage, script);
    stage.queue.borrow_mut().push_back(runnable);
    *stage.handle.borrow_mut() = Some(handle);

    steps.iter().for_each(|step| stage.play(step));
    // The end: nobody awaits, nobody can wake, and what is queued is run.
    stage.play(&Step::Cancel);
    for _ in 0..steps.len() + polls.len() {
        stage.play(&Step::Run);
    }
    stage.play(&Step::PollHandle);
    stage.play(&Step::DropHandle);
    let wakers = stage.wakers.take();
    drop(wakers);
    for _ in 0..2 {
        stage.play(&Step::Run);
    }
    stage.events.take()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn agrees_with_async_task(
        polls in vec(poll_script(), 0..5),
        steps in vec(step(9), 0..24),
    ) {
        let ours = play::<Ours>(&polls, &steps);
        prop_assert_eq!(&ours, &play::<AsyncTask>(&polls, &steps));
        let futures = ours.iter().filter(|&&event| event == Event::FutureDropped);
        prop_assert_eq!(futures.count(), 1);
    }
}

fn poll_script() -> impl Strategy<Value = PollScript> {
    let steps = prop_oneof![2 => Just(Vec::new()), 1 => vec(step(6), 0..4)];
    let end = prop_oneof![8 => Just(End::Pending), 2 => Just(End::Ready), 1 => Just(End::Panic)];
    (steps, any::<bool>(), end).prop_map(|(steps, wakes_itself, end)| PollScript {
        steps,
        wakes_itself,
        end,
    })
}

/// One of the first `kinds` of these: a poll does not run tasks.
fn step(kinds: u8) -> impl Strategy<Value = Step> {
    (0..kinds, 0..4_usize).prop_map(|(kind, index)| match kind {
        0 => Step::WakeByRef(index),
        1 => Step::Wake(index),
        2 => Step::CloneWaker(index),
        3 => Step::DropWaker(index),
        4 => Step::PollHandle,
        5 => {
            if index < 2 {
                Step::Cancel
            } else {
                Step::DropHandle
            }
        }
        6 | 7 => Step::Run,
        _ => {
            if index == 0 {
                Step::Discard
            } else {
                Step::Run
            }
        }
    })
}

thread_local! {
    /// Where the present play's tasks are queued. Schedules are `Send`, stages are not.
    static ENQUEUE: Enqueue = const { Enqueue(RefCell::new(None), RefCell::new(None)) };
    static CELLS: Box<CellStore> = CellStore::new();
    /// The one task of the present play, as its executor holds it.
    static OWNED: Cell<Option<OwnedTask>> = const { Cell::new(None) };
}

struct Enqueue(
    RefCell<Option<Rc<Stage<Ours>>>>,
    RefCell<Option<Rc<Stage<AsyncTask>>>>,
);

fn enqueue<C: CellKind>(stage: &RefCell<Option<Rc<Stage<C>>>>, runnable: C::Runnable) {
    let stage = stage.borrow().clone().expect("a play is going on");
    stage.note(Event::Scheduled);
    stage.queue.borrow_mut().push_back(runnable);
}

struct Ours;

struct OnThisThread;

impl Schedule for OnThisThread {
    fn is_owner(&self) -> bool {
        true
    }

    fn schedule(&self, runnable: Runnable, _: bool) {
        ENQUEUE.with(|stages| enqueue(&stages.0, runnable));
    }

    fn send(&self, _: RemoteWake) {
        unreachable!("one thread");
    }
}

impl CellKind for Ours {
    type Runnable = Runnable;
    type Handle = JoinHandle<Output>;

    fn spawn(stage: &Rc<Stage<Self>>, future: Script<Self>) -> (Runnable, Self::Handle) {
        ENQUEUE.with(|stages| stages.0.replace(Some(stage.clone())));
        let (runnable, handle, task) = CELLS.with(|cells| spawn(future, OnThisThread, cells));
        OWNED.set(Some(task));
        (runnable, handle)
    }

    fn run(runnable: Runnable) {
        let run = catch_unwind(AssertUnwindSafe(|| runnable.run()));
        if run.as_ref().copied().unwrap_or(true) {
            let task = OWNED.take();
            assert!(task.is_some(), "a task is over once");
        }
        if let Err(panic) = run {
            resume_unwind(panic);
        }
    }

    fn cancel(handle: Self::Handle) -> Self::Handle {
        handle.cancel();
        handle
    }

    fn detach(handle: Self::Handle) {
        drop(handle);
    }
}

struct AsyncTask;

/// async-task's handle, or the future of its cancellation.
enum TaskOrCancel {
    Task(FallibleTask<Output>),
    Cancel(Pin<Box<dyn Future<Output = Option<Output>>>>),
}

impl Future for TaskOrCancel {
    type Output = Option<Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Output>> {
        match &mut *self {
            TaskOrCancel::Task(task) => Pin::new(task).poll(cx),
            TaskOrCancel::Cancel(cancel) => cancel.as_mut().poll(cx),
        }
    }
}

impl CellKind for AsyncTask {
    type Runnable = async_task::Runnable;
    type Handle = TaskOrCancel;

    fn spawn(stage: &Rc<Stage<Self>>, future: Script<Self>) -> (Self::Runnable, TaskOrCancel) {
        ENQUEUE.with(|stages| stages.1.replace(Some(stage.clone())));
        let schedule = |runnable| ENQUEUE.with(|stages| enqueue(&stages.1, runnable));
        let (runnable, task) = async_task::spawn_local(future, schedule);
        (runnable, TaskOrCancel::Task(task.fallible()))
    }

    fn run(runnable: Self::Runnable) {
        runnable.run();
    }

    fn cancel(handle: TaskOrCancel) -> TaskOrCancel {
        match handle {
            TaskOrCancel::Task(task) => TaskOrCancel::Cancel(Box::pin(task.cancel())),
            cancel => cancel,
        }
    }

    fn detach(handle: TaskOrCancel) {
        match handle {
            TaskOrCancel::Task(task) => task.detach(),
            // It was polled when it was made, and so the task is cancelled already.
            cancel => drop(cancel),
        }
    }
}
