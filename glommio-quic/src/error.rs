//! What may go wrong with streams and datagrams.

use quinn_proto::{ClosedStream, ConnectionError, VarInt};
use std::error::Error;
use std::fmt;
use std::io;

/// Reading from a stream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer has abandoned the stream, with this code.
    Reset(VarInt),
    /// The connection is lost.
    ConnectionLost(ConnectionError),
    /// The connection does not know the stream any more.
    ClosedStream,
    /// It was read out of order before, and has no order any more.
    IllegalOrderedRead,
}

/// [`RecvStream::read_exact`](crate::RecvStream::read_exact) failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended after this many bytes.
    FinishedEarly(usize),
    /// A read failed.
    ReadError(ReadError),
}

/// [`RecvStream::read_to_end`](crate::RecvStream::read_to_end) failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit.
    TooLong,
    /// A read failed.
    Read(ReadError),
}

/// Writing to a stream failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer does not want any more of the stream, and says so with this code.
    Stopped(VarInt),
    /// The connection is lost.
    ConnectionLost(ConnectionError),
    /// The stream was finished or reset.
    ClosedStream,
}

/// Sending a datagram failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer takes no datagrams.
    UnsupportedByPeer,
    /// `datagram_receive_buffer_size` of this side's transport configuration is `None`.
    Disabled,
    /// It is longer than [`Connection::max_datagram_size`](crate::Connection::max_datagram_size).
    TooLarge,
    /// The connection is lost.
    ConnectionLost(ConnectionError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Reset(code) => write!(f, "the peer has reset the stream, code {code}"),
            ReadError::ConnectionLost(error) => write!(f, "the connection is lost: {error}"),
            ReadError::ClosedStream => f.write_str("the stream is closed"),
            ReadError::IllegalOrderedRead => {
                f.write_str("an ordered read after an unordered one; read all of it unordered")
            }
        }
    }
}

impl fmt::Display for ReadExactError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadExactError::FinishedEarly(length) => {
                write!(f, "the stream has ended early, after {length} bytes")
            }
            ReadExactError::ReadError(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for ReadToEndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadToEndError::TooLong => f.write_str("the stream is longer than the limit"),
            ReadToEndError::Read(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Stopped(code) => write!(f, "the peer has stopped the stream, code {code}"),
            WriteError::ConnectionLost(error) => write!(f, "the connection is lost: {error}"),
            WriteError::ClosedStream => f.write_str("the stream is closed"),
        }
    }
}

impl fmt::Display for SendDatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendDatagramError::UnsupportedByPeer => f.write_str("the peer takes no datagrams"),
            SendDatagramError::Disabled => f.write_str(
                "datagrams are disabled; set `datagram_receive_buffer_size` of the transport",
            ),
            SendDatagramError::TooLarge => {
                f.write_str("the datagram is longer than `max_datagram_size`")
            }
            SendDatagramError::ConnectionLost(error) => {
                write!(f, "the connection is lost: {error}")
            }
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }
}

impl Error for ReadExactError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadExactError::FinishedEarly(_) => None,
            ReadExactError::ReadError(error) => Some(error),
        }
    }
}

impl Error for ReadToEndError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadToEndError::TooLong => None,
            ReadToEndError::Read(error) => Some(error),
        }
    }
}

impl Error for WriteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            WriteError::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }
}

impl Error for SendDatagramError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SendDatagramError::ConnectionLost(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        let kind = match error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::ConnectionLost(_) | ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::IllegalOrderedRead => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> io::Error {
        let kind = match error {
            WriteError::Stopped(_) => io::ErrorKind::ConnectionReset,
            WriteError::ConnectionLost(_) | WriteError::ClosedStream => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}

impl From<ReadError> for ReadExactError {
    fn from(error: ReadError) -> Self {
        ReadExactError::ReadError(error)
    }
}

impl From<ReadError> for ReadToEndError {
    fn from(error: ReadError) -> Self {
        ReadToEndError::Read(error)
    }
}

impl From<ClosedStream> for ReadError {
    fn from(_: ClosedStream) -> Self {
        ReadError::ClosedStream
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        WriteError::ClosedStream
    }
}

impl From<ConnectionError> for ReadError {
    fn from(error: ConnectionError) -> Self {
        ReadError::ConnectionLost(error)
    }
}

impl From<ConnectionError> for WriteError {
    fn from(error: ConnectionError) -> Self {
        WriteError::ConnectionLost(error)
    }
}

impl From<ConnectionError> for SendDatagramError {
    fn from(error: ConnectionError) -> Self {
        SendDatagramError::ConnectionLost(error)
    }
}
