//! The connections of a server: their limits, their panics, and how they finish.

mod builder;
mod error;
mod graceful;
mod watched;

use std::cell::Cell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use glommio::future;
use glommio::sync::{CancellationToken, Gate, Pass};
use glommio::timer::Timer;
use hyper::server::conn::{http1, http2};

pub use self::builder::ConnectionsBuilder;
pub use self::error::ConnectionError;
pub use self::graceful::Graceful;
use self::graceful::Upgraded;
use self::watched::Watched;
pub(crate) use self::watched::{ConnectionTasks, count_read};
use crate::{GlommioExecutor, GlommioTimer};

/// The connections of a server.
///
/// Each is [watched](Self::watch) while it is served: a client that does not begin is cut off, a
/// panic ends its own connection and nothing else, and a [shutdown](Self::shutdown) asks all of
/// them to finish: idle ones end at once, and the others when the requests that have begun are
/// answered.
///
/// Clones are the same connections.
///
/// # Panics
///
/// A panic in a handler, in the body of a response or in one of their destructors closes its
/// connection. It is logged by `tracing` at the level `error`, and [counted](Self::panics). With
/// HTTP/1 the client sees the end of the stream. With HTTP/2 the request is reset, no more are
/// taken, and those that have begun are answered before the connection closes. With
/// [`unwind_panics`](ConnectionsBuilder::unwind_panics), and for connections that are not watched,
/// the executor's [`PanicPolicy`](glommio::PanicPolicy) decides, as for any task.
///
/// # Examples
///
/// A shutdown with a limit: connections that have not finished by then are closed.
///
/// ```
/// # use glommio_hyper::Connections;
/// use std::time::Duration;
///
/// # glommio::LocalExecutor::default().run(async {
/// let connections = Connections::new();
/// let closed = connections.shutdown_within(Duration::from_secs(10)).await;
/// assert_eq!(closed, 0);
/// # });
/// ```
#[derive(Clone)]
pub struct Connections {
    shared: Rc<Shared>,
}

/// What all connections of a server have in common.
struct Shared {
    options: ConnectionsBuilder,
    unwinds: bool,
    /// They are to finish, and they are to be closed.
    is_ending: CancellationToken,
    is_over: CancellationToken,
    /// Those that a shutdown waits for.
    open: Gate,
    open_count: Cell<usize>,
    panics: Cell<u64>,
}

impl Shared {
    fn new(options: ConnectionsBuilder) -> Rc<Self> {
        Rc::new(Shared {
            unwinds: options.unwinds,
            options,
            is_ending: CancellationToken::new(),
            is_over: CancellationToken::new(),
            open: Gate::new(),
            open_count: Cell::new(0),
            panics: Cell::new(0),
        })
    }
}

impl Connections {
    /// No connections so far, with the [default](ConnectionsBuilder) limits.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Sets limits, and what a panic does.
    pub fn builder() -> ConnectionsBuilder {
        ConnectionsBuilder::new()
    }

    /// A server of HTTP/1 with the timers of the executor, and the
    /// [time for a handshake](ConnectionsBuilder::handshake_timeout) as its `header_read_timeout`.
    pub fn http1(&self) -> http1::Builder {
        let mut http = http1::Builder::new();
        http.timer(GlommioTimer);
        http.header_read_timeout(self.shared.options.handshake_timeout);
        http
    }

    /// A server of HTTP/2 with the timers of the executor, and with the
    /// [keep-alive](ConnectionsBuilder::keep_alive) of these connections.
    pub fn http2(&self, executor: GlommioExecutor) -> http2::Builder<GlommioExecutor> {
        let mut http = http2::Builder::new(executor);
        http.timer(GlommioTimer);
        if let Some(keep_alive) = self.shared.options.keep_alive {
            http.keep_alive_interval(keep_alive.interval)
                .keep_alive_timeout(keep_alive.timeout);
        }
        http
    }

