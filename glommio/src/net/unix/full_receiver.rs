//! Sending a datagram to an address whose receiver's queue is full.
//!
//! Two things can be full: the send buffer of the socket, and the queue of the receiver. The kernel
//! reports space in the receiver's queue only to sockets that are connected to it. Any other socket
//! is always writable, and to wait for that and try again would be to spin. So another socket,
//! which sends nothing, is connected to the receiver and polled in its place:
//!
//! ```text
//!             send ──done──▶ result
//!              ▲ │ would block
//!              │ ▼                    yes
//!              │ is this socket full? ──▶ wait for this socket ────────┐
//!              │ │ no                                                  │
//!              │ ▼                                                     │
//!              │ connect the probe to the address, wait for the probe ─┤
//!              └───────────────────────────────────────────────────────┘
//! ```
//!
//! The probe connects anew in every round, as another socket may have been bound to the address. It
//! has no address of its own, so nothing can reach it.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{Domain, SockAddr, Type};

use crate::clock;
use crate::net::datagram::{self, Datagram, timed_out};
use crate::net::readiness::{outcome, outcome_at_once};
use crate::reactor::deadline_after;
use crate::sys::socket::{Socket, is_writable};

/// How often to try where the kernel does not report it. A socket that is connected to another
/// receiver than this one is full when that one is, whatever this one's queue holds. And there may
/// be no probe: for want of a descriptor, or because the receiver has just closed or taken a peer,
/// which sending reports, too.
const RECHECK: Duration = Duration::from_millis(10);

/// Sends `buf` to `address`, for no longer than the write timeout.
pub(super) async fn send_to(
    datagram: &Datagram,
    buf: &[u8],
    address: &SockAddr,
) -> io::Result<usize> {
    let socket = datagram.socket();
    let mut send = || datagram::send_to(socket, buf, address);
    if let Some(done) = outcome_at_once(&mut send).await {
        return done;
    }
    let length = datagram.write_timeout();
    let deadline = length.map(|length| deadline_after(clock::now(), length));
    let probe = Socket::new(Domain::UNIX, Type::DGRAM, None);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(clock::now()));
        let recheck = left.map_or(RECHECK, |left| left.min(RECHECK));
        if !is_writable(socket.as_raw_fd()) {
            datagram
                .until_writable(socket.as_raw_fd(), Some(recheck))
                .await?;
        } else if let Ok(probe) = &probe
            && probe.connect(address).is_ok()
        {
            datagram.until_writable(probe.as_raw_fd(), left).await?;
        } else {
            datagram.pause(recheck).await?;
        }
        if let Some(done) = outcome(&mut send) {
            return done;
        }
        if deadline.is_some_and(|deadline| clock::now() >= deadline) {
            return Err(timed_out());
        }
    }
}
