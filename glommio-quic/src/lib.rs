//! QUIC on executors of glommio: the protocol is that of [`quinn_proto`], which does no I/O; the
//! sockets, the timers and the tasks are the executor's. The names are those of the crate quinn.
//!
//! ```
//! use glommio::LocalExecutor;
//! use glommio_quic::rustls::RootCertStore;
//! use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
//! use glommio_quic::{Endpoint, VarInt, crypto};
//!
//! # let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys");
//! # let (certificate, key) = (format!("{keys}/server.pem"), format!("{keys}/server.key"));
//! # let authority = format!("{keys}/authority.pem");
//! LocalExecutor::default().run(async {
//!     // `certificate`, `key` and `authority` are paths of PEM files.
//!     let certificates = vec![CertificateDer::from_pem_file(certificate)?];
//!     let config = crypto::server_config(certificates, PrivateKeyDer::from_pem_file(key)?)?;
//!     let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//!
//!     let mut roots = RootCertStore::empty();
//!     roots.add(CertificateDer::from_pem_file(authority)?)?;
//!     let client = Endpoint::client("127.0.0.1:0".parse()?)?;
//!     client.set_default_client_config(crypto::client_config(roots)?);
//!
//!     let connecting = client.connect(server.local_addr()?, "localhost")?;
//!     let incoming = server.accept().await.ok_or("the server is closed")?;
//!     let accepted = incoming.accept()?;
//!     let connection = connecting.await?;
//!     let mut stream = connection.open_uni().await?;
//!     stream.write_all(b"hello").await?;
//!     stream.finish()?;
//!
//!     let accepted = accepted.await?;
//!     let mut stream = accepted.accept_uni().await?;
//!     assert_eq!(stream.read_to_end(100).await?, b"hello");
//!
//!     client.close(VarInt::from_u32(0), b"done");
//!     client.wait_idle().await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # How an endpoint works
//!
//! ```text
//!            receiver                               driver
//!   socket ───────────▶ quinn-proto ──▶ connection ───────────▶ socket
//!                                        │     ▲
//!                          wakes tasks   ▼     │ ready queue, one timer each
//!                               Connection, SendStream, RecvStream
//! ```
//!
//! Two tasks belong to an [`Endpoint`], in the task queue that it was made in. One receives by the
//! batch, the other sends, up to 64 KiB of datagrams by one call, and sees to the timers: one for each
//! connection, moved in place. Everything is shared by reference counts and cells, without a lock or
//! an atomic operation, except what [shards](Shard) pass on to each other.
//!
//! Wakers of tasks may do anything with the endpoint, and may panic: the panic goes to the log.
//! Callbacks in quinn-proto's configurations, such as verifiers of certificates, congestion controllers
//! and token logs, run while a connection is borrowed: they must not use it, and a panic in one closes
//! that connection.

#![deny(unsafe_code)]

pub mod crypto;

mod connection;
mod endpoint;
mod error;
mod panics;
mod shards;
mod socket;
mod streams;
mod waiters;

pub use connection::{Connecting, Connection};
pub use endpoint::{Endpoint, EndpointStats, Incoming, Limits, RetryError};
pub use error::{ReadError, ReadExactError, ReadToEndError, SendDatagramError, WriteError};
pub use shards::{Shard, ShardOptions, Shards, Steering};
pub use streams::{RecvStream, SendStream};

pub use quinn_proto::{
    self, AckFrequencyConfig, ApplicationClose, Chunk, ClientConfig, ClosedStream, ConfigError,
    ConnectError, ConnectionClose, ConnectionError, ConnectionId, ConnectionStats, Dir,
    EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, StreamId, TransportConfig,
    TransportError, TransportErrorCode, VarInt, Written,
};
#[cfg(feature = "qlog")]
pub use quinn_proto::{QlogConfig, QlogStream};
pub use rustls;

/// The page of the book, whose example runs with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/quic.md")]
mod guide {}
