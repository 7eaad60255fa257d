//! One message to and fro over a TCP connection.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::machine::{Placement::Together, Side, process_cpu};
use crate::samples::{Samples, microseconds};
use crate::{Listener, Network, Stream, report};

const MESSAGE_BYTES: usize = 64;
const TRIPS: usize = 15_000;
const WARM_UP: usize = 1_500;

/// `tcp-rtt`, µs: two executors on two threads, one connection over loopback, one CPU; 64 bytes there and the same back,
/// the middle of 15,000 trips. `tcp-cpu`, µs: CPU time of both executors and their helpers per trip.
pub fn ping_pong<R: Network>() {
    let (rtt, cpu) = trips::<R>(None);
    report("tcp-rtt", rtt);
    report("tcp-cpu", cpu);
}

/// `tcp-timeout-rtt`, `tcp-timeout-cpu`: the same when every read, on both sides, may take 10 s at most.
pub fn ping_pong_with_timeouts<R: Network>() {
    let (rtt, cpu) = trips::<R>(Some(Duration::from_secs(10)));
    report("tcp-timeout-rtt", rtt);
    report("tcp-timeout-cpu", cpu);
}

/// `tcp-unread-cpu`, µs: 64 bytes that are sent every 50 µs to a task that reads what has come after 64 of them;
/// CPU time of both executors for each, on one CPU.
pub fn pieces_that_wait<R: Network>() {
    const ROUNDS: usize = 60;
    const PIECES: usize = 64;
    const SPACE: Duration = Duration::from_micros(50);
    let (send_address, address) = mpsc::channel();
    let server = R::start(move || async move {
        Together.bind(Side::Answerer);
        let listener = R::listen();
        send_address
            .send(listener.address())
            .expect("the client waits for it");
        let mut stream = listener.accept(MESSAGE_BYTES).await;
        for _ in 0..ROUNDS {
            // It waits for the first, and again and again for more of them.
            for _ in 0..PIECES {
                assert!(stream.receive(MESSAGE_BYTES).await, "more is to come");
            }
            assert!(stream.send(MESSAGE_BYTES).await, "the client listens");
            R::timer(SPACE * PIECES as u32).await;
        }
    });
    let address = address.recv().expect("the server sends its address");
    let client = R::start(move || async move {
        Together.bind(Side::Caller);
        let mut stream = R::connect(address, MESSAGE_BYTES).await;
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
    let cpu = client();
    server();
    report("tcp-unread-cpu", cpu);
}

/// The middle of the round trips, and the CPU time of one, both in µs.
fn trips<R: Network>(read_timeout: Option<Duration>) -> (f64, f64) {
    let (send_address, address) = mpsc::channel();
    let server = R::start(move || async move {
        Together.bind(Side::Answerer);
        let listener = R::listen();
        send_address
            .send(listener.address())
            .expect("the client waits for it");
        let mut stream = listener.accept(MESSAGE_BYTES).await;
        if let Some(limit) = read_timeout {
            stream.set_read_timeout(limit);
        }
        while stream.receive(MESSAGE_BYTES).await && stream.send(MESSAGE_BYTES).await {}
    });
    let address = address.recv().expect("the server sends its address");
    let client = R::start(move || async move {
        Together.bind(Side::Caller);
        let mut stream = R::connect(address, MESSAGE_BYTES).await;
        if let Some(limit) = read_timeout {
            stream.set_read_timeout(limit);
        }
        let mut samples = Samples::with_capacity(TRIPS);
        let mut cpu_before = process_cpu();
        for trip in 0..TRIPS + WARM_UP {
            if trip == WARM_UP {
                cpu_before = process_cpu();
                samples.forget_first(WARM_UP);
            }
            let begin = Instant::now();
            assert!(
                stream.send(MESSAGE_BYTES).await,
                "the server reads until we leave"
            );
            assert!(
                stream.receive(MESSAGE_BYTES).await,
                "the server answers until we leave"
            );
            samples.push(microseconds(begin.elapsed()));
        }
        let cpu = process_cpu() - cpu_before;
        (samples.median(), microseconds(cpu) / TRIPS as f64)
    });
    let measured = client();
    server();
    measured
}
