//! What is to hold for all connections of a server.

use std::time::Duration;

use super::{Connections, Shared};

/// Limits of a server's [`Connections`], and what a panic does.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use glommio_hyper::{Connections, GlommioExecutor};
///
/// let connections = Connections::builder()
///     .handshake_timeout(Duration::from_secs(5))
///     .keep_alive(Duration::from_secs(30), Duration::from_secs(10))
///     .build();
/// let http = connections.http2(GlommioExecutor::new());
/// # drop(http);
/// ```
#[derive(Clone, Debug)]
#[must_use = "`build` makes the connections"]
pub struct ConnectionsBuilder {
    pub(super) handshake_timeout: Option<Duration>,
    pub(super) keep_alive: Option<KeepAlive>,
    pub(super) unwinds: bool,
}

/// When a silent client of HTTP/2 is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
}

/// How long clients have to begin, where nothing else is said.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl ConnectionsBuilder {
    pub(super) fn new() -> Self {
        ConnectionsBuilder {
            handshake_timeout: Some(HANDSHAKE_TIMEOUT),
            keep_alive: None,
            unwinds: false,
        }
    }

    /// How long a client may take to begin; `None` is without end. The default is 10 seconds.
    ///
    /// With HTTP/2 the connection's preface has to come within it, from the first poll of the
    /// [watched](Connections::watch) connection on, if the stream is in a
    /// [`GlommioIo`](crate::GlommioIo). With HTTP/1 it is the `header_read_timeout` of
    /// [`Connections::http1`]: each head of a request has to come within it, from the end of the
    /// request before. So it also closes idle connections, with an error of hyper that is a timeout.
    /// To give them longer, set that option on the builder that `http1` returns.
    pub fn handshake_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.handshake_timeout = limit.into();
        self
    }

    /// Has [`Connections::http2`] send a ping to clients that have been silent for `interval`, and
    /// close connections whose client has not answered it within `timeout`. The default is no pings.
    ///
    /// Without it a client that is gone, or that does not answer, keeps its connection: also beyond
    /// a [shutdown](Connections::shutdown), which waits for its answer.
    pub fn keep_alive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.keep_alive = Some(KeepAlive { interval, timeout });
        self
    }

    /// Whether a panic of a handler is left to the executor's [`PanicPolicy`](glommio::PanicPolicy),
    /// as that of any task. The default is `false`: it [closes the connection](Connections#panics).
    pub fn unwind_panics(mut self, unwinds: bool) -> Self {
        self.unwinds = unwinds;
        self
    }

    /// No connections so far.
    pub fn build(self) -> Connections {
        Connections {
            shared: Shared::new(self),
        }
    }
}
