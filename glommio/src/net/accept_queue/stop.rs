//! How an [`Acceptor`] stops.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::Poll;

use super::{AcceptQueue, AcceptQueueState, AcceptState, Acceptor, End};
use crate::reactor::{AcceptOne, budget};
use crate::sys::socket::is_readable;

impl Acceptor {
    /// Accepts no more. Returns the connections that were accepted by then and not claimed, when no
    /// operation on the listener is in flight; with those that came while one was, for which the kernel may
    /// have woken nothing else, also in other processes.
    pub(in crate::net) async fn stop(&self) -> VecDeque<OwnedFd> {
        budget::consume().await;
        let (mut has_waited, mut looks_left) = (false, LOOKS_AT_STOP);
        poll_fn(|cx| {
            // Cloned and dropped with nothing borrowed: both are user code.
            let waker = cx.waker().clone();
            let mut state = self.queue.state.borrow_mut();
            has_waited |= !matches!(state.accept, AcceptState::Idle);
            state.cancel();
            let looks = has_waited && looks_left > 0 && self.queue.look_once_more(&mut state);
            let stopped = match state.accept {
                AcceptState::Idle => Poll::Ready(std::mem::take(&mut state.accepted)),
                _ => Poll::Pending,
            };
            let end = std::mem::replace(&mut state.end, End::Stopping(Some(waker)));
            let pollers = std::mem::take(&mut state.pollers);
            drop(state);
            drop((end, pollers));
            if looks {
                looks_left -= 1;
                // It is cancelled when the kernel has looked, if it has found none.
                cx.waker().wake_by_ref();
            }
            stopped
        })
        .await
    }
}

impl AcceptQueue {
    /// Has the connection accepted that is there, if one is, when nothing is in flight.
    fn look_once_more(&self, state: &mut AcceptQueueState) -> bool {
        let is_idle = matches!(state.accept, AcceptState::Idle);
        let named = self.this.upgrade().zip(self.reactor.upgrade());
        let named = named.filter(|_| is_idle && is_readable(self.listener));
        let Some((this, reactor)) = named else {
            return false;
        };
        let listener = self.listener;
        state.accept = AcceptState::One(reactor.submit_to(AcceptOne { listener }, this));
        true
    }
}

/// Connections that are accepted at most while a listener stops: more than its backlog.
const LOOKS_AT_STOP: usize = 4096;
