//! What a runtime must offer to be measured: the vocabulary of the workloads.
//!
//! ```text
//!   cases/*.rs  ──▶  trait Runtime  ◀──  one thin adapter per crate
//! ```
//!
//! A workload is generic over [`Runtime`] and so is compiled once per crate from one source. Adapters hold no
//! logic of their own: each method is the call a user of that crate would write.
//!
//! Streams own their buffers, since some runtimes want them by value while an operation is in the kernel; a
//! workload only says how many bytes travel.

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use crate::machine::{Placement, Side};

/// Waits for an executor that [`Runtime::start`] has started, and takes its result.
pub type Join<T> = Box<dyn FnOnce() -> T>;

/// A single-threaded runtime: executor, tasks, timers.
pub trait Runtime: Sized + 'static {
    /// A spawned task, resolving to its output.
    type Task<T: 'static>: Future<Output = T> + 'static;
    /// A sleep that has not begun before it is first polled, or has: both are fine here.
    type Timer: Future + 'static;

    /// Builds an executor with default settings on this thread, runs `future`, drops the executor.
    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static;

    /// Starts an executor with default settings on a thread of its own, to run what `make` makes there.
    fn start<F, T>(make: impl FnOnce() -> F + Send + 'static) -> Join<T>
    where
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let thread = thread::spawn(|| Self::run(async { make().await }));
        Box::new(|| thread.join().expect("workloads do not panic"))
    }

    /// Spawns onto the executor that runs on this thread.
    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Self::Task<T>;

    /// Spawns a detached task.
    fn spawn_detached(future: impl Future<Output = ()> + 'static);

    /// Lets every other runnable task run once.
    fn yield_now() -> impl Future<Output = ()>;

    /// A timer that expires `delay` from now.
    fn timer(delay: Duration) -> Self::Timer;

    /// Waits for `future`, at most for `limit`. The workloads never let it run into the limit.
    fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> impl Future<Output = T>;
}

/// Runtimes with sockets.
pub trait Network: Runtime {
    /// A listening TCP socket.
    type Listener: Listener<Stream = Self::Stream> + 'static;
    /// A connected TCP socket with its buffer.
    type Stream: Stream + 'static;
    /// A UDP socket with its buffer.
    type Datagram: Datagram + 'static;

    /// Listens on a free loopback port.
    fn listen() -> Self::Listener;

    /// Connects, without Nagle's delay, with buffers of `buffer_bytes` in either direction.
    fn connect(address: SocketAddr, buffer_bytes: usize) -> impl Future<Output = Self::Stream>;

    /// Binds a UDP socket to a free loopback port, with buffers of `buffer_bytes` in either direction.
    fn bind_datagram(buffer_bytes: usize) -> Self::Datagram;
}

/// A listening TCP socket.
pub trait Listener {
    /// What it accepts.
    type Stream;
    /// Where it listens.
    fn address(&self) -> SocketAddr;
    /// Accepts one connection, without Nagle's delay, with buffers of `buffer_bytes` in either direction.
    fn accept(&self, buffer_bytes: usize) -> impl Future<Output = Self::Stream>;
}

/// A connected TCP socket that owns its buffer.
pub trait Stream {
    /// Bounds each read from now on; no read of a workload takes that long.
    fn set_read_timeout(&mut self, limit: Duration);
    /// Sends the first `bytes` of the buffer, all of them. False when the peer is gone.
    fn send(&mut self, bytes: usize) -> impl Future<Output = bool>;
    /// Receives into the buffer until it has `bytes` more. False when the peer is gone.
    fn receive(&mut self, bytes: usize) -> impl Future<Output = bool>;
    /// One read of whatever is there, up to the buffer's size. Zero when the peer is gone.
    fn receive_some(&mut self) -> impl Future<Output = usize>;
}

/// A UDP socket that owns its buffer.
pub trait Datagram {
    /// Where it is bound.
    fn address(&self) -> SocketAddr;
    /// Fixes the peer.
    fn connect(&mut self, peer: SocketAddr) -> impl Future<Output = ()>;
    /// Sends the first `bytes` of the buffer to the peer.
    fn send(&mut self, bytes: usize) -> impl Future<Output = ()>;
    /// Receives one datagram.
    fn receive(&mut self) -> impl Future<Output = usize>;
    /// Sends the first `bytes` of the buffer to `peer`, whatever the connected peer is.
    fn send_to(&mut self, bytes: usize, peer: SocketAddr) -> impl Future<Output = ()>;
    /// Receives one datagram, and returns its sender.
    fn receive_from(&mut self) -> impl Future<Output = (usize, SocketAddr)>;
}

/// Runtimes in which a task can go to the back of the line by waking itself ([`Runtime::yield_now`] does), and
/// that have more ways to yield.
pub trait Cooperative: Runtime {
    /// Gives the executor itself a turn, where [`Runtime::yield_now`] gives one to the neighbours.
    fn yield_queue() -> impl Future<Output = ()>;
    /// Yields when the time slice or the budget is used up, else costs next to nothing.
    fn yield_if_needed() -> impl Future<Output = ()>;
}

