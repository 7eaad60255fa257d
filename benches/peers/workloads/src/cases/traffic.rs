//! Datagrams, many connections, and bulk.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Instant;

use crate::machine::{Placement, Side, other_threads_cpu};
use crate::samples::{Samples, microseconds};
use crate::{Datagram, Listener, Network, Stream, report};

const MESSAGE_BYTES: usize = 64;

/// `udp-rtt`, µs: two executors on two threads, connected UDP sockets over loopback; 64 bytes there and back, the
/// middle of 15,000 trips. `udp-rtt-apart`: on two CPUs.
pub fn datagram_ping_pong<R: Network>(placement: Placement) {
    const TRIPS: usize = 15_000;
    const WARM_UP: usize = 1_500;
    let (send_server, server_address) = mpsc::channel();
    let (send_client, client_address) = mpsc::channel();
    let server = R::start(move || async move {
        placement.bind(Side::Answerer);
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
        placement.bind(Side::Caller);
        let mut socket = R::bind_datagram(MESSAGE_BYTES);
        send_client
            .send(socket.address())
            .expect("the server waits for it");
        socket
            .connect(server_address.recv().expect("the server sends its address"))
            .await;
        // Loopback drops datagrams only when a receive buffer is full or nobody is bound: neither can be here.
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
    report(&placement.row("udp-rtt"), rtt);
}

/// `echo-cpu`, µs: a server of 64 connections sends back what it reads; a plain blocking client on another thread
/// writes 64 bytes to each connection, then reads all answers, over and over. CPU time of all threads but the
/// client's, per message echoed. `echo-cpu-apart`: on two CPUs, where the server is woken for a few messages at
/// a time and parks often.
pub fn echo_server<R: Network>(placement: Placement) {
    const CONNECTIONS: usize = 64;
    const WARM_UP: usize = 60;
    const ROUNDS: usize = 600;
    let (send_address, address) = mpsc::channel();
    let server = R::start(move || async move {
        placement.bind(Side::Answerer);
        let listener = R::listen();
        send_address
            .send(listener.address())
            .expect("the client waits for it");
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = listener.accept(MESSAGE_BYTES).await;
            connections.push(R::spawn(async move {
                loop {
                    let bytes = stream.receive_some().await;
                    if bytes == 0 || !stream.send(bytes).await {
                        break;
                    }
                }
            }));
        }
        for connection in connections {
            connection.await;
        }
    });

    placement.bind(Side::Caller);
    let address = address.recv().expect("the server sends its address");
    let mut streams: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| {
            let stream = TcpStream::connect(address).expect("the server listens");
            stream.set_nodelay(true).expect("TCP has the option");
            stream
        })
        .collect();
    let mut cpu_before = other_threads_cpu();
    for round in 0..ROUNDS + WARM_UP {
        if round == WARM_UP {
            cpu_before = other_threads_cpu();
        }
        for stream in &mut streams {
            stream
                .write_all(&[7; MESSAGE_BYTES])
                .expect("the server reads");
        }
        for stream in &mut streams {
            stream
                .read_exact(&mut [0; MESSAGE_BYTES])
                .expect("the server answers");
        }
    }
    let cpu = other_threads_cpu() - cpu_before;
    drop(streams);
    server();
    report(
        &placement.row("echo-cpu"),
        microseconds(cpu) / (ROUNDS * CONNECTIONS) as f64,
    );
}

/// `bulk`, GB/s: one connection over loopback between two executors on two threads; writes of 64 KiB against
/// reads of up to 64 KiB, until 1.5 GiB have arrived. The receiver's clock, after the first 128 MiB.
/// `bulk-apart`: on two CPUs.
pub fn bulk<R: Network>(placement: Placement) {
    const BLOCK_BYTES: usize = 64 << 10;
    const WARM_UP_BYTES: usize = 128 << 20;
    const TOTAL_BYTES: usize = 1536 << 20;
    let (send_address, address) = mpsc::channel();
    let receiver = R::start(move || async move {
        placement.bind(Side::Answerer);
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
        placement.bind(Side::Caller);
        let mut stream = R::connect(address, BLOCK_BYTES).await;
        for _ in 0..TOTAL_BYTES / BLOCK_BYTES {
            assert!(
                stream.send(BLOCK_BYTES).await,
                "the receiver takes all of it"
            );
        }
    });
    sender();
    report(&placement.row("bulk"), receiver());
}

fn some(bytes: usize) -> usize {
    assert_ne!(bytes, 0, "the sender stays until all is sent");
    bytes
}