    /// Serves `connection`: a future of its end, to be spawned as a task. The connection counts
    /// from this call on, until the future is done or dropped.
    ///
    /// Begun after a [shutdown](Self::shutdown) it is asked to finish at once, and is not waited
    /// for.
    ///
    /// # Errors
    ///
    /// Those of the connection, and the other ends that [`ConnectionError`] lists.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub fn watch<C, T, E>(
        &self,
        connection: C,
    ) -> impl Future<Output = Result<T, ConnectionError<E>>> + use<C, T, E>
    where
        C: Graceful<Output = Result<T, E>>,
    {
        let place = Place::new(Rc::clone(&self.shared));
        // In a box, since the future would hold it twice: as it comes, and where it is pinned.
        let connection = Box::pin(connection);
        async move {
            // First, so that it is dropped after the connection.
            let place = place;
            let shared = &place.shared;
            let mut watched = Watched::new(shared);
            let limit = shared.options.handshake_timeout;
            let limit = limit.filter(|_| C::HANDSHAKE_BYTES > 0);
            // In a box: with HTTP/1 there is none, and with HTTP/2 it soon is over.
            let mut handshake = limit.map(|limit| Box::pin(Timer::new(limit)));
            let mut connection = Some(connection);
            let mut ending = pin!(shared.is_ending.cancelled());
            let mut over = pin!(shared.is_over.cancelled());
            let mut is_told = false;
            let end = poll_fn(|cx| {
                let is_told_now =
                    !is_told && (watched.has_panicked() || ending.as_mut().poll(cx).is_ready());
                is_told |= is_told_now;
                let connection = &mut connection;
                let poll_connection = || {
                    let connection = connection.as_mut()?;
                    if is_told_now {
                        connection.as_mut().graceful_shutdown();
                    }
                    Some(connection.as_mut().poll(cx))
                };
                let poll = watched.poll(|| shared.contain(poll_connection));
                match poll.flatten() {
                    None => return Poll::Ready(Err(ConnectionError::Panicked)),
                    Some(Poll::Ready(end)) => {
                        return Poll::Ready(end.map_err(ConnectionError::Connection));
                    }
                    Some(Poll::Pending) => {}
                }
                if !is_told {
                    watched.await_panic(cx.waker());
                }
                if is_told && over.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(ConnectionError::ShutDown));
                }
                let Some(limit) = &mut handshake else {
                    return Poll::Pending;
                };
                let is_late = limit.as_mut().poll(cx).is_ready();
                match watched.bytes_read() {
                    Some(read) if read >= C::HANDSHAKE_BYTES => handshake = None,
                    Some(_) if is_late => {
                        return Poll::Ready(Err(ConnectionError::HandshakeTimeout));
                    }
                    None if is_late => handshake = None,
                    _ => {}
                }
                Poll::Pending
            })
            .await;
            // Destructors of a handler may panic as well.
            match shared.contain(|| connection = None) {
                Some(()) => end,
                None => Err(ConnectionError::Panicked),
            }
        }
    }

    /// Serves what a connection has become by an upgrade: a future of its end, to be spawned as a
    /// task. It counts as a connection, and its panics are contained. To learn of a shutdown it
    /// waits for [`ending`](Self::ending), too.
    ///
    /// To be called before the response that announces the upgrade, so that a shutdown does not
    /// miss it between both.
    ///
    /// # Errors
    ///
    /// Those of `future`, and the other ends that [`ConnectionError`] lists.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops `future`.
    pub fn watch_upgraded<F, T, E>(
        &self,
        future: F,
    ) -> impl Future<Output = Result<T, ConnectionError<E>>> + use<F, T, E>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.watch(Upgraded::new(future))
    }

    /// Asks all connections to finish, and waits until they have. Does not concern the listener:
    /// stop accepting before.
    ///
    /// A client decides how long that takes: one that does not take its response, or that speaks
    /// HTTP/2 and is silent, is waited for, as is one of HTTP/1 that has sent a part of a head,
    /// until a limit of the server applies. Here the limit is the caller's:
    /// [`shutdown_within`](Self::shutdown_within).
    ///
    /// # Cancel safety
    ///
    /// They are asked at the call, whether or not the future is polled. Given up, the wait can be
    /// begun again.
    pub fn shutdown(&self) -> impl Future<Output = ()> + use<> {
        self.shared.is_ending.cancel();
        let closed = self.shared.open.close();
        async move {
            // An error says that they have finished before.
            let _ = closed.await;
        }
    }

    /// Asks all connections to finish, as a [shutdown](Self::shutdown) does, and waits until they
    /// have, for `limit` at the most. Then their tasks are woken to close them, as are those of
    /// connections that come later.
    ///
    /// Returns how many had not finished.
    ///
    /// # Cancel safety
    ///
    /// They are asked at the call, whether or not the future is polled; the limit begins at the
    /// first poll. Given up before, it closes none.
    pub fn shutdown_within(&self, limit: Duration) -> impl Future<Output = usize> + use<> {
        let finished = self.shutdown();
        let shared = Rc::clone(&self.shared);
        async move {
            if future::timeout(limit, finished).await.is_ok() {
                return 0;
            }
            let left = shared.open_count.get();
            shared.is_over.cancel();
            left
        }
    }

    /// Whether connections were asked to finish.
    pub fn is_shut_down(&self) -> bool {
        self.shared.is_ending.is_cancelled()
    }

    /// Cancelled when connections are asked to finish, for those that have been upgraded, and for
    /// responses without an end. Cancelling it by hand shuts nothing down.
    pub fn ending(&self) -> CancellationToken {
        self.shared.is_ending.child_token()
    }

    /// Connections that a shutdown waits for.
    pub fn open(&self) -> usize {
        self.shared.open_count.get()
    }

    /// Panics so far that were contained.
    pub fn panics(&self) -> u64 {
        self.shared.panics.get()
    }
}

/// A connection that a shutdown waits for, and counts.
struct Place {
    shared: Rc<Shared>,
    /// `None` if it has begun after a shutdown.
    pass: Option<Pass>,
}

impl Place {
    fn new(shared: Rc<Shared>) -> Self {
        let pass = shared.open.enter().ok();
        let count = shared.open_count.get();
        shared.open_count.set(count + usize::from(pass.is_some()));
        Place { shared, pass }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let count = self.shared.open_count.get();
        let counted = usize::from(self.pass.is_some());
        self.shared.open_count.set(count - counted);
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("is_shut_down", &self.is_shut_down())
            .field("open", &self.open())
            .field("panics", &self.panics())
            .finish_non_exhaustive()
    }
}