/// Runtimes in which a timed action can be cancelled and moved from outside.
pub trait Actions: Runtime {
    /// A background task that waits for a deadline, then runs an (empty) action.
    type Action;
    /// Arms an action that does nothing, `delay` from now.
    fn action(delay: Duration) -> Self::Action;
    /// Cancels it and waits until it is gone.
    fn cancel(action: Self::Action) -> impl Future<Output = ()>;
    /// Cancels it without waiting.
    fn destroy(action: Self::Action);
    /// Moves its deadline to `delay` from now.
    fn rearm_in(action: &Self::Action, delay: Duration);
}

/// Runtimes whose executors can be told to wake late, and once for many timers.
pub trait Slack: Runtime {
    /// As [`Runtime::run`], in an executor that may fire timers up to `slack` late.
    fn run_with_slack<F: Future + 'static>(slack: Duration, future: F) -> F::Output
    where
        F::Output: 'static;
}

/// Two executors in conversation, each on the CPU of its side; gives what the caller has found.
pub fn converse<R: Runtime, T: Send + 'static>(
    placement: Placement,
    answer: impl AsyncFnOnce() + Send + 'static,
    call: impl AsyncFnOnce() -> T + Send + 'static,
) -> T {
    let answerer = R::start(move || async move {
        placement.bind(Side::Answerer);
        answer().await;
    });
    let caller = R::start(move || async move {
        placement.bind(Side::Caller);
        call().await
    });
    let found = caller();
    answerer();
    found
}

/// A task whose handle also says whether it has panicked, which workloads do not.
pub struct Joined<J>(pub J);

impl<T, E: Debug, J: Future<Output = Result<T, E>> + Unpin> Future for Joined<J> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let joined = Pin::new(&mut self.0).poll(context);
        joined.map(|output| output.expect("workloads do not panic"))
    }
}

/// Wakes its own task once and suspends once: a yield for runtimes without one of their own.
pub async fn wake_self() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits for `read`, for `limit` at most if there is one.
pub async fn within<R: Runtime, T>(limit: Option<Duration>, read: impl Future<Output = T>) -> T {
    match limit {
        None => read.await,
        Some(limit) => R::timeout(limit, read).await,
    }
}

/// `TcpListener`, `TcpStream` and `UdpSocket` of a peer, around those of its crate, with the memory for their operations.
/// `accepted` is what its listener gives, and `socket` what a stream is made of.
#[macro_export]
macro_rules! sockets {
    ($listener:ty, $stream:ty, $datagram:ty, $accepted:pat => $socket:ident) => {
        /// Listens.
        pub struct TcpListener($listener);

        impl $crate::Listener for TcpListener {
            type Stream = TcpStream;

            fn address(&self) -> ::std::net::SocketAddr {
                self.0.local_addr().expect("a bound socket has an address")
            }

            async fn accept(&self, buffer_bytes: usize) -> TcpStream {
                let $accepted = self.0.accept().await.expect("a client connects");
                TcpStream::new($socket, buffer_bytes)
            }
        }

        /// A connection, and the buffer of each operation.
        pub struct TcpStream {
            socket: $stream,
            buffer: Vec<u8>,
            /// Of a crate whose sockets have none.
            #[allow(dead_code)]
            read_timeout: Option<::std::time::Duration>,
        }

        impl TcpStream {
            fn new(socket: $stream, buffer_bytes: usize) -> Self {
                socket.set_nodelay(true).expect("TCP has the option");
                Self {
                    socket,
                    buffer: vec![7; buffer_bytes],
                    read_timeout: None,
                }
            }
        }

        /// A socket, and the buffer of each operation.
        pub struct UdpSocket {
            socket: $datagram,
            buffer: Vec<u8>,
        }
    };
}

/// [`Datagram`] for a type with a `socket` that has the methods of the standard library's, to be awaited, and a
/// `buffer`.
#[macro_export]
macro_rules! datagrams {
    ($socket:ident) => {
        impl $crate::Datagram for $socket {
            fn address(&self) -> ::std::net::SocketAddr {
                let address = self.socket.local_addr();
                address.expect("a bound socket has an address")
            }

            async fn connect(&mut self, peer: ::std::net::SocketAddr) {
                self.socket.connect(peer).await.expect("loopback is up");
            }

            async fn send(&mut self, bytes: usize) {
                let sent = self.socket.send(&self.buffer[..bytes]);
                sent.await.expect("loopback is up");
            }

            async fn receive(&mut self) -> usize {
                let received = self.socket.recv(&mut self.buffer);
                received.await.expect("the peer is bound")
            }

            async fn send_to(&mut self, bytes: usize, peer: ::std::net::SocketAddr) {
                let sent = self.socket.send_to(&self.buffer[..bytes], peer);
                sent.await.expect("loopback is up");
            }

            async fn receive_from(&mut self) -> (usize, ::std::net::SocketAddr) {
                let received = self.socket.recv_from(&mut self.buffer);
                received.await.expect("the socket is bound")
            }
        }
    };
}
