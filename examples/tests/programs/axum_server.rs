//! The example `axum_server`, asked by clients that are nothing but sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::servers::{Server, assert_closed, await_that};

fn start(arguments: &[&str]) -> Server {
    let arguments = [&["--port", "0"], arguments].concat();
    Server::start(env!("CARGO_BIN_EXE_axum_server"), &arguments)
}

/// Sends a request, and reads its response: status and body.
fn ask(client: &mut TcpStream, request: &str) -> (u16, String) {
    client.write_all(request.as_bytes()).expect("it reads");
    response(client)
}

fn response(client: &mut TcpStream) -> (u16, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("heads are text");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.expect("a length").parse().expect("a number");
    let mut body = vec![0; length];
    client.read_exact(&mut body).expect("the whole body");
    let status = head.strip_prefix("HTTP/1.1 ").expect("HTTP/1.1");
    let body = String::from_utf8(body).expect("bodies are text");
    (status[..3].parse().expect("a number"), body)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

#[test]
fn routes_and_their_extractors() {
    let server = start(&["--shards", "1"]);
    let mut client = server.connect();
    assert_eq!(
        ask(&mut client, &get("/")),
        (200, "1 hits on this shard\n".to_owned())
    );
    assert_eq!(ask(&mut client, &get("/")).1, "2 hits on this shard\n");
    let post = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\na body";
    assert_eq!(ask(&mut client, post), (200, "a body".to_owned()));
    assert_eq!(
        ask(&mut client, &get("/slow/1")),
        (200, "waited 1 ms\n".to_owned())
    );
    assert_eq!(ask(&mut client, &get("/slow/long")).0, 400);
    assert_eq!(ask(&mut client, &get("/nothing")).0, 404);
    drop(client);
    assert_eq!(server.interrupt(), "ended\n");
}

/// Each executor has its own state, and connections of its own.
#[test]
fn shards_share_nothing() {
    let server = start(&["--shards", "3"]);
    // Connections are balanced, but at the start some executors may not accept yet.
    let mut clients = Vec::new();
    let mut counters = 0;
    await_that("a counter for each executor", || {
        let mut client = server.connect();
        let (_, body) = ask(&mut client, &get("/"));
        counters += u32::from(body == "1 hits on this shard\n");
        clients.push(client);
        counters == 3
    });
    server.interrupt();
}

/// And its permit is free again, since the limit is around the router.
#[test]
fn a_handler_that_takes_too_long_is_given_up() {
    let limits = ["--request-timeout", "50ms", "--max-requests", "1"];
    let server = start(&[&["--shards", "1"][..], &limits].concat());
    let mut client = server.connect();
    let begin = Instant::now();
    let (status, body) = ask(&mut client, &get("/slow/3600000"));
    assert_eq!(status, 504, "{body}");
    assert!(begin.elapsed() >= Duration::from_millis(50));
    // The connection goes on.
    assert_eq!(ask(&mut client, &get("/slow/1")).0, 200);
    server.interrupt();
}

/// Begins a request whose handler waits for the rest of its body, and waits until it has begun: the
/// server, which allows one at a time, refuses those of `other`.
fn begin(client: &mut TcpStream, other: &mut TcpStream) {
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\na ";
    client.write_all(head.as_bytes()).expect("it reads");
    await_that("a refusal", || match ask(other, &get("/")) {
        (200, _) => false,
        (status, _) => status == 503,
    });
}

/// tower's `GlobalConcurrencyLimitLayer`, below `LoadShedLayer`.
#[test]
fn requests_above_the_limit_are_refused() {
    let server = start(&["--shards", "1", "--max-requests", "1"]);
    let (mut first, mut second) = (server.connect(), server.connect());
    begin(&mut first, &mut second);
    first.write_all(b"body").expect("it reads");
    assert_eq!(response(&mut first), (200, "a body".to_owned()));
    assert_eq!(ask(&mut second, &get("/")).0, 200, "it is free again");
    server.interrupt();
}

#[test]
fn a_panic_ends_its_connection_and_nothing_else() {
    let server = start(&["--shards", "1"]);
    let (mut first, mut second) = (server.connect(), server.connect());
    first.write_all(get("/panic").as_bytes()).expect("it reads");
    assert_closed(&mut first);
    assert_eq!(ask(&mut second, &get("/")).0, 200);
    server.interrupt();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let server = start(&["--shards", "1", "--max-requests", "1", "--grace", "1h"]);
    let (mut busy, mut idle) = (server.connect(), server.connect());
    begin(&mut busy, &mut idle);
    server.press_ctrl_c();
    assert_closed(&mut idle);
    server.press_ctrl_c();
    assert_eq!(server.end().code(), Some(1));
}

#[test]
fn requests_that_have_begun_are_answered_at_the_end() {
    let server = start(&["--shards", "1", "--max-requests", "1"]);
    let (mut busy, mut idle) = (server.connect(), server.connect());
    begin(&mut busy, &mut idle);
    server.press_ctrl_c();
    assert_closed(&mut idle);
    busy.write_all(b"body").expect("it reads");
    assert_eq!(response(&mut busy), (200, "a body".to_owned()));
    assert_closed(&mut busy);
    assert_eq!(server.ended(), "ended\n");
}
