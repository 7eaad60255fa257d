//! The small examples, each as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::servers::{PATIENCE, Server, assert_closed, await_that};

/// What a program that ends by itself has printed, to both of its outputs.
fn run(binary: &str, arguments: &[&str]) -> (String, String) {
    let output = Command::new(binary).args(arguments).output();
    let output = output.expect("the binary was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    let (printed, errors) = (text(output.stdout), text(output.stderr));
    assert!(
        output.status.success(),
        "{}: {printed}{errors}",
        output.status
    );
    (printed, errors)
}

/// The burst goes on at once, and no other request before its time.
#[test]
fn requests_are_limited_to_their_rate() {
    let arguments = ["--rate", "50", "--burst", "4", "--requests", "12"];
    let (printed, _) = run(env!("CARGO_BIN_EXE_rate_limiter"), &arguments);
    let mut lines = printed.lines();
    for number in 0..12_u64 {
        let line = lines.next().expect("a line for each request");
        let time = line.strip_prefix(&format!("request {number} after "));
        let time = time.and_then(|it| it.strip_suffix(" us"));
        let time: u64 = time.and_then(|it| it.parse().ok()).expect("in their order");
        let earliest = number.saturating_sub(3) * 20_000;
        assert!(time >= earliest, "request {number} after {time} us");
    }
    assert_eq!(lines.next(), None);
}

/// A job that is under way at Ctrl-C is finished, and no new one is begun.
#[test]
fn a_shutdown_waits_for_jobs() {
    let arguments = ["--port", "0", "--patience", "50s"];
    let server = Server::start(env!("CARGO_BIN_EXE_graceful_shutdown"), &arguments);
    let mut idle = server.connect();
    let mut client = server.connect();
    client.write_all(b"nonsense\n").expect("it reads");
    let mut replies = BufReader::new(client.try_clone().expect("a descriptor"));
    let mut reply = String::new();
    replies.read_line(&mut reply).expect("a line");
    assert!(reply.starts_with("a job is a duration"), "{reply}");
    // In one piece, so that the second one is there when the first one is finished.
    client.write_all(b"700ms\n1ms\n").expect("it reads");
    // Answered after the job has begun, as both are tasks of one thread.
    let mut other = server.connect();
    other.write_all(b"1ms\n").expect("it reads");
    other.read_exact(&mut [0; 4]).expect("an answer");
    server.press_ctrl_c();
    assert_closed(&mut idle);
    let mut rest = String::new();
    replies.read_to_string(&mut rest).expect("closed well");
    // If the signal took longer than the job, the second one was done as well.
    assert!(rest.starts_with("done after 700ms\n"), "{rest}");
    let printed = server.ended();
    assert!(printed.starts_with("ending\n"), "{printed}");
    assert!(printed.contains(" finished, 0 cut off\n"), "{printed}");
}

/// Patience ends.
#[test]
fn a_shutdown_does_not_wait_for_ever() {
    let arguments = ["--port", "0", "--patience", "100ms"];
    let server = Server::start(env!("CARGO_BIN_EXE_graceful_shutdown"), &arguments);
    let mut client = server.connect();
    client.write_all(b"1ms\n1h\n").expect("it reads");
    let mut reply = String::new();
    let mut replies = BufReader::new(client);
    replies.read_line(&mut reply).expect("a line");
    // Answered after the long job has begun, as both are tasks of one thread.
    let mut other = server.connect();
    other.write_all(b"1ms\n").expect("it reads");
    other.read_exact(&mut [0; 4]).expect("an answer");
    server.press_ctrl_c();
    let begin = Instant::now();
    let printed = server.ended();
    assert!(begin.elapsed() < PATIENCE);
    assert!(printed.contains("no more patience"), "{printed}");
}

/// All primes are counted, however many workers there are.
#[test]
fn work_is_shared_out() {
    for workers in ["1", "3"] {
        let arguments = ["--workers", workers, "--below", "100000"];
        let (printed, _) = run(env!("CARGO_BIN_EXE_work_to_executors"), &arguments);
        assert!(
            printed.starts_with("9592 primes below 100000 in "),
            "{printed}"
        );
        let pieces = printed.lines().filter_map(|line| {
            let count = line.split(" did ").nth(1)?.strip_suffix(" pieces")?;
            count.parse::<u64>().ok()
        });
        assert_eq!(pieces.sum::<u64>(), 10, "{printed}");
    }
}

/// Datagrams come back, also the empty one and the longest.
#[test]
fn datagrams_come_back() {
    let server = Server::start(env!("CARGO_BIN_EXE_udp_echo"), &["--port", "0"]);
    let client = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    client.connect(server.address).expect("it has an address");
    let moment = Some(Duration::from_millis(200));
    client.set_read_timeout(moment).expect("not zero");
    let mut buffer = vec![0; 70_000];
    for length in [0, 1, 1000, 65_507] {
        let sent = crate::servers::noise(length);
        // The kernel may drop datagrams.
        await_that("an echo", || {
            client.send(&sent).expect("it listens");
            client
                .recv(&mut buffer)
                .is_ok_and(|count| buffer[..count] == sent)
        });
    }
    let printed = server.interrupt();
    let count = printed
        .strip_prefix("datagrams: ")
        .and_then(|it| it.split(',').next()?.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count >= 4), "{printed}");
}

/// The echo server serves, and closes connections of silent clients; its demonstration ends.
#[test]
fn echo_serves_and_demonstrates() {
    let arguments = ["--port", "0", "--read-timeout", "3s"];
    let server = Server::start(env!("CARGO_BIN_EXE_echo"), &arguments);
    let mut client = server.connect();
    client.write_all(b"hello").expect("it reads");
    let mut echoed = [0; 5];
    client.read_exact(&mut echoed).expect("an echo");
    assert_eq!(&echoed, b"hello");
    assert_closed(&mut client);

    let (printed, _) = run(env!("CARGO_BIN_EXE_echo"), &["--demo"]);
    for part in [
        "talker: \"goodbye\" came back",
        "silent client: the server hung up",
        "have ended",
    ] {
        assert!(printed.contains(part), "no `{part}`: {printed}");
    }
}

/// A stall is reported where the program's user sees it.
#[test]
fn shards_report_a_stall() {
    let (printed, errors) = run(env!("CARGO_BIN_EXE_shards"), &["--stall"]);
    assert!(printed.contains("requests ran"), "{printed}");
    assert!(errors.contains("WARN"), "{errors}");
    assert!(errors.contains("default"), "{errors}");
}

/// hyper's client gets what hyper's server gives, and reports what is not there.
#[test]
fn the_http_client_gets_pages() {
    let server = Server::start(env!("CARGO_BIN_EXE_http_server"), &["--port", "0"]);
    let get = |path: &str| {
        let url = format!("http://{}{path}", server.address);
        let mut command = Command::new(env!("CARGO_BIN_EXE_http_client"));
        let output = command.args([&url, "--include"]).output();
        output.expect("the binary was built for this test")
    };
    let output = get("/bytes/300000");
    assert!(output.status.success());
    assert!(output.stdout.starts_with(b"HTTP/1.1 200 OK\n"));
    let body = output.stdout.iter().rev().take_while(|&&byte| byte == b'x');
    assert_eq!(body.count(), 300_000);
    let output = get("/nothing");
    assert!(!output.status.success());
    assert!(output.stdout.starts_with(b"HTTP/1.1 404 Not Found\n"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("404"));
}
