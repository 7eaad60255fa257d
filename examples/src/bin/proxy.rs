//! A TCP proxy: forwards each connection to another server, in both directions.
//!
//! ```console
//! $ cargo run --release -p examples --bin proxy -- 127.0.0.1:8081 127.0.0.1:8080 --idle-timeout 30s
//! $ curl http://127.0.0.1:8081/
//! ```
//!
//! A side that ends its sending has the end passed on, while the other direction goes on
//! (half-close). A connection that is idle is closed on both sides. Ctrl-C ends the proxy with a
//! line of statistics.
//!
//! # When a connection is idle
//!
//! When no byte has moved for the idle timeout in *either* direction. A download of an hour is not
//! idle, although its client sends nothing. The socket's timeouts know one direction each; so a
//! wait that times out first looks at when the connection moved a byte last, and if the other
//! direction did so meanwhile, waits for what is left. There is no timer per byte: moving one
//! writes down the time, and that is all.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{fmt, io};

use clap::Parser;
use futures_lite::future::try_zip;
use futures_lite::{AsyncRead, AsyncWrite};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement, TaskPanic, spawn_local};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Passes TCP connections on to another server.
#[derive(Clone, Debug, Parser)]
#[command(name = "proxy")]
struct Options {
    /// Where to listen, as `127.0.0.1:8081`; port 0 takes a free one.
    listen: SocketAddr,

    /// Where connections go, as `example.org:80`.
    upstream: String,

    /// A connection on which no byte has moved for so long, in either direction, is closed.
    #[arg(long, default_value = "30s", value_parser = not_zero)]
    idle_timeout: Duration,

    /// How long connecting to the upstream may take.
    #[arg(long, default_value = "5s", value_parser = not_zero)]
    connect_timeout: Duration,
}

fn not_zero(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("nothing can be done in no time".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let statistics = Arc::new(Statistics::default());
    let counted = Arc::clone(&statistics);
    let (report, listening) = mpsc::channel();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("proxy")
        .on_task_panic(TaskPanic::Isolate)
        .spawn(move || async move {
            let listener = TcpListener::bind(options.listen)?;
            if report.send(listener.local_addr()?).is_ok() {
                serve(listener, options, counted).await;
            }
            glommio::Result::<(), ()>::Ok(())
        })?;
    let Ok(address) = listening.recv() else {
        // It ended before it could listen, and its result says why.
        return Ok(executor.join()??);
    };
    println!("listening on {address}");
    signals.forever().next();
    println!("{statistics}");
    // The executor ends with the process.
    Ok(())
}

async fn serve(listener: TcpListener, options: Options, statistics: Arc<Statistics>) {
    accept_each(&listener, move |client| {
        let (options, statistics) = (options.clone(), Arc::clone(&statistics));
        async move {
            count(&statistics.accepted, 1);
            let ended_as = match pass_on(client, &options, &statistics).await {
                Ok(()) => &statistics.completed,
                Err(Failure::Upstream) => &statistics.unreachable,
                Err(Failure::Idle) => &statistics.idle,
                Err(Failure::Broken) => &statistics.broken,
            };
            count(ended_as, 1);
        }
    })
    .await;
}

/// Why a connection ended other than by both sides ending it.
enum Failure {
    /// The upstream could not be reached. The client sees its connection close.
    Upstream,
    /// Nothing moved for too long.
    Idle,
    /// One side reset the connection, or the like.
    Broken,
}

async fn pass_on(
    client: TcpStream,
    options: &Options,
    statistics: &Statistics,
) -> Result<(), Failure> {
    let upstream = TcpStream::connect_timeout(&*options.upstream, options.connect_timeout);
    let upstream = upstream.await.map_err(|_| Failure::Upstream)?;
    for stream in [&client, &upstream] {
        // What came in one piece goes out at once, as the sender meant it.
        stream.set_nodelay(true).map_err(|_| Failure::Broken)?;
    }
    let activity = Activity::begin(options.idle_timeout);
    // Each is read by one direction and written by the other.
    let (client, upstream) = (Duplex::new(client), Duplex::new(upstream));
    let there = copy(&client, &upstream, &activity, &statistics.bytes_there);
    let back = copy(&upstream, &client, &activity, &statistics.bytes_back);
    // The first failure ends both directions, and leaving closes both sockets.
    try_zip(there, back).await.map(drop).map_err(|error| {
        if is_timeout(&error) {
            Failure::Idle
        } else {
            Failure::Broken
        }
    })
}

/// Copies until `from` ends, and passes the end on.
async fn copy(
    from: &Duplex,
    to: &Duplex,
    activity: &Activity,
    bytes: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let received = activity
            .unless_idle(
                |left| from.set_read_timeout(left),
                async || from.read(&mut buffer).await,
            )
            .await?;
        if received == 0 {
            return to.close().await;
        }
        let mut rest = &buffer[..received];
        while !rest.is_empty() {
            let sent = activity
                .unless_idle(
                    |left| to.set_write_timeout(left),
                    async || to.write(rest).await,
                )
                .await?;
            rest = &rest[sent..];
            count(bytes, sent as u64);
        }
    }
}

