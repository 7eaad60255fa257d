//! Futures that a test polls by hand, with wakers that count.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::common::Kept;
use crate::common::hooks::on_wake;

/// A future, its waker and whether that was woken since the last poll.
pub struct Polled<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    waker: Waker,
    is_woken: Rc<Cell<bool>>,
    hook: Rc<dyn Fn()>,
}

impl<'a, T> Polled<'a, T> {
    pub fn new(future: impl Future<Output = T> + 'a) -> Self {
        Polled::hooked(future, || ())
    }

    /// As `new`, and calls `hook` at each wake.
    pub fn hooked(future: impl Future<Output = T> + 'a, hook: impl Fn() + 'static) -> Self {
        let mut this = Polled {
            future: Box::pin(future),
            waker: Waker::noop().clone(),
            is_woken: Rc::default(),
            hook: Rc::new(hook),
        };
        this.change_waker();
        this
    }

    /// A future that was polled once, and waits.
    pub fn waiting(future: impl Future<Output = T> + 'a) -> Self {
        let mut this = Polled::new(future);
        assert!(this.poll().is_pending(), "this was to wait");
        this
    }

    /// Polls from another task from now on.
    pub fn change_waker(&mut self) {
        let (is_woken, hook) = (Rc::clone(&self.is_woken), Rc::clone(&self.hook));
        self.waker = on_wake(move || {
            is_woken.set(true);
            hook();
        });
    }

    pub fn is_woken(&self) -> bool {
        self.is_woken.get()
    }

    pub fn poll(&mut self) -> Poll<T> {
        self.is_woken.set(false);
        let mut cx = Context::from_waker(&self.waker);
        self.future.as_mut().poll(&mut cx)
    }

    /// The output of a future that was woken and is done.
    #[track_caller]
    pub fn finish(&mut self) -> T {
        assert!(self.is_woken(), "it was not woken");
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it was woken for nothing"),
        }
    }
}

/// The output of a future that is done with its first poll.
#[track_caller]
pub fn at_once<T>(future: impl Future<Output = T>) -> T {
    match Polled::new(future).poll() {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("this was not to wait"),
    }
}

/// However often it is polled, `future` keeps one clone of the waker, and none when it is gone.
#[track_caller]
pub fn keeps_one_waker<T>(future: impl Future<Output = T>) {
    let kept = Arc::new(Kept);
    let waker = Waker::from(Arc::clone(&kept));
    let mut cx = Context::from_waker(&waker);
    let mut future = Box::pin(future);
    for _ in 0..1000 {
        assert!(future.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&kept), 3, "ours, the task's, the queue's");
    drop(future);
    assert_eq!(Arc::strong_count(&kept), 2, "dropped with the future");
}

/// A panic that prints nothing.
pub fn quiet_panic() {
    std::panic::resume_unwind(Box::new("a quiet panic"));
}

/// How many random operations the long runs do.
pub fn operations() -> u64 {
    operations_or(100_000)
}

/// As [`operations`], with another number where the environment says none.
pub fn operations_or(count: u64) -> u64 {
    number("GLOMMIO_OPERATIONS", count)
}

/// So many rounds, or as many times that as `GLOMMIO_TEST_ROUNDS` says.
pub fn rounds(count: usize) -> usize {
    count * number("GLOMMIO_TEST_ROUNDS", 1) as usize
}

/// The number in the environment variable `name`.
pub fn number(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}
