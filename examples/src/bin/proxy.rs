//! A TCP proxy: forwards each connection to another server, in both directions.
//!
//! ```console
//! $ cargo run --release -p examples --bin proxy -- 127.0.0.1:1 --port 8081 --idle-timeout 30s
//! listening on 127.0.0.1:8081
//! $ true | nc -N 127.0.0.1 8081
//! ^C
//! connections: 0 completed, 0 idle, 0 broken, 1 without upstream
//! ```
//!
//! (Nothing listens on port 1; `http_server` makes a better upstream.) A side that ends its sending
//! has the end passed on, while the other direction goes on (half-close).
//!
//! A connection is idle when no byte has moved for the idle timeout in *either* direction: a download
//! of an hour is not idle, although its client sends nothing. Moving bytes writes down the time, and
//! one timer for each connection looks at it.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use examples::serving::Serving;
use futures_lite::future::{or, try_zip};
use futures_lite::io::{ReadHalf, WriteHalf, split};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::TcpStream;
use glommio::timer::sleep_until;

/// Passes TCP connections on to another server.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// Where connections go, as `example.org:80`.
    upstream: String,

    #[command(flatten)]
    serving: Serving,

    /// A connection on which no byte has moved for so long, in either direction, is closed.
    #[arg(long, default_value = "30s")]
    idle_timeout: humantime::Duration,

    /// How long connecting to the upstream may take.
    #[arg(long, default_value = "5s")]
    connect_timeout: humantime::Duration,
}

/// How a connection ended.
#[derive(Clone, Copy)]
enum End {
    /// Both sides have ended their sending.
    Completed,
    /// Nothing moved for too long.
    Idle,
    /// One side reset the connection, or the like.
    Broken,
    /// The upstream could not be reached. The client sees its connection close.
    Unreachable,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Arc::new(Options::parse());
    let serving = options.serving;
    let ends = serving.run("", move |shard| async move {
        let ends: Rc<[Cell<u64>; 4]> = Rc::default();
        let counted = ends.clone();
        let serve = move |client| {
            let (options, ends) = (options.clone(), counted.clone());
            async move {
                let end = &ends[pass_on(client, &options).await as usize];
                end.set(end.get() + 1);
            }
        };
        shard.serve_each(serve).await;
        ends.each_ref().map(Cell::get)
    })?;
    let count = |end: End| ends.iter().map(|ends| ends[end as usize]).sum::<u64>();
    println!(
        "connections: {} completed, {} idle, {} broken, {} without upstream",
        count(End::Completed),
        count(End::Idle),
        count(End::Broken),
        count(End::Unreachable)
    );
    Ok(())
}

async fn pass_on(client: TcpStream, options: &Options) -> End {
    let upstream = TcpStream::connect_timeout(&*options.upstream, *options.connect_timeout);
    let Ok(upstream) = upstream.await else {
        return End::Unreachable;
    };
    for stream in [&client, &upstream] {
        // What came in one piece goes out at once, as the sender meant it. It fails on a connection
        // that is closed already, as reading does then.
        let _ = stream.set_nodelay(true);
    }
    let moved = Cell::new(Instant::now());
    // Each is read by one direction and written by the other.
    let (client_reader, client_writer) = split(client);
    let (upstream_reader, upstream_writer) = split(upstream);
    let there = copy(client_reader, upstream_writer, &moved);
    let back = copy(upstream_reader, client_writer, &moved);
    // The first failure ends both directions, and leaving closes both sockets.
    let copied = async {
        match try_zip(there, back).await {
            Ok(_) => End::Completed,
            Err(_) => End::Broken,
        }
    };
    or(copied, idle(&moved, *options.idle_timeout)).await
}

/// Copies until `from` ends, and passes the end on.
async fn copy(
    mut from: ReadHalf<TcpStream>,
    mut to: WriteHalf<TcpStream>,
    moved: &Cell<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let received = from.read(&mut buffer).await?;
        moved.set(Instant::now());
        if received == 0 {
            return to.close().await;
        }
        let mut rest = &buffer[..received];
        while !rest.is_empty() {
            let sent = to.write(rest).await?;
            moved.set(Instant::now());
            rest = &rest[sent..];
        }
    }
}

/// Waits until nothing has moved for `timeout`.
async fn idle(moved: &Cell<Instant>, timeout: Duration) -> End {
    loop {
        let at = moved.get() + timeout;
        if at <= Instant::now() {
            return End::Idle;
        }
        sleep_until(at).await;
    }
}
