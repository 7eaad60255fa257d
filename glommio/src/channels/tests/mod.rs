//! What threads share, under loom: all interleavings of these.

mod loom_broadcast;
mod loom_oneshot;
mod loom_shared_channel;
mod loom_spsc;
mod loom_watch;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::Notify;

/// Sleeps until it is woken, which loom follows: a wake-up that is lost is a deadlock.
struct Sleeper(Notify);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let sleeper = Arc::new(Sleeper(Notify::new()));
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        sleeper.0.wait();
    }
}

/// Polls once, as a `select` does, and gives up.
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Checks all interleavings with so many preemptions.
pub(super) fn bounded(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}
