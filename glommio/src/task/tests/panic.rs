//! Panics of futures and destructors: they unwind out of `run`, and leave a task that is over.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::executor::{Executor, Log, OnDrop, counting_waker, poll_once};

/// What unwound out of `f`.
fn payload(f: impl FnOnce()) -> &'static str {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    payload
        .downcast_ref::<&str>()
        .expect("its payload is a word")
}

/// The payload goes to whoever runs the task; the future is dropped, the awaiter hears `None`.
#[test]
fn in_a_poll() {
    let executor = Executor::new();
    let log = Log::default();
    let in_future = log.on_drop("future");
    let mut handle = executor.spawn(async move {
        let _in_future = in_future;
        panic_any("in a poll");
    });
    let (waker, count) = counting_waker();
    let awaits = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
    assert_eq!(awaits, Poll::<Option<()>>::Pending);
    assert_eq!(payload(|| _ = executor.run()), "in a poll");
    assert_eq!(log.take(), ["future"]);
    assert_eq!(count.wakes(), 1);
    assert_eq!(executor.registered(), 0);
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
    drop(handle);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A task that woke itself before it panicked is not queued.
#[test]
fn in_a_poll_after_waking_itself() {
    let executor = Executor::new();
    let mut is_first = true;
    drop(executor.spawn(poll_fn(move |cx| -> Poll<()> {
        cx.waker().wake_by_ref();
        assert!(is_first, "a task that panicked is not polled again");
        is_first = false;
        panic_any("woken");
    })));
    assert_eq!(payload(|| _ = executor.run()), "woken");
    assert_eq!(executor.run(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// The destructor of a future that panics while its poll's panic unwinds is contained: no abort.
#[test]
fn in_a_destructor_during_unwinding() {
    let executor = Executor::new();
    let mut handle = executor.spawn(BadFuture::<()> { is_ready: None });
    assert_eq!(payload(|| _ = executor.run()), "poll");
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
    assert_eq!(executor.registered(), 0);
}

/// A destructor that panics at completion: the awaiter hears `None`, the output is dropped.
#[test]
fn in_a_destructor_at_completion() {
    let executor = Executor::new();
    let log = Log::default();
    let mut handle = executor.spawn(BadFuture {
        is_ready: Some(log.on_drop("output")),
    });
    assert_eq!(payload(|| _ = executor.run()), "destructor");
    assert_eq!(log.take(), ["output"]);
    assert!(matches!(poll_once(&mut handle), Poll::Ready(None)));
    assert_eq!(executor.registered(), 0);
    drop(handle);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A future and its output that both panic when they are dropped: the second is contained.
#[test]
fn in_the_destructors_of_a_future_and_its_output() {
    let executor = Executor::new();
    let log = Log::default();
    let noted = log.on_drop("output");
    let mut handle = executor.spawn(BadFuture {
        is_ready: Some(OnDrop(move || {
            let _noted = &noted;
            panic_any("output");
        })),
    });
    assert_eq!(payload(|| _ = executor.run()), "destructor");
    assert!(matches!(poll_once(&mut handle), Poll::Ready(None)));
    assert_eq!(executor.registered(), 0);
    drop(handle);
    assert_eq!(log.take(), ["output"]);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A destructor that panics when a cancelled task is dropped, by the scheduler or at once.
#[test]
fn in_a_destructor_after_cancel() {
    for is_at_once in [false, true] {
        let executor = Executor::new();
        let in_future = OnDrop(|| panic_any("destructor"));
        let mut handle = executor.spawn(async move {
            let _in_future = in_future;
            pending::<()>().await;
        });
        executor.run();
        let (waker, count) = counting_waker();
        let awaits = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
        assert!(awaits.is_pending());
        if is_at_once {
            assert_eq!(
                payload(|| executor.enter(|| handle.cancel_now())),
                "destructor"
            );
            assert_eq!(executor.run(), 1);
        } else {
            executor.enter(|| handle.cancel());
            assert_eq!(payload(|| _ = executor.run()), "destructor");
        }
        assert_eq!(count.wakes(), 1);
        assert_eq!(poll_once(&mut handle), Poll::Ready(None));
        assert_eq!(executor.registered(), 0);
        drop(handle);
        assert_eq!(executor.meter().allocated(), 0);
    }
}

/// An output whose destructor panics, nobody being there to take it, or its handle being dropped.
#[test]
fn in_the_destructor_of_an_output() {
    let executor = Executor::new();
    drop(executor.spawn(async { OnDrop(|| panic_any("detached")) }));
    assert_eq!(payload(|| _ = executor.run()), "detached");
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);

    let handle = executor.spawn(async { OnDrop(|| panic_any("unread")) });
    executor.run();
    assert_eq!(payload(|| drop(handle)), "unread");
    assert_eq!(executor.meter().allocated(), 0);
}

/// One destructor's panic at shutdown unwinds, and the other tasks are shut down during unwinding;
/// their panics are contained.
#[test]
fn in_destructors_at_shutdown() {
    let executor = Executor::new();
    let meter = executor.meter();
    let log = Log::default();
    let mut handles = Vec::new();
    for name in ["first", "second"] {
        let log = log.clone();
        let in_future = OnDrop(move || {
            log.note(name);
            panic_any(name);
        });
        handles.push(executor.spawn(async move {
            let _in_future = in_future;
            pending::<()>().await;
        }));
    }
    executor.run();
    assert_eq!(payload(|| drop(executor)), "first");
    assert_eq!(log.take(), ["first", "second"]);
    for mut handle in handles {
        assert_eq!(poll_once(&mut handle), Poll::Ready(None));
    }
    assert_eq!(meter.allocated(), 0);
}

/// Panics when it is dropped; ready with what it holds, or else panics when polled, too.
struct BadFuture<T> {
    is_ready: Option<T>,
}

impl<T: Unpin> Future for BadFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        match self.is_ready.take() {
            Some(output) => Poll::Ready(output),
            None => panic_any("poll"),
        }
    }
}

impl<T> Drop for BadFuture<T> {
    fn drop(&mut self) {
        panic_any("destructor");
    }
}
