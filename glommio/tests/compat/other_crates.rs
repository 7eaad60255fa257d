//! The types of other crates that programs meet in our signatures: one line each that no longer
//! builds when a release of another number is taken in.

use std::net::{TcpListener as StdListener, TcpStream as StdStream, UdpSocket as StdUdp};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use futures_lite::StreamExt;
use glommio::net::{TcpListener, TcpStream, UdpSocket};
use glommio::{PoolThreadHandles, RingIoStats, StallDetection};

fn is_stream<S: futures_core::Stream>(_: &S) {}
fn reads_and_writes<S>()
where
    S: futures_io::AsyncRead + futures_io::AsyncBufRead + futures_io::AsyncWrite,
{
}

#[test]
fn streams_are_those_of_futures() {
    glommio::LocalExecutor::default().run(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut incoming = listener.incoming();
        is_stream(&incoming);
        let address = listener.local_addr().expect("it is bound");
        let _client = StdStream::connect(address).expect("the listener listens");
        let accepted = incoming.next().await.expect("connections never end");
        accepted.expect("the client has connected");
    });
    reads_and_writes::<TcpStream<glommio::net::Preallocated>>();
}

#[test]
fn sockets_are_made_of_those_of_socket2() {
    glommio::LocalExecutor::default().run(async {
        let listener = StdListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let client = StdStream::connect(address).expect("the listener listens");
        let stream = TcpStream::from(socket2::Socket::from(client));
        assert_eq!(stream.peer_addr().expect("it is connected"), address);

        let udp = StdUdp::bind("127.0.0.1:0").expect("a free port");
        let address = udp.local_addr().expect("it is bound");
        let socket = UdpSocket::from(socket2::Socket::from(udp));
        assert_eq!(socket.local_addr().expect("it is bound"), address);
    });
}

/// Handlers take what was detected apart by these names, and print the trace themselves.
#[allow(dead_code, reason = "building it is the test")]
fn trace(detection: StallDetection<'_>) -> (backtrace::Backtrace, String) {
    let StallDetection {
        executor,
        queue_handle,
        queue_name,
        trace,
        budget,
        overage,
    } = detection;
    let took: Duration = budget + overage;
    let (executor, queue): (usize, usize) = (executor, queue_handle.index());
    (trace, format!("{executor} {queue} {queue_name} {took:?}"))
}

#[allow(dead_code, reason = "building it is the test")]
const SKETCHES: [fn(&RingIoStats) -> &sketches_ddsketch::DDSketch; 3] = [
    RingIoStats::pre_reactor_io_scheduler_latency_us,
    RingIoStats::io_latency_us,
    RingIoStats::post_reactor_io_scheduler_latency_us,
];

/// The two macros are those of enclose 1 and scopeguard 1, under our name.
#[test]
fn macros_do_what_those_crates_say() {
    let text = String::from("kept");
    let length = glommio::enclose!((text) move || text.len());
    assert_eq!((length(), text.len()), (4, 4));

    let done = std::cell::Cell::new(false);
    {
        glommio::defer! { done.set(true); }
        assert!(!done.get());
    }
    assert!(done.get());
}

#[allow(dead_code, reason = "building it is the test")]
const HANDLES: fn(&PoolThreadHandles<u8>) -> &Vec<Shard> = PoolThreadHandles::handles;
type Shard = thread::JoinHandle<glommio::Result<u8, ()>>;

/// Of the standard library: `?` into `io::Error`, `thread::Thread`, and wakers of any making.
#[test]
fn the_standard_library_fits() {
    fn as_io_error() -> std::io::Result<usize> {
        let handle = glommio::LocalExecutorBuilder::default()
            .spawn(|| async { std::future::poll_fn(|cx| Waker::clone(cx.waker()).into()).await })?;
        let thread: &thread::Thread = handle.thread();
        let name = thread.name().unwrap_or_default().len();
        let waker: Waker = handle.join()?;
        drop(waker);
        Ok(name)
    }
    assert!(as_io_error().expect("an executor") > "unnamed-".len());
}
