//! What sockets do to the process as a whole: its descriptors, their limit, its signals. In a
//! binary of its own, one test at a time, so that no other test opens or closes anything meanwhile.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::PoisonError;

use futures_lite::pin;
use glommio::timer::timeout;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod accept_handover;
mod accept_on_demand;
mod accept_shortage;
mod clients;
#[path = "../common/deaf.rs"]
mod deaf;
mod descriptors;
mod fastopen;
mod idle;
mod shared_socket;

use common::descriptors as open_descriptors;
use deaf::Deaf;

use crate::common::prelude::*;

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

const PATIENCE: Duration = Duration::from_secs(60);

fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    LocalExecutor::default()
        .run(async { timeout(patient(PATIENCE), test).await })
        .expect("the test's operations succeed in time")
}

/// Runs one test at a time.
fn alone<T>(test: impl FnOnce() -> T) -> T {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    test()
}

/// As [`run`], one test at a time.
fn run_alone(test: impl AsyncFnOnce() -> Result) {
    alone(|| run(test()));
}

/// Waits until as many descriptors are open as `expected`: the kernel takes its turn of the reactor
/// to release what was cancelled.
async fn back_to(expected: usize) {
    let mut open = open_descriptors();
    for _ in 0..1000 {
        if open == expected {
            return;
        }
        sleep(Duration::from_millis(1)).await;
        open = open_descriptors();
    }
    panic!("{open} descriptors are open in place of {expected}");
}

#[run_test(run_alone)]
async fn futures_dropped_in_any_state_leave_no_descriptor() {
    let deaf = Deaf::new();
    let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
    let address = listener.local_addr()?;
    let (mut stream, mut peer) = {
        let peer = std::net::TcpStream::connect(address)?;
        (listener.accept().await?, peer)
    };
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let before = open_descriptors();
    for round in 0..1000_u32 {
        let polls = round % 4;
        poll_and_drop(polls, TcpStream::connect(deaf.address)).await;
        poll_and_drop(polls, TcpStream::connect_timeout(deaf.address, PATIENCE)).await;
        // Connects in the end, if it is given the time; the result is not taken.
        poll_and_drop(polls, TcpStream::connect(address)).await;
        poll_and_drop(polls, listener.accept()).await;
        poll_and_drop(polls, stream.read(&mut [0; 8])).await;
        poll_and_drop(polls, stream.peek(&mut [0; 8])).await;
        poll_and_drop(polls, socket.recv_from(&mut [0; 8])).await;
    }
    // What was connected and not accepted is at most in the kernel's queue.
    loop {
        let accepted = listener.accept();
        pin!(accepted);
        match timeout(Duration::from_millis(20), accepted).await {
            Ok(connection) => drop(connection),
            Err(GlommioError::TimedOut(_)) => break,
            Err(error) => return Err(error),
        }
    }
    back_to(before).await;
    peer.write_all(b"still here")?;
    let mut buf = [0; 10];
    stream.read_exact(&mut buf).await?;
    assert_eq!(&buf, b"still here");
}

/// Polls `future` so many times, with a turn of the reactor in between, and drops it and its
/// output.
async fn poll_and_drop<F: Future>(polls: u32, future: F) {
    pin!(future);
    for _ in 0..polls {
        if poll_once(&mut future).await.is_some() {
            return;
        }
        sleep(Duration::from_nanos(1)).await;
    }
}

#[run_test(alone)]
fn executors_dropped_with_sockets_under_way_leave_no_descriptor() {
    let deaf = Deaf::new();
    let one_executor = || {
        LocalExecutor::default().run(async {
            let listener = Rc::new(TcpListener::bind("127.0.0.1:0").expect("a free port"));
            let address = listener.local_addr().expect("it is bound");
            let client = TcpStream::connect(address).await.expect("it listens");
            let mut server = listener.accept().await.expect("there is a client");
            let deaf = deaf.address;
            spawn_local(async move { TcpStream::connect(deaf).await }).detach();
            spawn_local(async move { listener.accept().await }).detach();
            spawn_local(async move { server.read(&mut [0; 1]).await }).detach();
            spawn_local(async move { client.peek(&mut [0; 1]).await }).detach();
            // Accepted by an operation that completes while the executor is taken down.
            drop(std::net::TcpStream::connect(address));
        });
    };
    one_executor();
    let before = open_descriptors();
    for _ in 0..100 {
        one_executor();
    }
    assert_eq!(open_descriptors(), before);
}

/// How a connection ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Here,
    There,
    Reset,
}

/// Writing to a connection that is gone is an error, and no signal that ends the process: a host
/// program not written in Rust has not told the system to ignore it.
#[run_test(alone)]
fn writing_to_a_closed_peer_raises_no_signal() {
    // SAFETY: the default disposition is installed, no handler of ours; only tests of this binary
    // could mind, and they run one at a time.
    let ignored = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        for ends in [End::Here, End::There, End::Reset] {
            let peer = std::net::TcpStream::connect(listener.local_addr()?)?;
            let mut stream = listener.accept().await?;
            if let End::Reset = ends {
                socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO))?;
            }
            drop(peer);
            if let End::Here = ends {
                stream.close().await?;
            }
            // The first may succeed, or be told of the reset.
            for _ in 0..2 {
                let _ = stream.write(b"anybody there?").await;
                sleep(Duration::from_millis(1)).await;
            }
            let plain = stream.write(b"?").await.expect_err("it was closed");
            assert_eq!(plain.kind(), io::ErrorKind::BrokenPipe, "{ends:?}");
            let slices = [io::IoSlice::new(b"?"), io::IoSlice::new(b"!")];
            let vectored = stream.write_vectored(&slices).await;
            let vectored = vectored.expect_err("it was closed");
            assert_eq!(vectored.kind(), io::ErrorKind::BrokenPipe, "{ends:?}");
        }
        Ok(())
    });
    // SAFETY: as above; this is what was there before.
    unsafe { libc::signal(libc::SIGPIPE, ignored) };
}
