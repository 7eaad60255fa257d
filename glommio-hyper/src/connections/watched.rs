//! What is known of a connection while it is served.
//!
//! hyper tells neither how far a connection is nor which connection a task belongs to. But it reads
//! and spawns while the connection is polled. So what is known of the connection that is being
//! polled is at hand for the thread: the stream counts what it reads, and the tasks of HTTP/2 report
//! their panics to it.
//!
//! That a connection has tasks is found out when it spawns the first. One of HTTP/1 has none, and no
//! memory for them.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::Shared;
use crate::panic;

thread_local! {
    /// Of the connection that is being polled.
    static CURRENT: Cell<Option<Known>> = const { Cell::new(None) };
}

/// A connection that is served.
pub(super) struct Watched {
    /// `None` while it is the current one.
    known: Option<Known>,
}

struct Known {
    shared: Rc<Shared>,
    /// Of the stream; `None` if it is not one of ours, which would have counted.
    bytes_read: Option<usize>,
    tasks: Option<Rc<ConnectionTasks>>,
}

/// The tasks of a connection, one for each stream of HTTP/2.
pub(crate) struct ConnectionTasks {
    shared: Rc<Shared>,
    /// One of them has panicked, which asks the connection to finish.
    have_panicked: Cell<bool>,
    /// The task that serves the connection.
    server: RefCell<Option<Waker>>,
}

impl Watched {
    pub(super) fn new(shared: &Rc<Shared>) -> Self {
        Watched {
            known: Some(Known {
                shared: Rc::clone(shared),
                bytes_read: None,
                tasks: None,
            }),
        }
    }

    /// What has come; `None` if that is not known.
    pub(super) fn bytes_read(&self) -> Option<usize> {
        self.known.as_ref()?.bytes_read
    }

    /// Whether a task of it has panicked.
    pub(super) fn has_panicked(&self) -> bool {
        self.tasks().is_some_and(|it| it.have_panicked.get())
    }

    /// Has `waker` woken when a task of it panics. To be called after each poll, which may have
    /// spawned the first.
    pub(super) fn await_panic(&self, waker: &Waker) {
        if let Some(tasks) = self.tasks() {
            tasks.await_panic(waker);
        }
    }

    /// Calls `f`, by which the connection is polled.
    pub(super) fn poll<R>(&mut self, f: impl FnOnce() -> R) -> R {
        let _entered = Entered::new(&mut self.known);
        f()
    }

    fn tasks(&self) -> Option<&ConnectionTasks> {
        self.known.as_ref()?.tasks.as_deref()
    }
}

impl Shared {
    /// Calls `f`, a part of a connection. `None` if it has panicked, which is counted and reported.
    pub(super) fn contain<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        if self.unwinds {
            return Some(f());
        }
        match panic::catch(f) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.panics.set(self.panics.get() + 1);
                panic::report(payload);
                None
            }
        }
    }
}

impl ConnectionTasks {
    /// Those of the connection that is being polled on this thread.
    pub(crate) fn current() -> Option<Rc<ConnectionTasks>> {
        with_current(|known| {
            let Known { shared, tasks, .. } = known;
            let tasks = tasks.get_or_insert_with(|| {
                Rc::new(ConnectionTasks {
                    shared: Rc::clone(shared),
                    have_panicked: Cell::new(false),
                    server: RefCell::new(None),
                })
            });
            Rc::clone(tasks)
        })
    }

    fn await_panic(&self, waker: &Waker) {
        let is_same = |known: &Waker| known.will_wake(waker);
        if !self.server.borrow().as_ref().is_some_and(is_same) {
            // Cloned and dropped with nothing borrowed: both run code of wakers.
            let replaced = self.server.replace(Some(waker.clone()));
            drop(replaced);
        }
    }

    /// Calls `f`. If it panics, the connection is asked to finish.
    fn contain<R>(&self, f: impl FnOnce() -> R) -> Option<R> {
        let value = self.shared.contain(f);
        if value.is_none() {
            self.have_panicked.set(true);
            let server = self.server.take();
            if let Some(server) = server {
                server.wake();
            }
        }
        value
    }

    /// Drives `future`, one of the tasks.
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
    with_current(|known| {
        let before = known.bytes_read.unwrap_or_default();
        known.bytes_read = Some(before.saturating_add(count));
    });
}

/// Calls `f`, which must not look for the connection itself. `None` if none is being polled.
fn with_current<R>(f: impl FnOnce(&mut Known) -> R) -> Option<R> {
    // It is gone while the thread's locals are being destroyed.
    let result = CURRENT.try_with(|cell| {
        let mut current = cell.take();
        let result = current.as_mut().map(f);
        cell.set(current);
        result
    });
    result.ok().flatten()
}

/// Until it is dropped, a connection is the one that is being polled.
struct Entered<'a> {
    inner: &'a mut Option<Known>,
    outer: Option<Known>,
}

impl<'a> Entered<'a> {
    fn new(inner: &'a mut Option<Known>) -> Self {
        let outer = CURRENT.try_with(|it| it.replace(inner.take()));
        Entered {
            outer: outer.ok().flatten(),
            inner,
        }
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let outer = self.outer.take();
        // Without the thread's locals it has stayed where it was.
        if let Ok(inner) = CURRENT.try_with(|it| it.replace(outer)) {
            *self.inner = inner;
        }
    }
}
