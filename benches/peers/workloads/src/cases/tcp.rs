//! One message to and fro over a TCP connection, and bulk.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::machine::{Placement::Together, process_cpu};
use crate::samples::{microseconds, middle};
use crate::{Datagram, Listener, Network, Stream, converse, report};

const MESSAGE_BYTES: usize = 64;
const TRIPS: usize = 15_000;
const WARM_UP: usize = 1_500;

/// `tcp-rtt`, µs: two executors on two threads, one connection over loopback, one CPU; 64 bytes there and the same back,
/// the middle of 15,000 trips. `tcp-cpu`, µs: CPU time of both executors and their helpers per trip.
pub fn ping_pong<R: Network>() {
    trips::<R>("tcp", None);
}

/// `tcp-timeout-rtt`, `tcp-timeout-cpu`: the same when every read, on both sides, may take 10 s at most.
pub fn ping_pong_with_timeouts<R: Network>() {
    trips::<R>("tcp-timeout", Some(Duration::from_secs(10)));
}

fn trips<R: Network>(case: &str, read_timeout: Option<Duration>) {
    let answer = async move |mut stream: R::Stream| {
        if let Some(limit) = read_timeout {
            stream.set_read_timeout(limit);
        }
        while stream.receive(MESSAGE_BYTES).await && stream.send(MESSAGE_BYTES).await {}
    };
    let (rtt, cpu) = connected::<R, _>(MESSAGE_BYTES, answer, async move |mut stream| {
        if let Some(limit) = read_timeout {
            stream.set_read_timeout(limit);
        }
        let mut trip = async || {
            let answered = stream.send(MESSAGE_BYTES).await && stream.receive(MESSAGE_BYTES).await;
            assert!(answered, "the server answers until we leave");
        };
        middle(WARM_UP, 0, &mut trip).await;
        let cpu_before = process_cpu();
        let rtt = middle(TRIPS, 0, &mut trip).await;
        (rtt, process_cpu() - cpu_before)
    });
    report(&format!("{case}-rtt"), rtt / 1e3);
    report(&format!("{case}-cpu"), microseconds(cpu) / TRIPS as f64);
}

/// `tcp-unread-cpu`, µs: 64 bytes that are sent every 50 µs to a task that reads what has come after 64 of them;
/// CPU time of both executors for each, on one CPU.
pub fn pieces_that_wait<R: Network>() {
    const ROUNDS: usize = 60;
    const PIECES: usize = 64;
    const SPACE: Duration = Duration::from_micros(50);
    let answer = async |mut stream: R::Stream| {
        for _ in 0..ROUNDS {
            // It waits for the first, and again and again for more of them.
            for _ in 0..PIECES {
                assert!(stream.receive(MESSAGE_BYTES).await, "more is to come");
            }
            assert!(stream.send(MESSAGE_BYTES).await, "the client listens");
            R::timer(SPACE * PIECES as u32).await;
        }
    };
    let cpu = connected::<R, _>(MESSAGE_BYTES, answer, async |mut stream| {
        let before = process_cpu();
        for _ in 0..ROUNDS {
            for _ in 0..PIECES {
                assert!(stream.send(MESSAGE_BYTES).await, "the server reads");
                R::timer(SPACE).await;
            }
            assert!(stream.receive(MESSAGE_BYTES).await, "the server answers");
        }
        microseconds(process_cpu() - before) / (ROUNDS * PIECES) as f64
    });
    report("tcp-unread-cpu", cpu);
}

/// `bulk`, GB/s: one connection over loopback between two executors on two threads, one CPU; writes of 64 KiB against
/// reads of up to 64 KiB, until 1.5 GiB have arrived. The receiver's clock, after the first 128 MiB.
pub fn bulk<R: Network>() {
    const BLOCK_BYTES: usize = 64 << 10;
    const WARM_UP_BYTES: usize = 128 << 20;
    const TOTAL_BYTES: usize = 1536 << 20;
    let send = async |mut stream: R::Stream| {
        for _ in 0..TOTAL_BYTES / BLOCK_BYTES {
            assert!(
                stream.send(BLOCK_BYTES).await,
                "the receiver takes all of it"
            );
        }
    };
    let rate = connected::<R, _>(BLOCK_BYTES, send, async |mut stream| {
        let mut received_bytes = 0;
        let mut until = async |bytes| {
            while received_bytes < bytes {
                let more = stream.receive_some().await;
                assert_ne!(more, 0, "the sender stays until all is sent");
                received_bytes += more;
            }
            received_bytes
        };
        let before = until(WARM_UP_BYTES).await;
        let begin = Instant::now();
        let after = until(TOTAL_BYTES).await;
        (after - before) as f64 / begin.elapsed().as_secs_f64() / 1e9
    });
    report("bulk", rate);
}

/// One connection over loopback between two executors on one CPU: one accepts it, the other has connected.
fn connected<R: Network, T: Send + 'static>(
    buffer_bytes: usize,
    accepted: impl AsyncFnOnce(R::Stream) + Send + 'static,
    connected: impl AsyncFnOnce(R::Stream) -> T + Send + 'static,
) -> T {
    let (send_address, address) = mpsc::channel();
    let accept = async move || {
        let listener = R::listen();
        let sent = send_address.send(listener.address());
        sent.expect("the other side waits for it");
        accepted(listener.accept(buffer_bytes).await).await;
    };
    converse::<R, _>(Together, accept, async move || {
        let address = address.recv().expect("the other side sends its address");
        connected(R::connect(address, buffer_bytes).await).await
    })
}

/// `udp-rtt`, µs: two executors on two threads of one CPU, connected UDP sockets over loopback; 64 bytes there and
/// back, the middle of 15,000 trips.
pub fn datagram_ping_pong<R: Network>() {
    let (send_server, server_address) = mpsc::channel();
    let (send_client, client_address) = mpsc::channel();
    let bound = async |send: mpsc::Sender<_>, peer: mpsc::Receiver<_>| {
        let mut socket = R::bind_datagram(MESSAGE_BYTES);
        send.send(socket.address())
            .expect("the other side waits for it");
        socket
            .connect(peer.recv().expect("the other side sends it"))
            .await;
        socket
    };
    let serve = async move || {
        let mut socket = bound(send_server, client_address).await;
        for _ in 0..TRIPS + WARM_UP {
            let bytes = socket.receive().await;
            socket.send(bytes).await;
        }
    };
    let rtt = converse::<R, _>(Together, serve, async move || {
        let mut socket = bound(send_client, server_address).await;
        // Loopback drops datagrams only when a receive buffer is full or no socket is bound: neither can be here.
        let trip = async || {
            socket.send(MESSAGE_BYTES).await;
            assert_eq!(socket.receive().await, MESSAGE_BYTES);
        };
        middle(TRIPS, WARM_UP, trip).await
    });
    report("udp-rtt", rtt / 1e3);
}
