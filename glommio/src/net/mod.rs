//! TCP and Unix streams and listeners, UDP and Unix datagrams.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use glommio::net::{TcpListener, TcpStream};
//! use std::time::Duration;
//!
//! # glommio::LocalExecutor::default().run(async {
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! let mut client = TcpStream::connect(listener.local_addr()?).await?;
//! let mut server = listener.accept().await?;
//!
//! server.set_read_timeout(Some(Duration::from_secs(30)))?;
//! client.write_all(b"ping").await?;
//! let mut buffer = [0; 4];
//! server.read_exact(&mut buffer).await?;
//! assert_eq!(&buffer, b"ping");
//! # Ok::<_, glommio::GlommioError<()>>(())
//! # }).unwrap();
//! ```
//!
//! Streams implement `AsyncRead` and `AsyncWrite` of `futures-io`. Every socket belongs to the
//! executor it was made in and stays on its thread; an [`AcceptedTcpStream`] or
//! [`AcceptedUnixStream`] carries a new connection to another thread, a [`DetachedTcpStream`] or
//! [`DetachedUnixStream`] one in use.
//!
//! # How data moves
//!
//! ```text
//!   read / write / recv / send                      accept, connect
//!        │                                                │
//!        ▼            would block                         ▼
//!   system call ──────────────────▶ readiness ─────▶ driver
//!        ▲                               │
//!        └───────────────────────────────┘ ready: try again
//! ```
//!
//! Each read and write is a system call of its own that does not wait, straight between the socket
//! and the caller's slice. The [driver](crate::Driver) reports readiness only, and only after a call
//! would have blocked (or the last one took everything there was). With io_uring, connecting and
//! accepting are operations of their own. So a future that is dropped loses no data, and the kernel
//! never holds the caller's buffer beyond one call of `poll`.
//!
//! A read or write that finds the socket ready is one system call and nothing else; one that waits
//! adds an operation of the driver: with io_uring it is submitted with all others of the turn, with
//! epoll it is a system call. A TCP connection that is read often has one multishot poll instead
//! (Linux 6.1). A timeout costs one entry in the timer queue, and only for operations that wait.
//!
//! So that a peer that is always ready does not keep the thread, reads and writes count in the
//! cooperative budget of their task: when its slice is over, the next one suspends the task once,
//! before the system call. [`unconstrained`](crate::unconstrained) exempts a future from that.
//!
//! The families differ in addresses and options, and in little else. Unix sockets differ in that a
//! full receiver blocks its senders: a [`UnixDatagram`] that sends to a full receiver waits, and a
//! [`UnixStream`] that connects to a full listener tries again now and then. Neither takes a thread.

// What the families have in common is written once: `UnixStream` and `TcpStream` share one stream
// implementation, `UnixDatagram` and `UdpSocket` one datagram socket. Traits are implemented in the
// file of each type; methods that several types have are those of the macros in `methods`.
//
// Invariants:
//
// 1. No slice of a caller is known to the kernel beyond one call of `poll`.
// 2. Data leaves the kernel only in the system call whose result is returned, so a dropped future
//    has taken nothing with it. A connection that was accepted for a future that is gone waits for
//    the next one.
// 3. Nothing is in flight for a socket without a waiting task, except what a dropped future left, a
//    multishot poll, and a listener's accept until the end of the round.
// 4. Wakers are woken and dropped with nothing borrowed.

mod accept_limit;
mod accept_queue;
mod addr;
mod balance;
mod buffer;
mod connect;
mod datagram;
mod detached;
mod host_name;
mod incoming;
mod listener_methods;
mod methods;
mod multishot_poll;
mod options;
mod readiness;
mod stream;
mod tcp;
mod time_limit;
pub mod tls_record;
mod udp;
mod unix;

pub use accept_limit::{ConnectionLimit, ConnectionPermit};
pub use addr::lookup_host;
pub use balance::{BalancedTcpListener, ConnectionGuard, ShardListener, ShardLoad};
pub use buffer::{Buffered, NonBuffered, Preallocated, RxBuf};
pub use tcp::{AcceptedTcpStream, DetachedTcpStream, TcpListener, TcpStream};
pub use udp::{
    DatagramPool, DatagramSegments, Destination, Ecn, Pacer, ReceivedDatagrams, Segments, UdpSocket,
};
pub use unix::{
    AcceptedUnixStream, DetachedUnixStream, UCred, UnixDatagram, UnixListener, UnixStream,
};

#[doc(hidden)]
#[deprecated = "renamed to `ConnectionPermit`"]
pub type ConnectionPlace = ConnectionPermit;

/// What operations of this module return.
type Result<T> = crate::error::Result<T, ()>;
