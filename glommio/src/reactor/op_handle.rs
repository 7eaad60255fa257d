//! What a future holds of an operation in flight.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use super::Reactor;
use super::in_flight::{CompletionTarget, Polled};
use super::io_counters::OpCounter;
use super::op::{Op, Sink, SinkOp};
use super::user_data::OpKey;
use crate::noted::{Awaited, waits_for};
use crate::panic::{self, wake};
use crate::ring::{Outcome, Submission};
use crate::shares::TaskQueueHandle;
use crate::stats::Counted;

/// An operation under way: a future of its output.
///
/// Dropping it gives the operation up, as [`Op::ON_DROP`] says. Its memory stays until the kernel
/// has let go of it.
pub(crate) struct OpHandle<O> {
    named: Named,
    op: PhantomData<fn() -> O>,
}

/// An operation under way whose completions go to a sink. Dropping it gives the operation up.
#[derive(Debug)]
pub(crate) struct SinkHandle(Named);

/// An operation and where it is, until it has ended.
#[derive(Debug)]
struct Named {
    reactor: Weak<Reactor>,
    key: Option<OpKey>,
}

impl Reactor {
    /// Starts `op`; the kernel hears of it within the turn, or at once if half a ring of others
    /// waits.
    pub(crate) fn submit<O: Op>(self: &Rc<Self>, op: O) -> OpHandle<O> {
        OpHandle::new(self.start(op, CompletionTarget::Task(None), None))
    }

    /// As [`submit`](Self::submit), for an operation that a task of the queue `from` asks for and
    /// that the statistics count, if it succeeds.
    pub(crate) fn submit_counted<O: Op>(
        self: &Rc<Self>,
        op: O,
        counted: Counted,
        from: TaskQueueHandle,
    ) -> OpHandle<O> {
        let counter = self.driver.io_counters().open(counted, from);
        OpHandle::new(self.start(op, CompletionTarget::Task(None), Some(counter)))
    }

    /// Starts `op`, whose completions go to `sink`, also if the returned handle is dropped before.
    pub(crate) fn submit_to<O: SinkOp, S: Sink<Item = O::Item>>(
        self: &Rc<Self>,
        op: O,
        sink: Rc<S>,
    ) -> SinkHandle {
        SinkHandle(self.start(ForSink(op), CompletionTarget::Sink(sink), None))
    }

    fn start<O: Op>(
        self: &Rc<Self>,
        op: O,
        target: CompletionTarget,
        counter: Option<OpCounter>,
    ) -> Named {
        if self.driver.is_closing() {
            // A sink or a destructor goes on as if nothing were: the drain would never end.
            return Named {
                reactor: Weak::new(),
                key: Some(OpKey::NONE),
            };
        }
        let mut in_flight = self.driver.in_flight.borrow_mut();
        let key = in_flight.insert(op, target, counter);
        if O::FEATURE.is_some_and(|feature| !self.has(feature)) {
            in_flight.send_elsewhere(key);
        }
        drop(in_flight);
        self.preempt.submitted();
        self.driver.hand_over_batch();
        Named {
            reactor: Rc::downgrade(self),
            key: Some(key),
        }
    }
}

impl<O: Op> OpHandle<O> {
    fn new(named: Named) -> Self {
        OpHandle {
            named,
            op: PhantomData,
        }
    }

    /// Whether the kernel has not heard of it. Dropped now, it has no effect.
    pub(crate) fn is_queued(&self) -> bool {
        let named = self.named.reactor.upgrade().zip(self.named.key);
        named.is_some_and(|(reactor, key)| reactor.driver.in_flight.borrow().is_queued(key))
    }

    /// The waker that polled last, if the operation has not completed since.
    pub(crate) fn waiting(&self) -> Option<Waker> {
        let (reactor, key) = self.named.reactor.upgrade().zip(self.named.key)?;
        let waker = reactor.driver.in_flight.borrow_mut().take_waker(key)?;
        // Out of the table, for cloning and waking are user code.
        let clone = waker.clone();
        let missed = reactor.driver.in_flight.borrow_mut().put_waker(key, waker);
        missed.into_iter().for_each(wake);
        Some(clone)
    }
}

/// The operation's result, once the kernel is done with its memory; or `NotConnected` if the
/// executor is gone.
///
/// Panics if it is polled again after it was ready.
impl<O: Op> Future for OpHandle<O> {
    type Output = io::Result<O::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Named { reactor, key } = &mut self.named;
        let op_key = key.expect("an operation is not polled after its end");
        let Some(reactor) = reactor.upgrade() else {
            *key = None;
            return Poll::Ready(Err(executor_is_gone()));
        };
        let mut spare = None;
        loop {
            let mut in_flight = reactor.driver.in_flight.borrow_mut();
            let polled = in_flight.poll::<O>(op_key, cx.waker(), &mut spare);
            drop(in_flight);
            match polled {
                Polled::Ready(op, outcome) => {
                    *key = None;
                    return Poll::Ready(op.complete(outcome));
                }
                Polled::Pending => {
                    let OpKey { index, generation } = op_key;
                    return waits_for(Poll::Pending, || Awaited::Operation { index, generation });
                }
                Polled::WantsSpare => spare = Some(cx.waker().clone()),
                Polled::Elsewhere(job) => reactor.files().begin(|| job.run()),
            }
        }
    }
}

impl<O> fmt::Debug for OpHandle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpHandle").field(&self.named).finish()
    }
}

impl SinkHandle {
    /// Gives the operation up. Returns whether the kernel has heard of it: then its sink is told of
    /// the end.
    pub(crate) fn cancel(self) -> bool {
        let Named { reactor, key } = &self.0;
        let named = reactor.upgrade().zip(*key);
        named.is_some_and(|(reactor, key)| reactor.driver.in_flight.borrow().is_submitted(key))
    }
}

/// An operation for a sink, as the table keeps it. The sink takes its completions.
struct ForSink<O>(O);

impl<O: SinkOp> Op for ForSink<O> {
    type Output = ();

    const WAITS_FOR_DEVICE: bool = false;

    const PLAIN: Option<fn(&Self) -> Submission<'static>> = Some(|it| it.0.submission());

    fn submission(&mut self) -> Submission<'_> {
        self.0.submission()
    }

    fn complete(self, _outcome: Outcome) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Some(key) = self.key.take()
            && let Some(reactor) = self.reactor.upgrade()
        {
            let given_up = reactor.driver.in_flight.borrow_mut().abandon(key);
            panic::fenced(|| drop(given_up));
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
