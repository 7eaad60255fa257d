//! What a future holds of an operation in flight.

use std::io;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use super::accounts::Account;
use super::in_flight::{Listener, Polled};
use super::op::{Op, OpKey, Sink};
use super::{Reactor, wake};
use crate::panic;
use crate::shares::TaskQueueHandle;
use crate::stats::{Counted, IoStats};

/// An operation under way. Dropping it gives the operation up: what the kernel does not have yet is
/// forgotten, the rest is cancelled, and its memory stays until the kernel has let go of it.
#[derive(Debug)]
pub(crate) struct Operation {
    reactor: Weak<Reactor>,
    key: Option<OpKey>,
}

impl Reactor {
    /// Starts `op`; the kernel hears of it within the turn, or at once if half a ring of others waits.
    pub(crate) fn submit(self: &Rc<Self>, op: Op) -> Operation {
        self.start(op, Listener::Task(None), None)
    }

    /// As [`submit`](Self::submit), for an operation that a task of the queue `from` asks for and that the
    /// statistics count, if it succeeds.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "sockets are not counted, and files are not here yet"
        )
    )]
    pub(crate) fn submit_counted(
        self: &Rc<Self>,
        op: Op,
        counted: Counted,
        from: TaskQueueHandle,
    ) -> Operation {
        let account = self.in_flight.borrow_mut().accounts().open(counted, from);
        self.start(op, Listener::Task(None), Some(account))
    }

    /// Starts `op`, whose completions go to `sink`, also if the returned guard is dropped before. Only
    /// a sink takes those of an operation that completes many times.
    pub(crate) fn submit_to(self: &Rc<Self>, op: Op, sink: Rc<dyn Sink>) -> Operation {
        self.start(op, Listener::Sink(sink), None)
    }

    /// The counted operations of the executor since this was last called.
    pub(crate) fn take_io_stats(&self) -> IoStats {
        self.in_flight.borrow_mut().accounts().take()
    }

    /// The counted operations of a task queue since this was last called.
    pub(crate) fn take_queue_io_stats(&self, queue: TaskQueueHandle) -> IoStats {
        self.in_flight.borrow_mut().accounts().take_queue(queue)
    }

    /// The task queue is no more: nobody will ask for its account.
    pub(crate) fn forget_queue(&self, queue: TaskQueueHandle) {
        self.in_flight.borrow_mut().accounts().forget(queue);
    }

    fn start(self: &Rc<Self>, op: Op, listener: Listener, account: Option<Account>) -> Operation {
        if self.is_closing.get() {
            // A sink or a destructor goes on as if nothing were: the drain would never end.
            return Operation {
                reactor: Weak::new(),
                key: Some(OpKey::NONE),
            };
        }
        let mut in_flight = self.in_flight.borrow_mut();
        let key = in_flight.insert(op, listener, account);
        // Many at once do not wait for the end of the poll: the kernel gets half a ring at a time. One that it
        // refuses, short of memory, goes with the next.
        let is_batch = in_flight
            .queued()
            .is_multiple_of((self.ring.entries() / 2).max(1));
        drop(in_flight);
        self.preempt.submitted();
        if is_batch {
            self.hand_over();
        }
        Operation {
            reactor: Rc::downgrade(self),
            key: Some(key),
        }
    }

    fn abandon(&self, key: OpKey) {
        let given_up = self.in_flight.borrow_mut().abandon(key);
        panic::fenced(|| drop(given_up));
    }
}

impl Operation {
    /// The result with the operation's memory, once the kernel is done with both.
    ///
    /// # Panics
    ///
    /// Panics if called again after it was ready.
    pub(crate) fn poll_op(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(u32, Op)>> {
        let key = self.key.expect("an operation is not polled after its end");
        let Some(reactor) = self.reactor.upgrade() else {
            self.key = None;
            return Poll::Ready(Err(executor_is_gone()));
        };
        let mut spare = None;
        loop {
            let polled = reactor
                .in_flight
                .borrow_mut()
                .poll(key, cx.waker(), &mut spare);
            match polled {
                Polled::Ready(outcome, op) => {
                    self.key = None;
                    return Poll::Ready(outcome.result().map(|value| (value, op)));
                }
                Polled::Pending => return Poll::Pending,
                Polled::WantsSpare => spare = Some(cx.waker().clone()),
            }
        }
    }

    /// Gives the operation up. Returns whether the kernel has heard of it: then its sink is told of the end.
    pub(crate) fn cancel(self) -> bool {
        let named = self.reactor.upgrade().zip(self.key);
        named.is_some_and(|(reactor, key)| reactor.in_flight.borrow().is_submitted(key))
    }

    /// Who polled last, if the operation has not completed since.
    pub(crate) fn waiting(&self) -> Option<Waker> {
        let (reactor, key) = self.reactor.upgrade().zip(self.key)?;
        let waker = reactor.in_flight.borrow_mut().take_waker(key)?;
        // Out of the table, for cloning and waking are code of others.
        let clone = waker.clone();
        let missed = reactor.in_flight.borrow_mut().put_waker(key, waker);
        missed.into_iter().for_each(wake);
        Some(clone)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if let Some(key) = self.key.take()
            && let Some(reactor) = self.reactor.upgrade()
        {
            reactor.abandon(key);
        }
    }
}

/// What operations end with when their executor was dropped before.
pub(crate) fn executor_is_gone() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the executor that this object belongs to is gone",
    )
}
