//! The example `proxy`, between sockets of this test on both sides.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::servers::{Server, await_that, is_closed, limit, noise, reset};

/// A proxy and its upstream, which is this test.
struct Between {
    proxy: Server,
    upstream: TcpListener,
}

impl Between {
    fn start(options: &[&str]) -> Between {
        let upstream = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = upstream.local_addr().expect("it is bound").to_string();
        let arguments = [&["127.0.0.1:0", &address], options].concat();
        Between {
            proxy: Server::start(env!("CARGO_BIN_EXE_proxy"), &arguments),
            upstream,
        }
    }

    /// Both ends of a connection through the proxy.
    fn connection(&self) -> (TcpStream, TcpStream) {
        let client = self.proxy.connect();
        let (server, _) = self.upstream.accept().expect("the proxy connects");
        limit(&server);
        (client, server)
    }

    /// As [`connection`](Self::connection), when both ends have heard of each other: a reset that
    /// comes before the proxy knows that it is connected is a failure to connect.
    fn conversation(&self) -> (TcpStream, TcpStream) {
        let (mut client, mut server) = self.connection();
        pass(&mut client, &mut server, b"knock");
        pass(&mut server, &mut client, b"enter");
        (client, server)
    }

    /// What it prints in the end, with one more connection than before, which is open.
    fn interrupt(self) -> String {
        // The upstream hears of it after the outcome of those that are closed was counted.
        let _open = self.connection();
        self.proxy.interrupt()
    }
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, word: &[u8; 5]) {
    from.write_all(word).expect("it is open");
    let mut heard = [0; 5];
    to.read_exact(&mut heard).expect("it is open");
    assert_eq!(&heard, word);
}

fn send(mut stream: &TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("it is read");
    stream.shutdown(Shutdown::Write).expect("it is open");
}

fn receive(mut stream: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it ends well");
    bytes
}

/// Megabytes go both ways at once, and arrive as they were sent.
#[test]
fn every_byte_arrives_both_ways() {
    let between = Between::start(&[]);
    let (client, server) = between.connection();
    let (there, back) = (noise(3 << 20), noise(5 << 20));
    thread::scope(|scope| {
        scope.spawn(|| send(&client, &there));
        scope.spawn(|| send(&server, &back));
        let arrived = scope.spawn(|| receive(&server));
        assert!(receive(&client) == back, "the bytes to the client differ");
        assert!(
            arrived.join().expect("it ends well") == there,
            "the bytes to the server differ"
        );
    });
    let expected = format!(
        "2 connections: 1 completed, 0 idle, 0 broken, 0 without upstream; {} bytes there, {} bytes back\n",
        there.len(),
        back.len()
    );
    assert_eq!(between.interrupt(), expected);
}

/// The end of one direction is passed on, and the other direction goes on.
#[test]
fn an_end_is_passed_on_by_itself() {
    let between = Between::start(&[]);
    let (mut client, mut server) = between.connection();
    send(&client, b"that was all");
    assert_eq!(receive(&server), b"that was all");
    for word in [b"first", b"later"] {
        pass(&mut server, &mut client, word);
    }
    server.shutdown(Shutdown::Write).expect("it is open");
    assert_eq!(receive(&client), b"");

    // And the other way round.
    let (client, server) = between.connection();
    send(&server, b"farewell");
    assert_eq!(receive(&client), b"farewell");
    send(&client, b"so long");
    assert_eq!(receive(&server), b"so long");
}

