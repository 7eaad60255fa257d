//! The servers of HTTP: `http_server`, `balanced_server`, `metrics`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::servers::{Server, assert_closed, await_that, binary, is_closed, noise, reset};

pub fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Reads one response: its status and its body. `None` if the connection ends first.
pub fn response(stream: &mut TcpStream) -> Option<(u16, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("heads are text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.expect("a length").parse().expect("a number")];
    stream.read_exact(&mut body).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ").expect("HTTP/1.1");
    Some((status[..3].parse().expect("a number"), body))
}

fn get(stream: &mut TcpStream, path: &str) -> Option<(u16, String)> {
    stream.write_all(request(path).as_bytes()).ok()?;
    let (status, body) = response(stream)?;
    Some((status, String::from_utf8(body).expect("text")))
}

pub fn status(stream: &mut TcpStream, path: &str) -> u16 {
    get(stream, path).expect("an answer").0
}

/// Clients that take all descriptors keep the server from accepting, and do not end it.
#[test]
fn a_server_without_descriptors_goes_on_when_they_come_back() {
    const LIMIT: usize = 64;
    let limited = format!("ulimit -n {LIMIT}; exec \"$0\" \"$@\"");
    let program = binary("http_server");
    let program = program.to_str().expect("text");
    let arguments = ["-c", &limited, program, "--port", "0", "--shards", "1"];
    let server = Server::start("bash", &arguments);
    let clients: Vec<_> = (0..LIMIT).map(|_| server.connect()).collect();
    // It may have inherited some beyond its limit.
    await_that("no descriptor left", || server.descriptors() >= LIMIT);
    // Its connection waits in the queue of the listener.
    let mut late = server.connect();
    drop(clients);
    assert_eq!(status(&mut late, "/"), 200);
    server.interrupt();
}

/// What is not there, or makes no sense, is answered, and the connection goes on.
#[test]
fn wrong_requests_are_told_so() {
    let server = Server::of("http_server", &[]);
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
        assert_eq!(status(&mut client, path), expected, "{path}");
    }
    drop(client);
    let last = server.interrupt();
    assert!(
        last.starts_with("7 requests on 1 connections, of which 0 "),
        "{last}"
    );
}

/// A mebibyte comes back as it went, while it is still being sent.
#[test]
fn an_echo_returns_every_byte() {
    let server = Server::of("http_server", &[]);
    let sent = noise(1 << 20);
    let mut client = server.connect();
    let mut sender = client.try_clone().expect("a descriptor is left");
    thread::scope(|scope| {
        scope.spawn(|| {
            let length = sent.len();
            let head =
                format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
            sender.write_all(head.as_bytes()).expect("it reads");
            sender.write_all(&sent).expect("it reads");
        });
        let (status, echoed) = response(&mut client).expect("an answer");
        assert_eq!(status, 200);
        assert!(echoed == sent, "the bytes differ");
    });
}

/// The head of a request, and a body, have their time: `Connections`' limit and the socket's.
#[test]
fn slow_clients_are_cut_off_and_not_before_their_time() {
    const LIMIT: Duration = Duration::from_millis(300);
    let arguments = ["--header-timeout", "300ms", "--io-timeout", "301ms"];
    let server = Server::of("http_server", &arguments);
    let begin = Instant::now();
    let (mut silent, mut stalled) = (server.connect(), server.connect());
    let body = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc";
    stalled.write_all(body).expect("it reads");
    assert_eq!(status(&mut server.connect(), "/"), 200, "others are served");
    assert_closed(&mut silent);
    assert!(begin.elapsed() >= LIMIT, "cut off early");
    let mut answer = Vec::new();
    // The end or a reset, after what was echoed so far.
    let _ = stalled.read_to_end(&mut answer);
    assert!(!answer.ends_with(b"abcdefghij"));
    let last = server.interrupt();
    assert!(last.starts_with("2 requests on 3 connections"), "{last}");
    assert!(!last.contains("of which 0 "), "{last}");
}

/// Clients that reset, send nonsense or leave in the middle end nothing but their own connections,
/// whose descriptors come back.
#[test]
fn bad_clients_do_not_affect_others() {
    let server = Server::of("http_server", &["--shards", "1"]);
    let mut bystander = server.connect();
    assert_eq!(status(&mut bystander, "/"), 200);
    let before = server.descriptors();
    for sent in [
        "",
        "GET / HT",
        "\u{16}\u{3}\u{1} this is no HTTP\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        &request("/slow/60000"),
        &request("/bytes/60000000"),
    ] {
        let (mut resetting, mut leaving) = (server.connect(), server.connect());
        resetting.write_all(sent.as_bytes()).expect("it reads");
        leaving.write_all(sent.as_bytes()).expect("it reads");
        assert_eq!(status(&mut bystander, "/"), 200);
        reset(resetting);
        drop(leaving);
        assert_eq!(status(&mut bystander, "/"), 200);
    }
    for _ in 0..300 {
        assert_eq!(status(&mut server.connect(), "/"), 200);
    }
    server.await_descriptors(before);
}

