//! Lines on their way to one guest.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A bounded queue between tasks of one executor. One task reads.
#[derive(Default)]
pub struct Outbox {
    lines: RefCell<VecDeque<Rc<[u8]>>>,
    /// A line was pushed while it was full.
    has_overflowed: Cell<bool>,
    reader: Cell<Option<Waker>>,
}

impl Outbox {
    /// Adds a line. If it is full it overflows instead: a writer must not wait for a reader.
    pub fn push(&self, line: Rc<[u8]>) {
        let mut lines = self.lines.borrow_mut();
        if lines.len() < LINES_MAX {
            lines.push_back(line);
        } else {
            self.has_overflowed.set(true);
        }
        drop(lines);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// The next line.
    pub async fn next(&self) -> Rc<[u8]> {
        poll_fn(|cx| match self.lines.borrow_mut().pop_front() {
            Some(line) => Poll::Ready(line),
            None => self.wait(cx),
        })
        .await
    }

    /// Completes when a line did not fit.
    pub async fn overflow(&self) {
        poll_fn(|cx| {
            if self.has_overflowed.get() {
                Poll::Ready(())
            } else {
                self.wait(cx)
            }
        })
        .await
    }

    /// Both wait in the same task, so one waker is enough.
    fn wait<T>(&self, cx: &Context<'_>) -> Poll<T> {
        self.reader.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

const LINES_MAX: usize = 256;