/// A client whose upstream is not there sees its connection close, and the proxy goes on.
#[test]
fn without_an_upstream_the_client_is_closed() {
    // A socket that does not listen keeps the port from other tests, and refuses who connects.
    let absent = Socket::new(Domain::IPV4, Type::STREAM, None).expect("there are descriptors");
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    absent.bind(&any.into()).expect("loopback has free ports");
    let address = absent.local_addr().expect("it is bound");
    let address = address.as_socket().expect("it is of IPv4").to_string();
    let proxy = Server::start(env!("CARGO_BIN_EXE_proxy"), &["127.0.0.1:0", &address]);
    let before = proxy.descriptors();
    for _ in 0..4 {
        assert_eq!(receive(&proxy.connect()), b"");
    }
    proxy.await_descriptors(before);
    // The last may be seen as closed before it is counted.
    let last = proxy.interrupt();
    let expected = ["3", "4"].map(|count| {
        format!("4 connections: 0 completed, 0 idle, 0 broken, {count} without upstream")
    });
    assert!(expected.iter().any(|text| last.starts_with(text)), "{last}");
}

/// A connection on which nothing moves is closed on both sides, not before its time.
#[test]
fn an_idle_connection_is_closed_on_both_sides() {
    const LIMIT: Duration = Duration::from_millis(300);
    let between = Between::start(&["--idle-timeout", "300ms"]);
    let before = between.proxy.descriptors();
    let (mut client, server) = between.connection();
    let last_byte = Instant::now();
    client.write_all(b"?").expect("it is open");
    assert_eq!(receive(&server), b"?");
    assert!(last_byte.elapsed() >= LIMIT, "closed early");
    assert_eq!(receive(&client), b"");
    between.proxy.await_descriptors(before);
    let last = between.interrupt();
    // The connection of `interrupt` may have become idle as well.
    assert!(last.starts_with("2 connections: 0 completed, "), "{last}");
    assert!(last.contains(" idle, 0 broken, 0 without"), "{last}");
    assert!(!last.contains(" 0 idle"), "{last}");
}

/// As long as one direction is at work the other may be silent, however short the timeout; when
/// both are silent, the connection ends.
#[test]
fn one_busy_direction_keeps_the_other() {
    const LIMIT: Duration = Duration::from_millis(500);
    let between = Between::start(&["--idle-timeout", "500ms"]);
    let (mut client, mut server) = between.connection();
    let begin = Instant::now();
    let mut gap_max = Duration::ZERO;
    let mut last = begin;
    // A silent client for four timeouts.
    while begin.elapsed() < 4 * LIMIT {
        if server.write_all(b"still here").is_err() {
            break;
        }
        let mut heard = [0; 10];
        let arrived = client.read_exact(&mut heard);
        gap_max = gap_max.max(last.elapsed());
        last = Instant::now();
        if gap_max >= LIMIT {
            // This machine kept us waiting: what happened then proves nothing.
            eprintln!("skipped: this test was not run for {gap_max:?}");
            return;
        }
        arrived.expect("it is not idle");
        thread::sleep(LIMIT / 20);
    }
    assert!(
        begin.elapsed() >= 4 * LIMIT,
        "closed although it was not idle"
    );
    assert_eq!(receive(&client), b"");
    assert_eq!(receive(&server), b"");
}

/// A reset on one side ends the other, and nothing remains.
#[test]
fn a_reset_ends_both_sides() {
    let between = Between::start(&[]);
    let before = between.proxy.descriptors();
    let (client, mut server) = between.conversation();
    reset(client);
    await_that("the server's side is closed", || is_closed(&mut server));
    let (mut client, server) = between.conversation();
    reset(server);
    await_that("the client's side is closed", || is_closed(&mut client));
    between.proxy.await_descriptors(before);
    let last = between.interrupt();
    assert!(
        last.starts_with("3 connections: 0 completed, 0 idle, 2 broken"),
        "{last}"
    );
}

/// A client that takes nothing for a while does not block the others; what it was sent arrives in
/// the end.
#[test]
fn a_slow_reader_does_not_block_others() {
    let between = Between::start(&[]);
    let (client, server) = between.connection();
    let sent = noise(24 << 20);
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(&server, &sent));
        // Others are served while it is stuck.
        let (other, there) = between.connection();
        send(&other, b"beside");
        assert_eq!(receive(&there), b"beside");
        assert!(receive(&client) == sent, "the bytes differ");
        sending.join().expect("all was sent");
    });
}
