//! What may go wrong with connections and requests.

use h3::error::{ConnectionError, StreamError};
use std::error::Error as StdError;
use std::fmt;

/// A connection or a request has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection is lost, for another reason than that the peer has closed it in good order.
    Connection(ConnectionError),
    /// The stream of the request has failed.
    Stream(StreamError),
    /// The peer takes no more of the message, or the response is not wanted any more.
    Stopped,
    /// The body that was to be sent has failed.
    Body(Box<dyn StdError + Send + Sync>),
    /// The service has failed, and gives no response.
    Service(Box<dyn StdError + Send + Sync>),
    /// The headers of a request have not come in time.
    HeadersTimedOut,
    /// The connection was closed because the server ends.
    ShutDown,
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Error {
        Error::Connection(error)
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Error {
        Error::Stream(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connection(error) => write!(f, "the connection is lost: {error}"),
            Error::Stream(error) => write!(f, "the stream has failed: {error}"),
            Error::Stopped => f.write_str("the peer has stopped the stream"),
            Error::Body(error) => write!(f, "the body has failed: {error}"),
            Error::Service(error) => write!(f, "the service has failed: {error}"),
            Error::HeadersTimedOut => f.write_str("the headers have not come in time"),
            Error::ShutDown => f.write_str("the server has ended"),
        }
    }
}

impl StdError for Error {}
