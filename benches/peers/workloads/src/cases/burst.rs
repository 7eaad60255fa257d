//! Messages that arrive while very many timers fire.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::expiry::{Crowd, LEAD};
use crate::machine::{Placement, Side};
use crate::samples::{Samples, microseconds};
use crate::{Listener, Network, Stream, report_all};

const PING_BYTES: usize = 64;
/// Often enough for hundreds of pings in a burst of tens of milliseconds, seldom enough for an idle executor to
/// answer one before the next.
const INTERVAL: Duration = Duration::from_micros(50);

/// `burst-ping-p99`, `-max`, µs: an executor answers pings over loopback TCP while 100,000 of its tasks, in the
/// same task queue, sleep until deadlines within one millisecond. A plain thread on the other CPU, which never
/// sleeps, sends a ping every 50 µs whether or not the last one was answered; from the instant at which a ping
/// should be sent, which is between the first deadline and the end of the last task, to its answer.
/// `burst-ping-span`, ms: how long that is.
pub fn ping_beside_burst<R: Network>() {
    let (send_start, start) = mpsc::channel();
    let span_ns = Arc::new(AtomicU64::new(u64::MAX));
    let server = {
        let span_ns = span_ns.clone();
        R::start(move || async move {
            Placement::Apart.bind(Side::Answerer);
            let listener = R::listen();
            let first = Instant::now() + LEAD;
            let crowd = Crowd::<R>::of_100k(first, Duration::from_millis(1));
            send_start
                .send((listener.address(), first))
                .expect("the client waits for it");
            let mut stream = listener.accept(PING_BYTES * 1024).await;
            let answers = R::spawn(async move {
                loop {
                    let bytes = stream.receive_some().await;
                    if bytes == 0 || !stream.send(bytes).await {
                        break;
                    }
                }
            });
            crowd.ends().await;
            span_ns.store(first.elapsed().as_nanos() as u64, Ordering::SeqCst);
            answers.await;
        })
    };

    Placement::Apart.bind(Side::Caller);
    let (address, first) = start.recv().expect("the server says when");
    let mut samples = pings(
        TcpStream::connect(address).expect("the server listens"),
        first,
        || Duration::from_nanos(span_ns.load(Ordering::SeqCst)),
    );
    server();
    let span = span_ns.load(Ordering::SeqCst) as f64 / 1e6;
    let [p99, max] = [0.99, 1.0].map(|part| samples.quantile(part));
    report_all("burst-ping", [("p99", p99), ("max", max), ("span", span)]);
}

/// Sends pings from `first` until `span` has passed since, and takes all answers.
fn pings(mut stream: TcpStream, first: Instant, span: impl Fn() -> Duration) -> Samples {
    const PATIENCE: Duration = Duration::from_secs(30);
    stream.set_nodelay(true).expect("TCP has the option");
    // A round before the measured ones: the server's task has accepted and waits.
    stream
        .write_all(&[7; PING_BYTES])
        .expect("the server reads");
    stream
        .read_exact(&mut [0; PING_BYTES])
        .expect("the server answers");
    assert!(
        Instant::now() < first,
        "arming the timers took longer than the lead: the figures would be skewed"
    );
    stream
        .set_nonblocking(true)
        .expect("sockets have the option");
    // Awake well before the first ping, and not for so long that the scheduler holds it against the thread.
    thread::sleep(first.saturating_duration_since(Instant::now() + Duration::from_millis(20)));
    let mut samples = Samples::with_capacity(100_000);
    let (mut sent, mut received_bytes) = (0_usize, 0);
    let mut received = [0; PING_BYTES * 64];
    loop {
        let due = first + INTERVAL * sent as u32;
        let may_send = due < first + span();
        if may_send && Instant::now() >= due {
            stream
                .write_all(&[7; PING_BYTES])
                .expect("a ping fits the socket's buffer");
            sent += 1;
        }
        match stream.read(&mut received) {
            Ok(bytes) => {
                assert_ne!(bytes, 0, "the server stays until the client is gone");
                received_bytes += bytes;
                while samples.len() < received_bytes / PING_BYTES {
                    let due = first + INTERVAL * samples.len() as u32;
                    samples.push(microseconds(due.elapsed()));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("reading answers: {error}"),
        }
        if !may_send && samples.len() == sent {
            return samples;
        }
        assert!(first.elapsed() < PATIENCE, "the burst does not end");
    }
}
