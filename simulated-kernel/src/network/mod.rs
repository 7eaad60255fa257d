//! The network of a simulation: nodes, links, and sockets that behave as those of Linux do when
//! they do not block.
//!
//! It is a state machine without clock, threads or system calls. Its owner tells it the time with
//! [`Network::advance`], which delivers what is due by then, and makes calls between that which
//! take no time.
//!
//! ```text
//!   calls ──▶ socket ──▶ tcp, udp ──▶ route: loss, latency, ... ──▶ queue of events
//!                │                                                       │ advance(now)
//!                └──▶ unix: at once                                      ▼
//!   take_changed ◀── socket ◀── tcp, udp ◀────────────────── delivery to a node
//! ```
//!
//! - The same calls with the same seed give the same results. Random numbers are drawn only for
//!   links that have something random, for ports and for first sequence numbers.
//! - Packets of a node to itself arrive within the call that sends them, as on Linux, and are never
//!   lost.
//! - A call on a socket that does not exist, or that vanished in a power cut, fails with `EBADF`.
//! - Addresses of IPv4 that IPv6 sockets see are mapped (`::ffff:a.b.c.d`), and inside are not.
//!
//! What differs from Linux: buffers count the bytes of streams alone, and those of TCP do not grow
//! with the connection; delayed acknowledgements, Nagle's algorithm and `SO_LINGER` with a time
//! above zero have no effect. Packets of TCP are never cut into fragments.
//!
//! Not simulated: urgent data, multicast, broadcast, routing tables, path MTU discovery,
//! keep-alives.
//!
//! Types are below, calls above. Each of these imports from those before it at most: `address`,
//! `readiness`; `kind`, `log`; `tcp`, one end of a connection; `packet`; `udp_socket`,
//! `unix_socket`; `socket`; `node`, `ports`, `routes`; and `state`, the [`Network`] that is made of
//! all that. The other files are its calls and steps, and know each other only as its methods.
#![forbid(unsafe_code)]

mod address;
mod advance;
mod bind;
mod calls;
mod establish;
mod faults;
mod hosts;
mod kind;
mod log;
mod node;
mod options;
mod packet;
mod ports;
mod readiness;
mod routes;
mod socket;
mod state;
mod tcp;
mod transfer;
mod transmit;
mod udp;
mod udp_socket;
mod unix;
mod unix_socket;

#[cfg(test)]
mod tests;

pub use address::{Address, Passed, Received, Result, SocketId, UnixName};
pub use kind::Kind;
pub use log::{Entry, Happening};
pub use routes::Link;
pub use state::Network;
