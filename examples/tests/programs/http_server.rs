//! The example `http_server`, asked by clients that are nothing but sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{Server, assert_closed, await_that, is_closed, noise, reset};

fn start(arguments: &[&str]) -> Server {
    let arguments = [&["--port", "0"], arguments].concat();
    Server::start(env!("CARGO_BIN_EXE_http_server"), &arguments)
}

/// Reads one response: its status and its body.
fn response(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)
        .expect("heads are text")
        .to_ascii_lowercase();
    let number = |text: &str| text.trim().parse::<usize>().expect("a number");
    let status = head.strip_prefix("http/1.1 ").expect("HTTP/1.1");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; number(length.expect("a length"))];
    stream.read_exact(&mut body).expect("the whole body");
    (number(&status[..3]) as u16, body)
}

fn get(stream: &mut TcpStream, path: &str) -> (u16, Vec<u8>) {
    stream
        .write_all(request(path).as_bytes())
        .expect("it reads");
    response(stream)
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// One connection carries many requests, one after the other.
#[test]
fn a_connection_is_kept_alive() {
    let server = start(&[]);
    let mut client = server.connect();
    for _ in 0..3 {
        let (status, body) = get(&mut client, "/");
        assert_eq!(status, 200);
        assert_eq!(body, b"hello from one thread per core\n");
    }
    assert!(!is_closed(&mut client));
    drop(client);
    let last = server.interrupt();
    assert!(
        last.starts_with("3 requests on 1 connections, of which 0 "),
        "{last}"
    );
}

/// Clients that take all descriptors keep the server from accepting, and do not end it.
#[test]
fn a_server_without_descriptors_goes_on_when_they_come_back() {
    const LIMIT: usize = 64;
    let limited = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    let binary = env!("CARGO_BIN_EXE_http_server");
    let server = Server::start("bash", &["-c", &limited, binary, "--port", "0"]);
    let clients: Vec<_> = (0..LIMIT).map(|_| server.connect()).collect();
    // It may have inherited some beyond its limit.
    await_that("no descriptor left", || server.descriptors() >= LIMIT);
    // Its connection waits in the queue of the listener.
    let mut late = server.connect();
    drop(clients);
    assert_eq!(get(&mut late, "/").0, 200);
    server.interrupt();
}

/// Requests that come at once are answered in their order.
#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start(&[]);
    let mut client = server.connect();
    let lengths = [5, 0, 70_000, 1];
    let requests: String = lengths
        .iter()
        .map(|length| request(&format!("/bytes/{length}")))
        .collect();
    client.write_all(requests.as_bytes()).expect("it reads");
    for length in lengths {
        let (status, body) = response(&mut client);
        assert_eq!((status, body.len()), (200, length));
        assert!(body.iter().all(|&byte| byte == b'x'));
    }
}

/// What is not there, or makes no sense, is answered, and the connection goes on.
#[test]
fn wrong_requests_are_told_so() {
    let server = start(&[]);
    let mut client = server.connect();
    for (path, expected) in [
        ("/nothing", 404),
        ("/bytes/many", 400),
        ("/bytes/-1", 400),
        ("/bytes/99999999999999999999", 400),
        ("/slow/", 400),
        ("/echo", 404),
        ("/slow/1", 200),
    ] {
        assert_eq!(get(&mut client, path).0, expected, "{path}");
    }
}

