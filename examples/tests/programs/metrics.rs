//! The example `metrics`, asked as Prometheus would.

#![cfg(feature = "metrics")]

use std::io::{Read, Write};

use crate::servers::{Server, await_that};

/// The body of a response with this status.
fn get(server: &Server, path: &str, status: u16) -> String {
    let mut client = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).expect("it reads");
    let mut response = String::new();
    client.read_to_string(&mut response).expect("text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    body.to_owned()
}

/// The value of `row` for each executor by its name.
fn values(body: &str, row: &str) -> Vec<(String, f64)> {
    body.lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once('{')?;
            let (labels, value) = rest.split_once("} ")?;
            let label = labels.split("name=\"").nth(1)?.split('"').next()?;
            (name == row).then(|| (label.to_owned(), value.parse().expect("a number")))
        })
        .collect()
}

#[test]
fn each_executor_has_its_rows_and_counts_on() {
    let server = Server::start(
        env!("CARGO_BIN_EXE_metrics"),
        &["--port", "0", "--threads", "2"],
    );
    let mut fired = Vec::new();
    await_that("both workers have started", || {
        fired = values(&get(&server, "/metrics", 200), "glommio_timers_fired_total");
        fired.iter().filter(|(_, fired)| *fired > 0.0).count() == 2
    });
    assert_eq!(
        fired.len(),
        3,
        "two that work and one that serves: {fired:?}"
    );
    await_that("the workers go on", || {
        let now = values(&get(&server, "/metrics", 200), "glommio_timers_fired_total");
        let has_grown = |((name, before), (same, now)): &(&(String, f64), &(String, f64))| {
            name == same && now > before
        };
        fired.iter().zip(&now).filter(has_grown).count() == 2
    });
    let body = get(&server, "/", 200);
    // A histogram's buckets add up, and the last one is the count.
    for (name, count) in values(&body, "glommio_timer_lateness_seconds_count") {
        let buckets: Vec<_> = values(&body, "glommio_timer_lateness_seconds_bucket")
            .into_iter()
            .filter_map(|(of, value)| (of == name).then_some(value))
            .collect();
        assert!(buckets.is_sorted(), "{buckets:?}");
        assert_eq!(buckets.last(), Some(&count));
    }
    for line in body.lines().filter(|line| line.starts_with("# TYPE")) {
        assert!(
            line.ends_with("counter") || line.ends_with("gauge") || line.ends_with("histogram")
        );
    }
    server.interrupt();
}

#[test]
fn other_requests_are_told_so() {
    let server = Server::start(
        env!("CARGO_BIN_EXE_metrics"),
        &["--port", "0", "--threads", "1"],
    );
    get(&server, "/nothing", 404);
    let mut client = server.connect();
    client.write_all(b"nonsense\r\n\r\n").expect("it reads");
    let mut response = String::new();
    client.read_to_string(&mut response).expect("text");
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    drop(server.connect());
    assert!(get(&server, "/metrics", 200).contains("glommio_turns_total"));
    server.interrupt();
}
