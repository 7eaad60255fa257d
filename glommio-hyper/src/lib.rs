//! hyper on glommio: HTTP/1 and HTTP/2, servers and clients, unchanged hyper.
//!
//! hyper asks a runtime for four things, and has each from a type of this crate:
//!
//! | hyper asks for | here |
//! |---|---|
//! | a stream to read and write (`rt::Read`, `rt::Write`) | [`GlommioIo`] around a `TcpStream`, or any stream of `futures-io` |
//! | a clock for its timeouts (`rt::Timer`, `rt::Sleep`) | [`GlommioTimer`]: timers of the executor |
//! | tasks, for HTTP/2 (`rt::Executor`) | [`GlommioExecutor`]: tasks of the executor |
//! | to be told when to finish | [`Connections`] |
//!
//! Nothing has to be `Send`: services, bodies and connections stay on the thread of their executor.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use glommio::net::{TcpListener, TcpStream};
//! use glommio::{LocalExecutor, spawn_local};
//! use glommio_hyper::{Connections, GlommioIo, GlommioTimer};
//! use http_body_util::{BodyExt, Empty, Full};
//! use hyper::body::Bytes;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response, client, server};
//!
//! LocalExecutor::default().run(async {
//!     let listener = TcpListener::bind("127.0.0.1:0")?;
//!     let address = listener.local_addr()?;
//!
//!     let connections = Connections::new();
//!     let watched = connections.clone();
//!     let server = spawn_local(async move {
//!         let mut http = server::conn::http1::Builder::new();
//!         http.timer(GlommioTimer);
//!         while let Ok(stream) = listener.accept().await {
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
//!     connections.shutdown().await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! For HTTP/2 take `server::conn::http2::Builder::new(GlommioExecutor::new())` and
//! `client::conn::http2::handshake(GlommioExecutor::new(), io)`.
//!
//! # Upgrades
//!
//! hyper wants connections that are upgraded, as for WebSockets, to be `Send`, which those of
//! glommio are not. Read the request yourself, or use a WebSocket library on the `TcpStream`.

#![forbid(unsafe_code)]

mod connections;
mod executor;
mod io;
mod timer;

pub use connections::{Connections, Graceful};
pub use executor::GlommioExecutor;
pub use io::GlommioIo;
pub use timer::GlommioTimer;
