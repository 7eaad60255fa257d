//! What a tokio context costs: a poll in it, a timer, a wake that comes from the background thread.
//!
//! ```console
//! $ cargo bench -p glommio-tokio --bench wakes -- --rounds 9
//! ```
//!
//! The rows take turns within each round; what is printed are medians of the rounds, with the least
//! and the greatest. In the rows over TCP the peer is a thread that blocks in `read`, the same for
//! all. The rows of tokio alone are a current-thread runtime without glommio.

use std::future::{Future, pending};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;
use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _};
use glommio::LocalExecutor;
use glommio::timer::Timer;
use glommio_tokio::{Tokio, with_tokio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// Of one row in one round.
const POLLS: u32 = 1_000_000;
const TIMERS: u32 = 100_000;
const ROUND_TRIPS: u32 = 5_000;
const STARTS: u32 = 200;

const TIMER: Duration = Duration::from_secs(60);

type Row = (&'static str, fn() -> Duration);

const ROWS: [Row; 9] = [
    ("poll of a pending future in `with_tokio`", || {
        poll(with_tokio(pending()))
    }),
    ("timer of glommio: create, poll, drop", || glommio(timers())),
    ("timer of tokio in `with_tokio`", || {
        glommio(with_tokio(timers_of_tokio()))
    }),
    ("timer of tokio on tokio", || {
        tokio().block_on(timers_of_tokio())
    }),
    ("round trip over TCP: glommio", || glommio(round_trips())),
    ("round trip over TCP: tokio in `with_tokio`", || {
        glommio(with_tokio(round_trips_of_tokio()))
    }),
    ("round trip over TCP: tokio on tokio", || {
        tokio().block_on(round_trips_of_tokio())
    }),
    ("to a task of `tokio::spawn` and back", || {
        glommio(with_tokio(spawned()))
    }),
    ("first user to last: a thread", starts),
];

fn main() {
    let rounds = rounds();
    let mut measured = [const { Vec::new() }; ROWS.len()];
    for round in 0..=rounds {
        for ((_, measure), times) in ROWS.iter().zip(&mut measured) {
            let time = measure();
            // The first one warms up.
            if round > 0 {
                times.push(time);
            }
        }
    }
    println!("| | ns each | least | greatest |\n|---|---:|---:|---:|");
    for ((row, _), mut times) in ROWS.into_iter().zip(measured) {
        times.sort_unstable();
        let (least, greatest) = (times[0], times[times.len() - 1]);
        let median = times[times.len() / 2];
        println!(
            "| {row} | {} | {} | {} |",
            median.as_nanos(),
            least.as_nanos(),
            greatest.as_nanos()
        );
    }
}

/// `--rounds N`; what else cargo passes is ignored.
fn rounds() -> usize {
    let mut arguments = std::env::args().skip_while(|it| it != "--rounds");
    let rounds = arguments.nth(1).map(|it| it.parse().expect("a number"));
    rounds.unwrap_or(9).max(1)
}

fn glommio<T>(future: impl Future<Output = T>) -> T {
    LocalExecutor::default().run(future)
}

fn tokio() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("there are descriptors")
}

fn each(count: u32, mut f: impl FnMut()) -> Duration {
    let begin = Instant::now();
    for _ in 0..count {
        f();
    }
    begin.elapsed() / count
}

fn poll(future: impl Future<Output = ()>) -> Duration {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    each(POLLS, || {
        let poll = std::hint::black_box(future.as_mut()).poll(&mut cx);
        assert!(poll.is_pending());
    })
}

async fn timers() -> Duration {
    let begin = Instant::now();
    for _ in 0..TIMERS {
        assert!(poll_once(Timer::new(TIMER)).await.is_none());
    }
    begin.elapsed() / TIMERS
}

async fn timers_of_tokio() -> Duration {
    let begin = Instant::now();
    for _ in 0..TIMERS {
        assert!(poll_once(tokio::time::sleep(TIMER)).await.is_none());
    }
    begin.elapsed() / TIMERS
}

/// A thread that sends back each byte of one connection.
fn echo() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback works");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it comes");
        stream.set_nodelay(true).expect("it is TCP");
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).expect("it is read");
        }
    });
    address
}

async fn round_trips() -> Duration {
    let stream = glommio::net::TcpStream::connect(echo()).await;
    let mut stream = stream.expect("loopback works");
    stream.set_nodelay(true).expect("it is TCP");
    let mut byte = [7];
    let begin = Instant::now();
    for _ in 0..ROUND_TRIPS {
        stream.write_all(&byte).await.expect("it is read");
        stream.read_exact(&mut byte).await.expect("it is echoed");
    }
    begin.elapsed() / ROUND_TRIPS
}

async fn round_trips_of_tokio() -> Duration {
    let stream = tokio::net::TcpStream::connect(echo()).await;
    let mut stream = stream.expect("loopback works");
    stream.set_nodelay(true).expect("it is TCP");
    let mut byte = [7];
    let begin = Instant::now();
    for _ in 0..ROUND_TRIPS {
        AsyncWriteExt::write_all(&mut stream, &byte)
            .await
            .expect("it is read");
        AsyncReadExt::read_exact(&mut stream, &mut byte)
            .await
            .expect("it is echoed");
    }
    begin.elapsed() / ROUND_TRIPS
}

async fn spawned() -> Duration {
    let (to_there, mut there) = mpsc::channel(1);
    let (to_here, mut here) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(it) = there.recv().await {
            if to_here.send(it).await.is_err() {
                break;
            }
        }
    });
    let begin = Instant::now();
    for number in 0..ROUND_TRIPS {
        to_there.send(number).await.expect("it is received");
        assert_eq!(here.recv().await, Some(number));
    }
    begin.elapsed() / ROUND_TRIPS
}

fn starts() -> Duration {
    each(STARTS, || {
        drop(Tokio::start().expect("there are resources"))
    })
}
