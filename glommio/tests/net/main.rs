//! Sockets, through the public API. Each test runs executors of its own on its own threads.
//!
//! Lower bounds on time are exact, upper bounds are far beyond what is needed: they are there to
//! end a test that hangs.

use futures_lite::pin;
use glommio::timer::timeout;

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod accept;
mod accept_limit;
mod balance;
mod balance_leave;
mod busy;
mod connect;
mod datagrams;
#[path = "../common/deaf.rs"]
mod deaf;
mod detach;
mod greedy;
mod hostile;
mod kernel_tls;
mod lifetime;
mod listener;
mod options;
mod random_drops;
mod random_ends;
mod send_file;
mod shared_listener;
mod stream;
mod time_limits;
mod timeouts;
mod udp;
mod udp_ports;
mod unix_datagram;
mod unix_fds;
mod unix_full_queue;
mod unix_listener;
mod unix_stream;

use common::leaves_no_descriptor;
use deaf::closed_port;

use crate::common::prelude::*;

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

/// Longer than any test should take, on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on an executor of its own.
fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    LocalExecutor::default()
        .run(async { timeout(patient(PATIENCE), test).await })
        .expect("the test's operations succeed in time")
}

/// As [`run`], in a process of its own.
fn run_in_child(test: impl AsyncFnOnce() -> Result) {
    in_child(|| run(test()));
}

/// Both ends of a connection: client and server.
async fn pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?).await?;
    let server = listener.accept().await?;
    Ok((client, server))
}

/// A connection whose other end is one of the standard library.
async fn pair_with_std() -> Result<(TcpStream, std::net::TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = std::net::TcpStream::connect(listener.local_addr()?)?;
    Ok((listener.accept().await?, peer))
}

/// How often the reader of a connection has waited before: a connection that is often waited for
/// may be treated differently.
const AGES: [usize; 2] = [0, 20];

/// Runs a test for each of [`AGES`], on an executor of its own.
fn at_each_age(test: impl AsyncFn(usize) -> Result) {
    AGES.into_iter().for_each(|age| run(test(age)));
}

/// A connection whose first end has waited so often for a byte of the other, and got it.
async fn aged_pair(age: usize) -> Result<(TcpStream, std::net::TcpStream)> {
    let (mut stream, mut peer) = pair_with_std().await?;
    wait_often(age, &mut stream, &mut peer).await?;
    Ok((stream, peer))
}

async fn wait_often(
    times: usize,
    stream: &mut TcpStream,
    peer: &mut std::net::TcpStream,
) -> Result {
    for time in 0..times {
        let mut byte = [0];
        let mut read = stream.read(&mut byte);
        assert!(poll_once(&mut read).await.is_none());
        io::Write::write_all(peer, &[time as u8])?;
        assert_eq!(read.await?, 1);
        assert_eq!(byte, [time as u8]);
    }
    Ok(())
}

/// Polls `future` until it has asked the kernel and found nothing, and drops it in that state.
async fn abandon<F: Future>(future: F) {
    assert!(give_up(future).await, "there is nothing to be done yet");
}

/// As [`abandon`], of a future with a time limit, which may be over by then: the machine may be
/// busy. Gives whether it was still waiting.
async fn give_up<F: Future>(future: F) -> bool {
    pin!(future);
    for _ in 0..3 {
        if poll_once(&mut future).await.is_some() {
            return false;
        }
        sleep(Duration::from_millis(1)).await;
    }
    true
}

/// Counts its references.
#[derive(Default)]
struct Counted;

impl std::task::Wake for Counted {
    fn wake(self: std::sync::Arc<Self>) {}
}

fn io_kind(error: &GlommioError<()>) -> io::ErrorKind {
    match error {
        GlommioError::IoError(error) => error.kind(),
        other => panic!("not an I/O error: {other}"),
    }
}
