//! Connecting a socket: one of TCP through the ring, one of the Unix domain by system calls.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::future::{Future, poll_fn};
use std::io;
use std::net::ToSocketAddrs;
use std::rc::Weak;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Type};

use super::addr;
use super::time_limit::pause;
use crate::clock;
use crate::reactor::{Connect, Reactor, budget, executor_is_gone};
use crate::sys::socket::Socket;
use crate::timer::{Limit, Limited, Timeout};

/// What is done to a new socket before it connects.
pub(super) type Prepare = fn(&Socket) -> io::Result<()>;

/// A TCP connection to the first address of `host` that accepts one, until `deadline`.
///
/// The limit covers the lookup of a name, too. What is left of the time is divided evenly among the
/// addresses that are left, so that one that does not answer leaves time for the next.
///
/// Dropped in the middle, it leaves no socket behind: that belongs to the operation, which is
/// cancelled.
pub(super) async fn tcp(
    reactor: &Weak<Reactor>,
    host: impl ToSocketAddrs,
    deadline: Option<Instant>,
    prepare: Prepare,
) -> io::Result<Socket> {
    let addresses = until(deadline, addr::all(reactor, host)).await;
    let addresses = budget::checked(addresses).await?;
    let mut last_error = addr::empty();
    let mut left = addresses.clone().count() as u32;
    for address in addresses {
        let now = clock::now();
        if left > 1 && deadline.is_some_and(|deadline| now >= deadline) {
            return Err(timed_out());
        }
        let share = deadline.map(|deadline| now + deadline.saturating_duration_since(now) / left);
        match stream(reactor, &SockAddr::from(address), share, prepare).await {
            Ok(socket) => return Ok(socket),
            Err(error) => last_error = error,
        }
        left -= 1;
    }
    budget::checked(Err(last_error)).await
}

/// A connection to the Unix socket at `address`.
///
/// There is room in the listener's backlog, or there is not, and the kernel reports to no one when
/// there is: a connect that waits for it blocks a thread, of the ring's workers if it goes through
/// the ring. So it is tried again after a time, which grows.
pub(super) async fn unix(reactor: &Weak<Reactor>, address: &SockAddr) -> io::Result<Socket> {
    const LONGEST_WAIT: Duration = Duration::from_millis(50);
    poll_fn(|cx| budget::poll_leave(cx)).await;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let mut wait = Duration::from_millis(1);
    while let Err(error) = socket.connect(address) {
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => {
                pause(reactor, wait).await?;
                wait = (2 * wait).min(LONGEST_WAIT);
            }
            _ => return Err(error),
        }
    }
    budget::spend();
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// A stream connection to `address`, until `deadline`. As [`tcp`] when it is dropped.
async fn stream(
    reactor: &Weak<Reactor>,
    address: &SockAddr,
    deadline: Option<Instant>,
    prepare: Prepare,
) -> io::Result<Socket> {
    loop {
        let socket = Socket::new(address.domain(), Type::STREAM, None);
        let socket = budget::checked(socket).await?;
        prepare(&socket)?;
        let address = Box::new(address.clone());
        let connect = Connect { socket, address };
        let running = reactor.upgrade();
        let submitted = running.ok_or_else(executor_is_gone)?.submit(connect);
        match until(deadline, submitted).await {
            // With a new socket: the interrupted attempt goes on in the old one.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// For a socket that connects as it is.
pub(super) fn plain(_: &Socket) -> io::Result<()> {
    Ok(())
}

/// What `future` gives if it is ready by `deadline`, else an error. It is polled once at least.
async fn until<T>(
    deadline: Option<Instant>,
    future: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let Some(deadline) = deadline else {
        return future.await;
    };
    let in_time = |limited: Limited<_>| limited.unwrap_or_else(|_| Err(timed_out()));
    Timeout::new(future, Limit::At(deadline), in_time).await
}

fn timed_out() -> io::Error {
    io::Error::from_raw_os_error(libc::ETIMEDOUT)
}