/// A mebibyte comes back as it went, while it is still being sent.
#[test]
fn an_echo_returns_every_byte() {
    let server = start(&[]);
    let sent = noise(1 << 20);
    let mut client = server.connect();
    let mut sender = client.try_clone().expect("a descriptor is left");
    let body = sent.clone();
    let sending = thread::spawn(move || {
        let head = format!(
            "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        sender.write_all(head.as_bytes()).expect("it reads");
        sender.write_all(&body).expect("it reads");
    });
    let (status, echoed) = response(&mut client);
    sending.join().expect("all was sent");
    assert_eq!(status, 200);
    assert!(echoed == sent, "the bytes differ");
}

/// A client that sends the head of its request byte by byte is cut off when the time for the whole
/// head is over, and never before; others are served meanwhile.
#[test]
fn a_slow_head_is_cut_off_while_others_are_served() {
    const LIMIT: Duration = Duration::from_millis(300);
    let server = start(&["--header-timeout", "300ms"]);
    let begin = Instant::now();
    let mut loris = server.connect();
    loris
        .write_all(b"GET / HTTP/1.1\r\nX-Slow: ")
        .expect("it reads");
    let mut served = 0;
    await_that("the slow client is cut off", || {
        assert_eq!(get(&mut server.connect(), "/").0, 200);
        served += 1;
        // Fails once it is cut off, which the read then finds.
        let _ = loris.write_all(b"z");
        is_closed(&mut loris)
    });
    assert!(begin.elapsed() >= LIMIT, "cut off early");
    assert!(begin.elapsed() < HYPERS_LIMIT, "cut off by another limit");
    assert!(served > 1);
}

/// A connection on which no request comes is closed.
#[test]
fn an_idle_connection_is_closed() {
    let server = start(&["--header-timeout", "200ms"]);
    let before = server.descriptors();
    let begin = Instant::now();
    let mut silent = server.connect();
    let mut kept_alive = server.connect();
    assert_eq!(get(&mut kept_alive, "/").0, 200);
    for client in [&mut silent, &mut kept_alive] {
        assert_closed(client);
    }
    assert!(begin.elapsed() < HYPERS_LIMIT, "closed by another limit");
    server.await_descriptors(before);
}

/// The socket's read timeout ends a connection whose body does not come.
#[test]
fn a_body_that_stalls_is_given_up() {
    let server = start(&["--io-timeout", "200ms"]);
    let before = server.descriptors();
    let mut client = server.connect();
    client
        .write_all(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        .expect("it reads");
    let mut answer = Vec::new();
    // The end or a reset, after what was echoed so far.
    let _ = client.read_to_end(&mut answer);
    assert!(!answer.ends_with(b"\r\n\r\nabcdefghij"));
    server.await_descriptors(before);
    // Answered after the other connection was counted: they share an executor.
    let mut bystander = server.connect();
    assert_eq!(get(&mut bystander, "/").0, 200);
    let last = server.interrupt();
    assert!(last.starts_with("2 requests on 2 connections"), "{last}");
    assert!(!last.contains("of which 0 "), "{last}");
}

/// Clients that reset, send nonsense or leave in the middle end nothing but their own connections.
#[test]
fn bad_clients_do_not_affect_others() {
    let server = start(&[]);
    let mut bystander = server.connect();
    assert_eq!(get(&mut bystander, "/").0, 200);
    let before = server.descriptors();
    let slow = request("/slow/60000");
    let large = request("/bytes/60000000");
    for sent in [
        "",
        "GET / HT",
        "\u{16}\u{3}\u{1} this is no HTTP\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        &slow,
        &large,
    ] {
        let mut resetting = server.connect();
        resetting.write_all(sent.as_bytes()).expect("it reads");
        let mut leaving = server.connect();
        leaving.write_all(sent.as_bytes()).expect("it reads");
        assert_eq!(get(&mut bystander, "/").0, 200);
        reset(resetting);
        drop(leaving);
        assert_eq!(get(&mut bystander, "/").0, 200);
    }
    server.await_descriptors(before);
}

/// Each connection gives its descriptor back.
#[test]
fn a_thousand_connections_leave_no_descriptor() {
    let server = start(&[]);
    let mut client = server.connect();
    assert_eq!(get(&mut client, "/").0, 200);
    let with_one = server.descriptors();
    for _ in 0..1000 {
        assert_eq!(get(&mut server.connect(), "/").0, 200);
    }
    server.await_descriptors(with_one);
    assert_eq!(get(&mut client, "/").0, 200);
    drop(client);
    let last = server.interrupt();
    assert!(
        last.starts_with("1002 requests on 1001 connections, of which 0 "),
        "{last}"
    );
}

/// Two executors listen on one port.
#[test]
fn two_executors_serve() {
    if thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: each executor wants a CPU of its own, and there is one");
        return;
    }
    let server = start(&["--threads", "2"]);
    let mut clients: Vec<TcpStream> = (0..32).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(get(client, "/slow/1").0, 200);
    }
    let last = server.interrupt();
    assert!(
        last.starts_with("32 requests on 32 connections, of which 0 "),
        "{last}"
    );
}

/// The limit that hyper has for heads if it is told none.
const HYPERS_LIMIT: Duration = Duration::from_secs(30);

/// At the limit a client waits in the backlog, and is served when another one has left.
#[test]
fn no_more_connections_than_allowed_are_served() {
    let server = start(&["--max-connections", "2"]);
    let (mut one, mut two) = (server.connect(), server.connect());
    assert_eq!(get(&mut one, "/").0, 200);
    assert_eq!(get(&mut two, "/").0, 200);
    let mut three = server.connect();
    three.write_all(request("/").as_bytes()).expect("buffered");
    for _ in 0..50 {
        assert_eq!(get(&mut one, "/").0, 200);
        assert_eq!(get(&mut two, "/").0, 200);
    }
    three.set_nonblocking(true).expect("a socket");
    let error = three.peek(&mut [0]).expect_err("it waits");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    three.set_nonblocking(false).expect("a socket");
    drop(one);
    assert_eq!(response(&mut three).0, 200);
}

/// Asks for 800 ms of computing at once, and returns how many requests were served and refused.
fn served_and_refused(server: &Server) -> (usize, usize) {
    let mut clients: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for client in &mut clients {
        let requests = request("/compute/1000").repeat(20);
        client.write_all(requests.as_bytes()).expect("it reads");
    }
    let statuses: Vec<_> = (clients.iter_mut())
        .flat_map(|client| [(); 20].map(|()| response(client).0))
        .collect();
    let count = |wanted| statuses.iter().filter(|&&it| it == wanted).count();
    (count(200), count(503))
}

#[test]
fn an_overloaded_server_refuses_if_it_may() {
    let server = start(&["--shed"]);
    let (served, refused) = served_and_refused(&server);
    assert_eq!(served + refused, 800);
    assert!(served > 0 && refused > 0, "{served} served");
    // It is over when the load is.
    let mut client = server.connect();
    await_that("a request is served", || get(&mut client, "/").0 == 200);
}

#[test]
fn without_the_option_all_are_served() {
    assert_eq!(served_and_refused(&start(&[])), (800, 0));
}
