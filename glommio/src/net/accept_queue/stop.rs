//! How an [`Acceptor`] stops.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::Poll;

use super::{AcceptState, Acceptor, End};
use crate::reactor::budget;

impl Acceptor {
    /// Accepts no more. Returns the connections that were accepted by then and not claimed, when no
    /// operation on the listener is in flight.
    pub(in crate::net) async fn stop(&self) -> VecDeque<OwnedFd> {
        budget::consume().await;
        poll_fn(|cx| {
            // Cloned and dropped with nothing borrowed: both are user code.
            let waker = cx.waker().clone();
            let mut state = self.queue.state.borrow_mut();
            state.cancel();
            let stopped = match state.accept {
                AcceptState::Idle => Poll::Ready(std::mem::take(&mut state.accepted)),
                _ => Poll::Pending,
            };
            let end = std::mem::replace(&mut state.end, End::Stopping(Some(waker)));
            let pollers = std::mem::take(&mut state.pollers);
            drop(state);
            drop((end, pollers));
            stopped
        })
        .await
    }
}
