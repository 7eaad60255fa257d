//! QUIC on executors of glommio: the protocol is that of [`quinn_proto`], which does no I/O; the
//! sockets, the timers and the tasks are the executor's.
//!
//! An [`Endpoint`] belongs to one executor, and nothing of it takes a lock or an atomic operation.

#![deny(unsafe_code)]

pub mod crypto;

mod connection;
mod endpoint;
mod error;
mod shards;
mod socket;
mod streams;
mod waiters;

pub use connection::{Connecting, Connection};
pub use endpoint::{Endpoint, EndpointStats, Incoming, RetryError};
pub use error::{ReadError, ReadExactError, ReadToEndError, SendDatagramError, WriteError};
pub use shards::{Shard, Steering};
pub use streams::{RecvStream, SendStream};

pub use quinn_proto::{
    self, AckFrequencyConfig, ApplicationClose, Chunk, ClientConfig, ClosedStream, ConfigError,
    ConnectError, ConnectionClose, ConnectionError, ConnectionStats, Dir, EndpointConfig,
    IdleTimeout, MtuDiscoveryConfig, ServerConfig, StreamId, TransportConfig, TransportError,
    TransportErrorCode, VarInt,
};
pub use rustls;
