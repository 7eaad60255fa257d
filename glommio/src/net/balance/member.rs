//! One executor's place among those that share a listener.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use crate::net::tcp::AcceptedTcpStream;
use crate::panic::{fenced, wake};
use crate::reactor::budget;

/// What is known of an executor when a connection is given to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardLoad {
    /// The number with which it has [joined](crate::net::BalancedTcpListener::join).
    pub shard: usize,
    /// How many [`ConnectionGuard`]s of it there are, with those of connections on their way to it.
    pub connections: usize,
}

/// One executor that shares a listener.
pub(super) struct Member {
    shard: usize,
    connections: AtomicUsize,
    /// As the user has said last.
    pub(super) weight: AtomicU64,
    /// How often it was chosen, in virtual time; changed under the lock of all members.
    pub(super) turn: AtomicU64,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    connections: VecDeque<Placed>,
    waiting: Option<Waker>,
    is_closed: bool,
}

/// How many connections in an inbox are a reason to give the next one to another member.
pub(super) const INBOX_FULL: usize = 16;

/// A connection, and the count of the executor it was given to.
pub(super) type Placed = (AcceptedTcpStream, ConnectionGuard);

impl Member {
    pub(super) fn new(shard: usize) -> Self {
        Member {
            shard,
            connections: AtomicUsize::new(0),
            weight: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            inbox: Mutex::default(),
        }
    }

    pub(super) fn load(&self) -> ShardLoad {
        ShardLoad {
            shard: self.shard,
            connections: self.connections.load(Ordering::Relaxed),
        }
    }

    pub(super) fn poll_inbox(&self, cx: &mut Context<'_>) -> Poll<Placed> {
        ready!(budget::poll_leave(cx));
        // Cloned and dropped with nothing locked: both are user code.
        let waker = cx.waker().clone();
        let mut inbox = lock(&self.inbox);
        if let Some(placed) = inbox.connections.pop_front() {
            drop(inbox);
            budget::spend();
            return Poll::Ready(placed);
        }
        let replaced = inbox.waiting.replace(waker);
        drop(inbox);
        drop(replaced);
        Poll::Pending
    }

    /// Whether it has not taken what it was given for long, or much has come at a time.
    pub(super) fn is_full(&self) -> bool {
        lock(&self.inbox).connections.len() >= INBOX_FULL
    }

    /// What is not taken any more. From here on nothing is put in.
    pub(super) fn close_inbox(&self) -> VecDeque<Placed> {
        let mut inbox = lock(&self.inbox);
        inbox.is_closed = true;
        let connections = mem::take(&mut inbox.connections);
        let waiting = inbox.waiting.take();
        drop(inbox);
        fenced(|| drop(waiting));
        connections
    }
}

/// Counts a connection as open on the executor that it was given to, until it is dropped.
///
/// It may be dropped on any thread.
pub struct ConnectionGuard {
    pub(super) member: Arc<Member>,
}

impl ConnectionGuard {
    pub(super) fn new(member: &Arc<Member>) -> Self {
        member.connections.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard {
            member: member.clone(),
        }
    }

    /// Puts `stream` into the inbox of the guard's member; gives it back if that has left.
    pub(super) fn send(guard: Self, stream: AcceptedTcpStream) -> Option<AcceptedTcpStream> {
        let member = guard.member.clone();
        let mut inbox = lock(&member.inbox);
        if inbox.is_closed {
            return Some(stream);
        }
        inbox.connections.push_back((stream, guard));
        let waiting = inbox.waiting.take();
        drop(inbox);
        waiting.into_iter().for_each(wake);
        None
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.member.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl_debug! { ConnectionGuard, it: shard: it.member.shard; .. }

/// No code of the user runs under these locks, and none of ours panics.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
