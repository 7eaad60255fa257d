//! Finishing what was begun.

use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;

use glommio::sync::{CancellationToken, Gate};
use hyper::body::{Body, Incoming};
use hyper::rt::bounds::Http2ServerConnExec;
use hyper::rt::{Read, Write};
use hyper::server::conn::{http1, http2};
use hyper::service::HttpService;

/// The connections of a server, which finish together.
///
/// Each is [watched](Self::watch) while it is served. A [shutdown](Self::shutdown) asks all of them
/// to finish: idle ones end at once, and the others when the requests that have begun are answered.
///
/// Clones are the same connections.
///
/// # Examples
///
/// With a limit: those that have not finished by then are dropped with their tasks.
///
/// ```
/// # use glommio_hyper::Connections;
/// use std::time::Duration;
///
/// # glommio::LocalExecutor::default().run(async {
/// let connections = Connections::new();
/// let in_time = glommio::future::timeout(Duration::from_secs(10), connections.shutdown()).await;
/// assert!(in_time.is_ok());
/// # });
/// ```
#[derive(Clone)]
pub struct Connections {
    is_ending: CancellationToken,
    open: Rc<Gate>,
}

impl Connections {
    /// No connections so far.
    pub fn new() -> Self {
        Connections {
            is_ending: CancellationToken::new(),
            open: Rc::new(Gate::new()),
        }
    }

    /// Serves `connection`: a future of its end, to be spawned as a task. The connection counts
    /// from this call on, until the future is dropped.
    ///
    /// Begun after a [shutdown](Self::shutdown) it is asked to finish at once, and is not waited
    /// for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub fn watch<C: Graceful>(&self, connection: C) -> impl Future<Output = C::Output> + use<C> {
        let pass = self.open.enter().ok();
        let is_ending = self.is_ending.clone();
        async move {
            let _pass = pass;
            let mut connection = pin!(connection);
            let mut ending = pin!(is_ending.cancelled());
            let mut is_told = false;
            poll_fn(|cx| {
                if !is_told && ending.as_mut().poll(cx).is_ready() {
                    is_told = true;
                    connection.as_mut().graceful_shutdown();
                }
                connection.as_mut().poll(cx)
            })
            .await
        }
    }

    /// Asks all connections to finish, and waits until they have. Does not concern the listener:
    /// stop accepting before.
    ///
    /// A request whose head has come in part has begun: without a `header_read_timeout`, a client
    /// that sends no more of it is waited for.
    ///
    /// # Cancel safety
    ///
    /// They are asked at the call, whether or not the future is polled. Given up, the wait can be
    /// begun again.
    pub fn shutdown(&self) -> impl Future<Output = ()> + use<> {
        self.is_ending.cancel();
        let closed = self.open.close();
        async move {
            // An error says that they have finished before.
            let _ = closed.await;
        }
    }

    /// Whether connections were asked to finish.
    pub fn is_shut_down(&self) -> bool {
        self.is_ending.is_cancelled()
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
            .finish_non_exhaustive()
    }
}

/// A connection that can be asked to finish.
pub trait Graceful: Future {
    /// Takes no more requests, and ends when those that have begun are answered. The future goes on
    /// being polled.
    fn graceful_shutdown(self: Pin<&mut Self>);
}

impl<I, B, S> Graceful for http1::Connection<I, S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    I: Read + Write + Unpin + 'static,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        http1::Connection::graceful_shutdown(self);
    }
}

impl<I, B, S, E> Graceful for http2::Connection<I, S, E>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    I: Read + Write + Unpin + 'static,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    E: Http2ServerConnExec<S::Future, B>,
{
    fn graceful_shutdown(self: Pin<&mut Self>) {
        http2::Connection::graceful_shutdown(self);
    }
}
