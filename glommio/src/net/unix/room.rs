//! Sending a datagram to an address whose receiver has no room for it.
//!
//! Two things can be full: the send buffer of the socket, and the queue of the receiver. The kernel
//! reports room in the receiver's queue only to sockets that are connected to it: one that is not is
//! called writable all the time, and to wait for that and try again would be to spin. So another socket,
//! which sends nothing, is connected to the receiver and waited for in its place:
//!
//! ```text
//!             send ──done──▶ result
//!              ▲ │ would block
//!              │ ▼                 no
//!              │ is there room here? ──▶ wait for the socket itself ───┐
//!              │ │ yes                                                 │
//!              │ ▼                                                     │
//!              │ connect the scout to the address, wait for the scout ─┤
//!              └───────────────────────────────────────────────────────┘
//! ```
//!
//! The scout connects anew in every round, as another socket may have been bound to the address. It has no
//! address of its own, so nothing can reach it.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::net::datagram::{Datagram, timed_out};
use crate::net::nonblocking;
use crate::net::readiness::outcome;
use crate::reactor::deadline_after;

/// How often to try where the kernel does not tell. A socket that is connected to some other receiver than
/// this one is called full when that one is, whatever room there is. And there may be no scout: for want
/// of a descriptor, or because the receiver has just gone or taken a peer, which sending will say, too.
const RECHECK: Duration = Duration::from_millis(10);

/// Sends `buf` to `address`, for no longer than the write timeout.
pub(super) async fn send_to(
    datagram: &Datagram,
    buf: &[u8],
    address: &SockAddr,
) -> io::Result<usize> {
    let socket = datagram.socket();
    let mut send = || nonblocking::send_to(socket, buf, address);
    if let Some(done) = outcome(&mut send) {
        return done;
    }
    let length = datagram.write_timeout();
    let deadline = length.map(|length| deadline_after(Instant::now(), length));
    let scout = Socket::new(Domain::UNIX, Type::DGRAM, None);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let recheck = left.map_or(RECHECK, |left| left.min(RECHECK));
        if !nonblocking::is_writable(socket)? {
            datagram
                .until_writable(socket.as_raw_fd(), Some(recheck))
                .await?;
        } else if let Ok(scout) = &scout
            && scout.connect(address).is_ok()
        {
            datagram.until_writable(scout.as_raw_fd(), left).await?;
        } else {
            datagram.pause(recheck).await?;
        }
        if let Some(done) = outcome(&mut send) {
            return done;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(timed_out());
        }
    }
}
