//! Sockets: streams and listeners over TCP and Unix domain sockets, and datagrams over UDP and Unix
//! ones.
//!
//! Every socket belongs to the executor it was made in and stays on its thread; an
//! [`AcceptedTcpStream`] or [`AcceptedUnixStream`] carries a connection to another thread.
//!
//! ```text
//!   read / write / recv / send                      accept, connect
//!        │                                                │
//!        ▼            would block                         ▼
//!   system call ──────────────────▶ readiness ─────▶ reactor (ring)
//!        ▲                               │
//!        └───────────────────────────────┘ ready: try again
//! ```
//!
//! Data moves only inside system calls that do not wait, straight between the socket and the
//! caller's slice. The ring reports readiness only, and only after a call would have blocked (or
//! the last one took everything there was). A connection that is read often has one multishot poll
//! (`multishot_poll.rs`) from then on, in place of one operation for each wait. Connecting and
//! accepting go through the ring as a whole.
//!
//! The families differ in addresses and options, and in little else: [`UnixStream`] and
//! [`TcpStream`] share one stream implementation, [`UnixDatagram`] and [`UdpSocket`] one datagram
//! socket, and their public methods are written once. Unix sockets differ in that a full receiver
//! blocks its senders. A [`UnixDatagram`] that sends to a full receiver waits without a thread; a
//! [`UnixStream`] that connects to a full listener waits on a worker thread of the kernel.
//!
//! Invariants:
//!
//! 1. No slice of a caller is known to the kernel beyond one call of `poll`.
//! 2. Data leaves the kernel only in the system call whose result is returned, so a dropped future
//!    has taken nothing with it. A connection that was accepted for a future that is gone waits for
//!    the next one.
//! 3. Nothing is in flight for a socket without a waiting task, except what a dropped future left,
//!    a multishot poll, and a listener's accept until the end of the round.
//! 4. Wakers are woken and dropped with nothing borrowed.
//!
//! Cost: a read or write that finds the socket ready is one system call and nothing else; one that
//! waits adds an operation of the reactor, submitted with all others of the turn, or nothing where
//! the socket has a multishot poll. A timeout costs one `rearm` in the timer queue, and only for
//! operations that wait.

mod accept_queue;
mod addr;
mod buffer;
mod connect;
mod datagram;
mod face;
mod host_name;
mod incoming;
mod multishot_poll;
mod nonblocking;
mod options;
mod readiness;
mod stream;
mod tcp;
mod time_limit;
pub mod tls_record;
mod udp;
mod unix;

pub use buffer::{Buffered, NonBuffered, Preallocated, RxBuf};
pub use tcp::{AcceptedTcpStream, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{AcceptedUnixStream, UnixDatagram, UnixListener, UnixStream};

/// What operations of this module return.
type Result<T> = crate::error::Result<T, ()>;