/// At the limit a client waits, and is served when another one has left.
#[test]
fn no_more_connections_than_allowed_are_served() {
    let server = Server::of("http_server", &["--max-connections", "2", "--shards", "1"]);
    let (mut one, mut two) = (server.connect(), server.connect());
    assert_eq!(status(&mut one, "/"), 200);
    assert_eq!(status(&mut two, "/"), 200);
    let mut three = server.connect();
    three.write_all(request("/").as_bytes()).expect("buffered");
    for _ in 0..50 {
        assert_eq!(status(&mut one, "/"), 200);
        assert_eq!(status(&mut two, "/"), 200);
    }
    three.set_nonblocking(true).expect("a socket");
    let error = three.peek(&mut [0]).expect_err("it waits");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    three.set_nonblocking(false).expect("a socket");
    drop(one);
    assert_eq!(response(&mut three).expect("an answer").0, 200);
}

/// Asks for 800 ms of computing at once, and returns how many requests were served and refused.
fn served_and_refused(server: &Server) -> (usize, usize) {
    let mut clients: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for client in &mut clients {
        let requests = request("/compute/1000").repeat(20);
        client.write_all(requests.as_bytes()).expect("it reads");
    }
    let statuses = clients
        .iter_mut()
        .flat_map(|client| [(); 20].map(|()| response(client).expect("an answer").0));
    let statuses: Vec<_> = statuses.collect();
    let count = |wanted| statuses.iter().filter(|&&it| it == wanted).count();
    (count(200), count(503))
}

#[test]
fn an_overloaded_server_refuses_if_it_may() {
    let server = Server::of("http_server", &["--shards", "1"]);
    assert_eq!(served_and_refused(&server), (800, 0));
    let server = Server::of("http_server", &["--shards", "1", "--shed"]);
    let (served, refused) = served_and_refused(&server);
    assert_eq!(served + refused, 800);
    assert!(served > 0 && refused > 0, "{served} served");
    // It is over when the load is.
    let mut client = server.connect();
    await_that("a request is served", || status(&mut client, "/") == 200);
}

/// The shard of `balanced_server` that serves a client.
fn shard(client: &mut TcpStream) -> Option<usize> {
    get(client, "/")?.1.split(' ').nth(1)?.parse().ok()
}

#[test]
fn every_shard_has_as_many_connections_as_any_other() {
    let server = Server::of("balanced_server", &["--shards", "4"]);
    let mut clients = Vec::new();
    let mut shares = BTreeMap::new();
    // One after the other is served before the next comes: all shards have begun by the last.
    await_that("all shards serve", || {
        clients.push(server.connect());
        shares.clear();
        for client in &mut clients {
            *shares.entry(shard(client)).or_insert(0) += 1;
        }
        shares.len() == 4
    });
    // Those that had begun first got all so far; from here on all are filled up.
    for _ in 0..clients.len() * 3 {
        clients.push(server.connect());
        let served = shard(clients.last_mut().expect("just pushed"));
        *shares.entry(served).or_insert(0) += 1;
    }
    let (least, most) = (shares.values().min(), shares.values().max());
    assert!(
        most.expect("four") - least.expect("four") <= 1,
        "{shares:?}"
    );
}

#[test]
fn a_shard_that_dies_is_started_again() {
    let server = Server::of("balanced_server", &["--shards", "1"]);
    for start in 0..3 {
        let mut client = server.connect();
        assert_eq!(shard(&mut client), Some(start));
        let mut bad = server.connect();
        assert_eq!(get(&mut bad, "/panic"), None);
        assert_eq!(
            shard(&mut client),
            Some(start),
            "a handler that panics ends its own"
        );
        // The answer may be lost with the executor.
        get(&mut client, "/die");
        assert_eq!(shard(&mut client), None, "its connections end with it");
    }
    assert_eq!(shard(&mut server.connect()), Some(3));
}

/// What is no HTTP/2 is told so or cut off, and the server goes on.
#[test]
fn http2_answers_and_cuts_off_what_is_none() {
    let server = Server::of("http_server", &["--http2"]);
    for sent in [
        &request("/")[..],
        "\u{16}\u{3}\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ] {
        let mut client = server.connect();
        client.write_all(sent.as_bytes()).expect("it reads");
        // An end or a reset.
        let _ = client.read_to_end(&mut Vec::new());
        assert!(is_closed(&mut client));
    }
    let url = format!("http://{}/bytes/210", server.address);
    let curl = std::process::Command::new("curl")
        .args(["-s", "--http2-prior-knowledge", &url])
        .output();
    match curl {
        Ok(output) => assert_eq!(output.stdout, [b'x'; 210]),
        Err(error) => return eprintln!("skipped in part: there is no curl: {error}"),
    }
    let last = server.interrupt();
    assert!(last.starts_with("1 requests on "), "{last}");
}

#[cfg(feature = "metrics")]
#[test]
fn metrics_count_on() {
    let server = Server::of("metrics", &["--shards", "2"]);
    let mut client = server.connect();
    assert_eq!(status(&mut client, "/nothing"), 404);
    let mut fired = || {
        let (_, text) = get(&mut client, "/metrics").expect("an answer");
        let rows = text
            .lines()
            .filter(|it| it.starts_with("glommio_timers_fired_total{"));
        let values = rows.filter_map(|it| it.rsplit(' ').next()?.parse::<u64>().ok());
        values.collect::<Vec<_>>()
    };
    let mut before = Vec::new();
    await_that("both have started", || {
        before = fired();
        before.iter().filter(|&&count| count > 0).count() >= 2
    });
    await_that("they go on", || {
        let grown = before
            .iter()
            .zip(fired())
            .filter(|(before, now)| now > *before);
        grown.count() >= 2
    });
}
