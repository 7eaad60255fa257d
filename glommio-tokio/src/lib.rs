//! tokio's crates on glommio: reqwest, sqlx, redis, the client of tonic and others, inside tasks of
//! an executor.
//!
//! Such crates use tokio's sockets and timers, which need a tokio runtime on the thread that polls
//! them. [`with_tokio`] polls a future in the context of one. The future runs on the executor's
//! thread, within its task, and need not be `Send`. tokio's I/O and timer driver runs on one
//! background thread of the process, which starts with the first user and ends with the last.
//!
//! ```
//! use std::rc::Rc;
//! use std::time::Duration;
//!
//! use glommio::LocalExecutor;
//! use glommio_tokio::with_tokio;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::{TcpListener, TcpStream};
//!
//! LocalExecutor::default().run(async {
//!     let greeting = Rc::new("hello"); // not `Send`
//!     let echoed = with_tokio(async move {
//!         let listener = TcpListener::bind("127.0.0.1:0").await?;
//!         let mut client = TcpStream::connect(listener.local_addr()?).await?;
//!         let (mut server, _) = listener.accept().await?;
//!         client.write_all(greeting.as_bytes()).await?;
//!         tokio::time::sleep(Duration::from_millis(1)).await;
//!         let mut bytes = vec![0; greeting.len()];
//!         server.read_exact(&mut bytes).await?;
//!         std::io::Result::Ok(bytes)
//!     })
//!     .await?;
//!     assert_eq!(echoed, b"hello");
//!     std::io::Result::Ok(())
//! })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # How long the runtime lives
//!
//! Each future of [`with_tokio`] and each [`Tokio`] is a user. Open connections, tasks and timers
//! that a client of a database or of HTTP keeps between calls belong to the runtime, and end with it.
//! So keep a [`Tokio`] for as long as such a client lives, and use [`Tokio::with`]: this also
//! saves a lock and, when there is no other user, the start of a thread.
//!
//! ```
//! # use glommio::LocalExecutor;
//! use glommio_tokio::Tokio;
//!
//! LocalExecutor::default().run(async {
//!     let tokio = Tokio::start()?;
//!     for _ in 0..3 {
//!         tokio.with(async { tokio::task::yield_now().await }).await;
//!     }
//!     std::io::Result::Ok(())
//! })?;
//! # std::io::Result::Ok(())
//! ```
//!
//! # What is dropped where
//!
//! What such crates give out may want the context once more when it is dropped: a pooled connection of
//! sqlx goes back to its pool by a task that its destructor spawns, and panics outside of a context.
//! [`with_tokio`] drops its future in the context, and all that this holds, but not what the future
//! returns. So poll a handler as a whole by [`Tokio::scope`], and [keep](Tokio::keep) in the context
//! what leaves it.
//!
//! To have the context in all tasks of a thread, as a server may, hold
//! `tokio.handle().enter()` in the executor's first future. Then each poll costs nothing more; but
//! tasks that outlive that future are dropped without the context, and tokio's cooperative budget
//! applies if the executor itself runs inside a tokio runtime.
//!
//! # What runs where
//!
//! | inside `with_tokio` | runs |
//! |---|---|
//! | the future itself, with all that it awaits | in the task of the executor that polls it |
//! | readiness of tokio's sockets, expiry of tokio's timers | on the background thread, which wakes the task |
//! | `tokio::spawn` | on the background thread: the future has to be `Send`, as in tokio |
//! | `tokio::task::spawn_blocking`, `tokio::fs`, names resolved by `tokio::net` | on threads of tokio's blocking pool |
//! | `tokio::task::spawn_local` | in the task, inside a `tokio::task::LocalSet`; else it panics |
//! | `tokio::task::block_in_place` | in the task, and blocks its executor |
//! | `Handle::block_on`, `Runtime::block_on` | in the task, and blocks its executor |
//!
//! Prefer the sockets, timers and tasks of glommio where a crate lets you choose: they cost no change
//! of threads. Crates that are generic over tokio's I/O traits take glommio's streams by way of
//! [`compat`]. hyper and what is built on it take the types of `glommio-hyper` in place of
//! `TokioIo`, `TokioTimer` and `TokioExecutor`; [`TokioExecutor`] of this crate adds the context to
//! what they spawn.
//!
//! # Fairness
//!
//! tokio's cooperative budget is off inside [`with_tokio`]. A future that always finds data, such as
//! a loop that reads from a fast peer, has to call `glommio::yield_if_needed().await` now and then,
//! as one that computes does. Tasks of a `LocalSet` have tokio's budget.
//!
//! # Paused clocks
//!
//! While a future of [`with_tokio`] or [`Tokio::with`] is pending, a
//! [paused clock](glommio::time#paused-clocks) of the executor that has polled it stands still. It goes on
//! while futures of [`Tokio::scope`] and [`TokioExecutor`] wait.
//!
//! # Simulations
//!
//! In a simulation of glommio there is no tokio, whose sockets and time would be those of the machine:
//! [`Tokio::start`] fails with kind `Unsupported`, and [`with_tokio`] panics. Crates that take tokio's traits alone work with
//! [`compat`].
//!
//! # Forked processes
//!
//! A child of `fork(2)` has no background thread. It gets one of its own with its first new user;
//! what it has inherited is only good to be dropped.

#![forbid(unsafe_code)]

mod driver;
mod executor;
mod in_tokio;
mod with_tokio;

pub use driver::Tokio;
pub use executor::TokioExecutor;
pub use in_tokio::InTokio;
pub use with_tokio::{WithTokio, with_tokio};

/// Streams of `futures-io`, such as those of glommio, for crates that want tokio's `AsyncRead` and
/// `AsyncWrite`, and the other way round: the module `compat` of tokio-util.
///
/// Needs no tokio runtime. A vectored write goes on as one of its first buffer that is not empty.
///
/// # Examples
///
/// ```
/// use glommio::LocalExecutor;
/// use glommio::net::{TcpListener, TcpStream};
/// use glommio_tokio::compat::FuturesAsyncReadCompatExt;
/// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let client = TcpStream::connect(listener.local_addr()?).await?;
///     let server = listener.accept().await?;
///     client.compat().write_all(b"one line\n").await?;
///     let mut line = String::new();
///     BufReader::new(server.compat()).read_line(&mut line).await?;
///     assert_eq!(line, "one line\n");
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub mod compat {
    pub use tokio_util::compat::{
        Compat, FuturesAsyncReadCompatExt, FuturesAsyncWriteCompatExt, TokioAsyncReadCompatExt,
        TokioAsyncWriteCompatExt,
    };
}