/// Accepts connections for ever and has each served by a task of its own.
///
/// An error of `accept` is no reason to end: the listener remains usable.
async fn accept_each<F>(listener: &TcpListener, serve: impl Fn(TcpStream) -> F) -> !
where
    F: Future<Output = ()> + 'static,
{
    loop {
        match listener.accept().await {
            // A task whose handle is dropped is cancelled; this one runs on by itself.
            Ok(stream) => drop(spawn_local(serve(stream)).detach()),
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A stream that one future reads and another writes, both of the same task.
///
/// The traits borrow the stream mutably; here nothing is borrowed during a wait.
#[derive(Debug)]
struct Duplex(RefCell<TcpStream>);

impl Duplex {
    /// Both directions of `stream`.
    fn new(stream: TcpStream) -> Duplex {
        Duplex(RefCell::new(stream))
    }

    /// As `AsyncReadExt::read`.
    async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, buffer)).await
    }

    /// As `AsyncWriteExt::write`.
    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)).await
    }

    /// As `AsyncWriteExt::close`: sends the end, and reading goes on.
    async fn close(&self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_close(cx)).await
    }

    /// As `TcpStream::set_read_timeout`.
    fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        Ok(self.0.borrow().set_read_timeout(Some(timeout))?)
    }

    /// As `TcpStream::set_write_timeout`.
    fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        Ok(self.0.borrow().set_write_timeout(Some(timeout))?)
    }
}

/// When a connection moved a byte last, in whichever direction.
struct Activity {
    last: Cell<Instant>,
    idle_timeout: Duration,
}

impl Activity {
    fn begin(idle_timeout: Duration) -> Activity {
        Activity {
            last: Cell::new(Instant::now()),
            idle_timeout,
        }
    }

    /// Reads or writes by `attempt`, again and again if it times out while the other direction is
    /// at work.
    async fn unless_idle(
        &self,
        set_timeout: impl Fn(Duration) -> io::Result<()>,
        mut attempt: impl AsyncFnMut() -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let left = self.idle_timeout.saturating_sub(self.last.get().elapsed());
            // No timeout of zero: what is ready is taken, however long this task has not run.
            set_timeout(left.max(Duration::from_nanos(1)))?;
            match attempt().await {
                Err(error) if is_timeout(&error) && !self.is_idle() => {}
                result => {
                    self.last.set(Instant::now());
                    return result;
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.last.get().elapsed() >= self.idle_timeout
    }
}

/// Whether the socket's timeout is over. The kernel's own error for a peer that is gone has a
/// number.
fn is_timeout(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

#[derive(Debug, Default)]
struct Statistics {
    accepted: AtomicU64,
    completed: AtomicU64,
    unreachable: AtomicU64,
    idle: AtomicU64,
    broken: AtomicU64,
    bytes_there: AtomicU64,
    bytes_back: AtomicU64,
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} connections: {} completed, {} idle, {} broken, {} without upstream; {} bytes there, {} bytes back",
            of(&self.accepted),
            of(&self.completed),
            of(&self.idle),
            of(&self.broken),
            of(&self.unreachable),
            of(&self.bytes_there),
            of(&self.bytes_back),
        )
    }
}

const BUFFER_BYTES: usize = 16 << 10;
