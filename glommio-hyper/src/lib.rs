//! hyper on glommio: HTTP/1 and HTTP/2, servers and clients, unchanged hyper.
//!
//! hyper asks a runtime for four things, and has each from a type of this crate:
//!
//! | hyper asks for | here |
//! |---|---|
//! | a stream to read and write (`rt::Read`, `rt::Write`) | [`GlommioIo`] around a `TcpStream`, or any stream of `futures-io` |
//! | a clock for its timeouts (`rt::Timer`, `rt::Sleep`) | [`GlommioTimer`]: timers of the executor |
//! | tasks, for HTTP/2 (`rt::Executor`) | [`GlommioExecutor`]: tasks of the executor |
//! | to be told when to finish | [`Connections`], which also have limits and contain panics |
//!
//! Nothing has to be `Send` but upgraded connections: services, bodies and connections stay on the thread of their executor.
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use glommio::net::{TcpListener, TcpStream};
//! use glommio::timer::sleep;
//! use glommio::{LocalExecutor, spawn_local};
//! use glommio_hyper::{Connections, GlommioIo};
//! use http_body_util::{BodyExt, Empty, Full};
//! use hyper::body::Bytes;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response, client};
//!
//! LocalExecutor::default().run(async {
//!     let listener = TcpListener::bind("127.0.0.1:0")?;
//!     let address = listener.local_addr()?;
//!
//!     let connections = Connections::new();
//!     let watched = connections.clone();
//!     let server = spawn_local(async move {
//!         let http = watched.http1();
//!         loop {
//!             let stream = match listener.accept().await {
//!                 Ok(stream) => stream,
//!                 Err(error) => {
//!                     // Out of descriptors, most likely. They come back as connections end.
//!                     eprintln!("cannot accept: {error}");
//!                     sleep(Duration::from_millis(50)).await;
//!                     continue;
//!                 }
//!             };
//!             let service = service_fn(|_| async {
//!                 Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
//!             });
//!             let connection = http.serve_connection(GlommioIo::new(stream), service);
//!             spawn_local(watched.watch(connection)).detach();
//!         }
//!     });
//!
//!     let stream = TcpStream::connect(address).await?;
//!     let (mut sender, connection) = client::conn::http1::handshake(GlommioIo::new(stream)).await?;
//!     spawn_local(connection).detach();
//!     let request = Request::get("/").header("host", "localhost").body(Empty::<Bytes>::new())?;
//!     let body = sender.send_request(request).await?.collect().await?.to_bytes();
//!     assert_eq!(body, "hello");
//!
//!     // No more connections; those that there are finish their requests.
//!     server.cancel().await;
//!     connections.shutdown_within(Duration::from_secs(10)).await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! For HTTP/2 take `connections.http2(GlommioExecutor::new())` and
//! `client::conn::http2::handshake(GlommioExecutor::new(), io)`.
//!
//! # Upgrades
//!
//! A connection goes on with another protocol, such as WebSocket, if its stream is
//! [`upgradable`](GlommioIo::upgradable) and it is served `with_upgrades`. Afterwards it is an
//! [`UpgradedIo`], whose page has an example.

#![forbid(unsafe_code)]

mod connections;
mod executor;
mod io;
mod panic;
mod timer;
mod upgrade;

pub use connections::{ConnectionError, Connections, ConnectionsBuilder, Graceful};
pub use executor::GlommioExecutor;
pub use io::GlommioIo;
pub use timer::GlommioTimer;
pub use upgrade::{UpgradableIo, UpgradedIo};
