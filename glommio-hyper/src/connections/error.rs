//! How connections end that do not end well.

use std::error::Error;
use std::fmt;

/// Why a connection has ended that [`Connections`](super::Connections) watched.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectionError<E = hyper::Error> {
    /// The connection's own error.
    Connection(E),
    /// The client has not begun to speak HTTP/2 within the
    /// [time for it](super::ConnectionsBuilder::handshake_timeout).
    HandshakeTimeout,
    /// A handler has panicked.
    Panicked,
    /// It had not finished when the time of a
    /// [shutdown](super::Connections::shutdown_within) was over.
    ShutDown,
}

impl<E> fmt::Display for ConnectionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConnectionError::Connection(_) => "the connection has failed",
            ConnectionError::HandshakeTimeout => "the handshake has taken too long",
            ConnectionError::Panicked => "a handler has panicked",
            ConnectionError::ShutDown => "not finished within the time of the shutdown",
        })
    }
}

impl<E: Error + 'static> Error for ConnectionError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ConnectionError::Connection(error) => Some(error),
            _ => None,
        }
    }
}
