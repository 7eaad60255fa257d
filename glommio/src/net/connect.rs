//! Connecting a socket through the ring.

#![forbid(unsafe_code)]

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll};
use std::time::Instant;

use socket2::{SockAddr, Socket, Type};

use super::addr::{self, Addresses};
use crate::reactor::{Alarm, Op, Operation, Reactor, executor_is_gone};

/// A TCP connection to the first of `addresses` that accepts one, until `deadline`.
///
/// Dropped in the middle, it leaves no socket behind: that belongs to the operation, which is
/// cancelled.
pub(super) async fn tcp(
    reactor: &Weak<Reactor>,
    addresses: Addresses,
    deadline: Option<Instant>,
) -> io::Result<Socket> {
    let mut last_error = addr::empty();
    for address in addresses {
        match stream(reactor, &SockAddr::from(address), deadline).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last_error = error,
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
    }
    Err(last_error)
}

/// A stream connection to `address`, until `deadline`. As [`tcp`] when it is dropped.
///
/// Where the listener has no room for it (a Unix socket's; one of TCP leaves the client unanswered), the
/// kernel has a thread of its own wait, which the cancellation ends.
pub(super) async fn stream(
    reactor: &Weak<Reactor>,
    address: &SockAddr,
    deadline: Option<Instant>,
) -> io::Result<Socket> {
    loop {
        let socket = Socket::new(address.domain(), Type::STREAM, None)?;
        match connect(reactor, socket, address.clone(), deadline).await {
            // With a new socket: the interrupted attempt goes on in the old one.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Connects `socket` to `address`. The socket is closed if that fails.
async fn connect(
    reactor: &Weak<Reactor>,
    socket: Socket,
    address: SockAddr,
    deadline: Option<Instant>,
) -> io::Result<Socket> {
    let submitted = reactor
        .upgrade()
        .ok_or_else(executor_is_gone)?
        .submit(Op::Connect {
            socket: socket.into(),
            address: Box::new(address),
        });
    Connecting {
        operation: submitted,
        limit: deadline.map(|deadline| (deadline, Alarm::new(reactor.clone()))),
    }
    .await
}

struct Connecting {
    operation: Operation,
    limit: Option<(Instant, Alarm)>,
}

impl Future for Connecting {
    type Output = io::Result<Socket>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(result) = this.operation.poll_op(cx) {
            return Poll::Ready(result.map(|(_, op)| match op {
                Op::Connect { socket, .. } => Socket::from(socket),
                other => unreachable!("an operation comes back as it was submitted, not {other:?}"),
            }));
        }
        if let Some((deadline, alarm)) = &mut this.limit {
            if Instant::now() >= *deadline {
                return Poll::Ready(Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)));
            }
            if !alarm.watch(cx.waker()) {
                alarm.set(*deadline, cx.waker());
            }
        }
        Poll::Pending
    }
}
