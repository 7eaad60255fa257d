//! Standing watch over a stream that is read often.
//!
//! ```text
//!            Watch operation, in flight from read to read
//!   kernel ───────────── data came ─────────────▶ `has_news`, wake whoever waits
//! ```
//!
//! Asking anew for each wait whether a socket is readable costs a submission each time. A watch is one
//! operation that completes whenever something comes. It tells of changes only: whoever finds the
//! socket empty by a system call *after* the last news was taken note of, and hears nothing, knows that
//! it is empty still. What was there before the watch began counts as news.
//!
//! News that nobody waits for cost time all the same. So a watch over a socket whose owner does not
//! come to read ends, until somebody waits again.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};
use std::task::Waker;

use crate::panic::{self, wake_by_ref};
use crate::reactor::{PollMany, Reactor, Sink, SinkHandle, executor_is_gone};

/// News of a socket becoming readable.
#[derive(Debug)]
pub(super) struct Watch {
    news: Rc<News>,
    reactor: Weak<Reactor>,
}

/// News that may pile up before they are taken to be of no interest.
const UNHEARD: u32 = 4;

/// Events after which a receive does not wait, as a rule.
const ENDS: u32 = (libc::POLLERR | libc::POLLHUP | libc::POLLRDHUP) as u32;

#[derive(Debug, Default)]
struct News {
    /// Since this was last cleared, this much has come.
    count: Cell<u32>,
    /// There has been an error, or an end of one direction.
    has_ended: Cell<bool>,
    is_awaited: Cell<bool>,
    /// Who waited last. Kept from wait to wait, since it is nearly always the same.
    waker: RefCell<Option<Waker>>,
    failed: Cell<Option<i32>>,
    in_flight: RefCell<Option<Rc<Watcher>>>,
}

/// One operation, and who is to hear of it.
#[derive(Debug)]
struct Watcher {
    news: Weak<News>,
    operation: RefCell<Option<SinkHandle>>,
}

impl Watch {
    pub(super) fn new(reactor: Weak<Reactor>) -> Self {
        Watch {
            news: Rc::default(),
            reactor,
        }
    }

    /// Whether something has come since news were last [cleared](Self::clear_news).
    pub(super) fn has_news(&self) -> bool {
        self.news.count.get() > 0
    }

    /// Whether a socket that was found empty still is, as far as is known.
    ///
    /// An end or an error may come in the same piece of news as the last bytes. Those are received, the
    /// socket holds no more of them, and it has yet something to say: from then on it is always asked.
    pub(super) fn is_quiet(&self) -> bool {
        !self.has_news() && !self.news.has_ended.get()
    }

    /// To be called before the system call that looks for what has come.
    pub(super) fn clear_news(&self) {
        self.news.count.set(0);
    }

    /// Has `waker` woken by the next news.
    ///
    /// # Errors
    ///
    /// What the watch ended with, unless that was an ordinary end.
    pub(super) fn wait(&self, fd: RawFd, waker: &Waker) -> io::Result<()> {
        let reactor = self.reactor.upgrade().ok_or_else(executor_is_gone)?;
        if let Some(errno) = self.news.failed.take() {
            return Err(io::Error::from_raw_os_error(errno));
        }
        if !self.news.knows(waker) {
            // Cloned and dropped with nothing borrowed: both are code of others.
            let replaced = self.news.waker.replace(Some(waker.clone()));
            drop(replaced);
        }
        self.news.is_awaited.set(true);
        if self.news.in_flight.borrow().is_none() {
            self.begin(fd, &reactor);
        }
        Ok(())
    }

    /// Who waits, if nothing has come.
    pub(super) fn waiting(&self) -> Option<Waker> {
        if !self.news.is_awaited.get() {
            return None;
        }
        let waker = self.news.waker.take()?;
        let clone = waker.clone();
        self.news.waker.replace(Some(waker));
        Some(clone)
    }

    fn begin(&self, fd: RawFd, reactor: &Rc<Reactor>) {
        let watcher = Rc::new(Watcher {
            news: Rc::downgrade(&self.news),
            operation: RefCell::new(None),
        });
        // Errors and hang-ups of both sides are told of unasked.
        let events = libc::POLLIN | libc::POLLRDHUP;
        let operation = reactor.submit_to(PollMany { fd, events }, watcher.clone());
        *watcher.operation.borrow_mut() = Some(operation);
        *self.news.in_flight.borrow_mut() = Some(watcher);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.news.end();
        let waker = self.news.waker.take();
        panic::fenced(|| drop(waker));
    }
}

impl News {
    fn knows(&self, waker: &Waker) -> bool {
        let known = self.waker.borrow();
        known.as_ref().is_some_and(|known| known.will_wake(waker))
    }

    /// Gives the operation up.
    fn end(&self) {
        let watcher = self.in_flight.borrow_mut().take();
        if let Some(watcher) = watcher {
            let operation = watcher.operation.borrow_mut().take();
            drop(operation);
        }
    }
}

impl Sink for Watcher {
    type Item = io::Result<u32>;

    fn complete(&self, ready: io::Result<u32>, has_more: bool) {
        let Some(news) = self.news.upgrade() else {
            return;
        };
        // One that was given up has nothing to say: the next begins with what is there.
        if self.operation.borrow().is_none() {
            return;
        }
        match ready.map_err(|error| error.raw_os_error()) {
            Ok(events) => {
                if events & ENDS != 0 {
                    news.has_ended.set(true);
                }
            }
            Err(Some(libc::EINTR | libc::ECANCELED | libc::EAGAIN) | None) => {}
            Err(Some(errno)) => news.failed.set(Some(errno)),
        }
        news.count.set(news.count.get().saturating_add(1));
        if !has_more || news.count.get() > UNHEARD {
            news.end();
        }
        if news.is_awaited.replace(false)
            && let Some(waker) = news.waker.take()
        {
            wake_by_ref(&waker);
            // Unless it has let somebody else wait meanwhile.
            let other = news.waker.replace(Some(waker));
            if other.is_some() {
                let waker = news.waker.replace(other);
                drop(waker);
            }
        }
    }
}
