//! What the modules above ask of a paused clock, besides to be paused.

use std::future::poll_fn;
use std::task::Poll;

use super::{Reactor, current};
use crate::clock;

impl Reactor {
    /// The clock of the executor, which runs here, goes on.
    pub(crate) fn resume_clock(&self) {
        clock::resume();
        self.paused.wake_waiting();
    }
}

/// Waits until nothing is left to do at the time that the paused clock of the running executor
/// shows. Over at once if it is not paused.
pub(crate) async fn settled() {
    let reactor = current::current();
    let woken = reactor.upgrade().map(|it| it.paused.woken());
    poll_fn(|cx| match reactor.upgrade() {
        Some(it) if clock::is_paused() && Some(it.paused.woken()) == woken => {
            it.paused.wait(cx.waker());
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}
