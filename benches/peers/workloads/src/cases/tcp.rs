//! One message to and fro over a TCP connection.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::machine::{Placement, Side, process_cpu};
use crate::samples::{Samples, microseconds};
use crate::{Listener, Network, Stream, report};

const MESSAGE_BYTES: usize = 64;
const TRIPS: usize = 15_000;
const WARM_UP: usize = 1_500;

/// `tcp-rtt`, µs: two executors on two threads, one connection over loopback; 64 bytes there and the same back,
/// the middle of 15,000 trips. `tcp-cpu`, µs: CPU time of both executors and their helpers per trip.
/// `tcp-rtt-apart`, `tcp-cpu-apart`: on two CPUs.
pub fn ping_pong<R: Network>(placement: Placement) {
    let (rtt, cpu) = trips::<R>(placement, None);
    report(&placement.row("tcp-rtt"), rtt);
    report(&placement.row("tcp-cpu"), cpu);
}

/// `tcp-timeout-rtt`, `tcp-timeout-cpu`: the same when every read, on both sides, may take 10 s at most.
pub fn ping_pong_with_timeouts<R: Network>(placement: Placement) {
    let (rtt, cpu) = trips::<R>(placement, Some(Duration::from_secs(10)));
    report(&placement.row("tcp-timeout-rtt"), rtt);
    report(&placement.row("tcp-timeout-cpu"), cpu);
}

/// The middle of the round trips, and the CPU time of one, both in µs.
fn trips<R: Network>(placement: Placement, read_timeout: Option<Duration>) -> (f64, f64) {
    let (send_address, address) = mpsc::channel();
    let server = R::start(move || async move {
        placement.bind(Side::Answerer);
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
        placement.bind(Side::Caller);
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
