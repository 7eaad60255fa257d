//! How an [`Acceptor`] stops.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::Poll;

use super::{AcceptState, Acceptor, End};
use crate::reactor::budget;
use crate::sys::socket::is_readable;

impl Acceptor {
    /// Accepts no more. Returns the connections that were accepted by then and not claimed, when no
    /// operation on the listener is in flight. If one was cancelled for which the kernel may have woken
    /// nothing else, also in other processes, the connection that is there is among them.
    pub(in crate::net) async fn stop(&self) -> VecDeque<OwnedFd> {
        budget::consume().await;
        poll_fn(|cx| {
            // Cloned and dropped with nothing borrowed: both are user code.
            let waker = cx.waker().clone();
            let mut state = self.queue.state.borrow_mut();
            state.cancel();
            // The connection that is there, if one is owed. Once more, for as long as others take it first.
            let is_idle = matches!(state.accept, AcceptState::Idle);
            let looks = is_idle && state.owes_a_look && is_readable(self.queue.listener);
            if looks {
                self.queue.accept_one(&mut state);
            }
            let stopped = match state.accept {
                AcceptState::Idle => Poll::Ready(std::mem::take(&mut state.accepted)),
                _ => Poll::Pending,
            };
            let end = std::mem::replace(&mut state.end, End::Stopping(Some(waker)));
            let pollers = std::mem::take(&mut state.pollers);
            drop(state);
            drop((end, pollers));
            if looks {
                // It is cancelled when the kernel has looked, if it has found none.
                cx.waker().wake_by_ref();
            }
            stopped
        })
        .await
    }
}
