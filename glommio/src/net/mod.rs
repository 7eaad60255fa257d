//! Sockets: streams and listeners over TCP and Unix domain sockets, and datagrams over UDP and Unix ones.
//!
//! What this room owns: the descriptors of its sockets, what waits for them, and their receive
//! buffers. Every socket belongs to the executor it was made in and stays on its thread; an
//! [`AcceptedTcpStream`] or [`AcceptedUnixStream`] is the form in which a connection travels.
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
//! Data moves only inside system calls that do not wait, straight between the socket and the caller's
//! slice. The ring is asked for readiness alone, and only after a call would have blocked (or the last
//! one took everything there was). A connection that is read often is watched (`watch.rs`) by one operation
//! from then on, in place of one for each wait. Connecting and accepting go through the ring as a whole.
//!
//! The families differ in addresses and options, and in little else: [`UnixStream`] and [`TcpStream`] are
//! one stream underneath, [`UnixDatagram`] and [`UdpSocket`] one datagram socket, and their public
//! faces are written once. What is special about Unix sockets is that receivers hold senders up. A
//! [`UnixDatagram`] that sends to a receiver without room waits for it without a thread; a
//! [`UnixStream`] that connects to a listener without room has one of the kernel's wait.
//!
//! Invariants:
//!
//! 1. No slice of a caller is known to the kernel beyond one call of `poll`.
//! 2. Data leaves the kernel only in the system call whose result is returned, so a dropped future
//!    has taken nothing with it. A connection that was accepted for a future that is gone waits for
//!    the next one.
//! 3. Nothing is in flight for a socket that nobody waits for, but for what a dropped future left, a
//!    watch, and a listener's order until the end of the round.
//! 4. Wakers are woken and dropped with nothing borrowed.
//!
//! Cost: a read or write that finds the socket ready is one system call and nothing else; one that
//! waits adds an operation of the reactor, handed over with all others of the turn, or nothing where the
//! socket is watched. A timeout costs one `rearm` in the timer queue, and only for operations that wait.

mod accept_queue;
mod addr;
mod buffer;
mod connect;
mod datagram;
mod face;
mod host_name;
mod incoming;
mod nonblocking;
mod options;
mod readiness;
mod stream;
mod tcp;
mod time_limit;
mod udp;
mod unix;
mod watch;

pub use buffer::{Buffered, NonBuffered, Preallocated, RxBuf};
pub use tcp::{AcceptedTcpStream, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{AcceptedUnixStream, UnixDatagram, UnixListener, UnixStream};

/// What operations of this room return.
type Result<T> = crate::error::Result<T, ()>;
