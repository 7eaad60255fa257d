//! What is known of a connection while it is served.
//!
//! hyper tells neither how far a connection is nor which connection a task belongs to. But it reads
//! and spawns while the connection is polled. So the connection that is being polled is noted for
//! the thread: the stream counts what it reads, and the tasks of HTTP/2 report their panics to it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::Shared;
use crate::panic;

thread_local! {
    /// The connection that is being polled.
    static CURRENT: Cell<Option<Rc<Watched>>> = const { Cell::new(None) };
}

/// A connection that is served.
pub(crate) struct Watched {
    pub(super) shared: Rc<Shared>,
    /// A part of it has panicked, which asks it to finish.
    has_panicked: Cell<bool>,
    /// The task that serves it.
    task: RefCell<Option<Waker>>,
    /// Of the stream; `None` if it is not one of ours, which would have counted.
    bytes_read: Cell<Option<usize>>,
}

impl Watched {
    pub(super) fn new(shared: Rc<Shared>) -> Rc<Self> {
        Rc::new(Watched {
            has_panicked: Cell::new(false),
            task: RefCell::new(None),
            bytes_read: Cell::new(None),
            shared,
        })
    }

    /// The connection that is being polled on this thread.
    pub(crate) fn current() -> Option<Rc<Watched>> {
        with_current(Option::clone).flatten()
    }

    /// What has come; `None` if that is not known.
    pub(super) fn bytes_read(&self) -> Option<usize> {
        self.bytes_read.get()
    }

    /// Whether a part of it has panicked. If one does later, `waker` is woken.
    pub(super) fn poll_panicked(&self, waker: &Waker) -> bool {
        let is_same = |known: &Waker| known.will_wake(waker);
        if !self.task.borrow().as_ref().is_some_and(is_same) {
            // Cloned and dropped with nothing borrowed: both run code of wakers.
            let replaced = self.task.replace(Some(waker.clone()));
            drop(replaced);
        }
        self.has_panicked.get()
    }

    /// Calls `f`, by which the connection is polled.
    pub(super) fn poll<R>(self: &Rc<Self>, f: impl FnOnce() -> R) -> Option<R> {
        let _entered = Entered::new(self);
        self.contain(f)
    }

    /// Calls `f`. `None` if it has panicked: the panic is reported, and the connection asked to
    /// finish.
    pub(super) fn contain<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if self.shared.unwinds {
            return Some(f());
        }
        match panic::catch(f) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.shared.panics.set(self.shared.panics.get() + 1);
                panic::report(payload);
                self.has_panicked.set(true);
                let task = self.task.take();
                if let Some(task) = task {
                    task.wake();
                }
                None
            }
        }
    }

    /// Drives `future`, a part of the connection with a task of its own.
    pub(crate) async fn contain_future<F: Future>(self: Rc<Self>, future: F) -> Option<F::Output> {
        let mut future = pin!(Some(future));
        let output = poll_fn(|cx| {
            let poll = self.contain(|| match future.as_mut().as_pin_mut() {
                Some(future) => future.poll(cx).map(Some),
                None => Poll::Ready(None),
            });
            poll.unwrap_or(Poll::Ready(None))
        })
        .await;
        // Its destructor is the handler's, too.
        self.contain(|| future.set(None));
        output
    }
}

/// A stream has been asked for bytes, and `count` have come.
pub(crate) fn count_read(count: usize) {
    with_current(|current| {
        if let Some(current) = current {
            let before = current.bytes_read.get().unwrap_or_default();
            current.bytes_read.set(Some(before.saturating_add(count)));
        }
    });
}

/// Calls `f`, which must not look for the connection itself.
fn with_current<R>(f: impl FnOnce(&Option<Rc<Watched>>) -> R) -> Option<R> {
    // It is gone while the thread's locals are being destroyed.
    CURRENT
        .try_with(|cell| {
            let current = cell.take();
            let result = f(&current);
            cell.set(current);
            result
        })
        .ok()
}

/// Until it is dropped, a connection is the one that is being polled.
struct Entered {
    outer: Option<Rc<Watched>>,
}

impl Entered {
    fn new(inner: &Rc<Watched>) -> Self {
        let outer = CURRENT.try_with(|it| it.replace(Some(Rc::clone(inner))));
        Entered {
            outer: outer.ok().flatten(),
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let outer = self.outer.take();
        let _ = CURRENT.try_with(|it| it.replace(outer));
    }
}
