//! Datagrams, and bulk.

use std::sync::mpsc;
use std::time::Instant;

use crate::machine::{Placement::Together, Side};
use crate::samples::{Samples, microseconds};
use crate::{Datagram, Listener, Network, Stream, report};

const MESSAGE_BYTES: usize = 64;

/// `udp-rtt`, µs: two executors on two threads of one CPU, connected UDP sockets over loopback; 64 bytes there and
/// back, the middle of 15,000 trips.
pub fn datagram_ping_pong<R: Network>() {
    const TRIPS: usize = 15_000;
    const WARM_UP: usize = 1_500;
    let (send_server, server_address) = mpsc::channel();
    let (send_client, client_address) = mpsc::channel();
    let server = R::start(move || async move {
        Together.bind(Side::Answerer);
        let mut socket = R::bind_datagram(MESSAGE_BYTES);
        send_server
            .send(socket.address())
            .expect("the client waits for it");
        socket
            .connect(client_address.recv().expect("the client sends its address"))
            .await;
        for _ in 0..TRIPS + WARM_UP {
            let bytes = socket.receive().await;
            socket.send(bytes).await;
        }
    });
    let client = R::start(move || async move {
        Together.bind(Side::Caller);
        let mut socket = R::bind_datagram(MESSAGE_BYTES);
        send_client
            .send(socket.address())
            .expect("the server waits for it");
        socket
            .connect(server_address.recv().expect("the server sends its address"))
            .await;
        // Loopback drops datagrams only when a receive buffer is full or no socket is bound: neither can be
        // here.
        let mut samples = Samples::with_capacity(TRIPS + WARM_UP);
        for _ in 0..TRIPS + WARM_UP {
            let begin = Instant::now();
            socket.send(MESSAGE_BYTES).await;
            assert_eq!(socket.receive().await, MESSAGE_BYTES);
            samples.push(microseconds(begin.elapsed()));
        }
        samples.forget_first(WARM_UP);
        samples.median()
    });
    let rtt = client();
    server();
    report("udp-rtt", rtt);
}

/// `bulk`, GB/s: one connection over loopback between two executors on two threads, one CPU; writes of 64 KiB against
/// reads of up to 64 KiB, until 1.5 GiB have arrived. The receiver's clock, after the first 128 MiB.
pub fn bulk<R: Network>() {
    const BLOCK_BYTES: usize = 64 << 10;
    const WARM_UP_BYTES: usize = 128 << 20;
    const TOTAL_BYTES: usize = 1536 << 20;
    let (send_address, address) = mpsc::channel();
    let receiver = R::start(move || async move {
        Together.bind(Side::Answerer);
        let listener = R::listen();
        send_address
            .send(listener.address())
            .expect("the sender waits for it");
        let mut stream = listener.accept(BLOCK_BYTES).await;
        let mut received_bytes = 0;
        while received_bytes < WARM_UP_BYTES {
            received_bytes += some(stream.receive_some().await);
        }
        let (begin, begin_bytes) = (Instant::now(), received_bytes);
        while received_bytes < TOTAL_BYTES {
            received_bytes += some(stream.receive_some().await);
        }
        (received_bytes - begin_bytes) as f64 / begin.elapsed().as_secs_f64() / 1e9
    });
    let address = address.recv().expect("the receiver sends its address");
    let sender = R::start(move || async move {
        Together.bind(Side::Caller);
        let mut stream = R::connect(address, BLOCK_BYTES).await;
        for _ in 0..TOTAL_BYTES / BLOCK_BYTES {
            assert!(
                stream.send(BLOCK_BYTES).await,
                "the receiver takes all of it"
            );
        }
    });
    sender();
    report("bulk", receiver());
}

fn some(bytes: usize) -> usize {
    assert_ne!(bytes, 0, "the sender stays until all is sent");
    bytes
}
