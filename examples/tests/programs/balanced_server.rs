//! The example `balanced_server`: even shares, and bugs that end no more than they must.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::servers::{Server, await_that};

fn start(shards: &str) -> Server {
    let arguments = ["--port", "0", "--shards", shards];
    Server::start(env!("CARGO_BIN_EXE_balanced_server"), &arguments)
}

/// The body of an answer; `None` if the connection ends first.
fn get(client: &mut TcpStream, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"connections\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        answer.push(byte[0]);
    }
    let answer = String::from_utf8(answer).expect("text");
    Some(answer.rsplit("\r\n\r\n").next()?.to_owned())
}

/// The shard that serves it.
fn shard(client: &mut TcpStream) -> Option<usize> {
    let answer = get(client, "/")?;
    answer.split(' ').nth(1)?.parse().ok()
}

#[test]
fn every_shard_has_as_many_connections_as_any_other() {
    let server = start("4");
    // One after the other is served before the next comes: all shards have begun by the last.
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    await_that("all shards serve", || {
        clients.push(server.connect());
        let mut shares = BTreeMap::new();
        for client in &mut clients {
            *shares.entry(shard(client)).or_insert(0) += 1;
        }
        shares.len() == 4
    });
    // Those that had begun first got all so far; from here on all are filled up.
    let mut shares = BTreeMap::new();
    for _ in 0..clients.len() * 3 {
        clients.push(server.connect());
        shard(clients.last_mut().expect("just pushed")).expect("it is served");
    }
    for client in &mut clients {
        *shares.entry(shard(client)).or_insert(0) += 1;
    }
    let (least, most) = (shares.values().min(), shares.values().max());
    let spread = most.expect("four") - least.expect("four");
    assert!(spread <= 1, "{shares:?}");
}

#[test]
fn a_handler_that_panics_ends_its_connection_alone() {
    let server = start("1");
    let (mut other, mut bad) = (server.connect(), server.connect());
    assert_eq!(shard(&mut other), Some(0));
    assert_eq!(get(&mut bad, "/panic"), None);
    assert_eq!(shard(&mut other), Some(0));
    assert_eq!(shard(&mut server.connect()), Some(0));
}

#[test]
fn a_shard_that_dies_is_started_again() {
    let server = start("1");
    for start in 0..3 {
        let mut client = server.connect();
        assert_eq!(shard(&mut client), Some(start));
        // The answer may be lost with the executor.
        get(&mut client, "/die");
        assert_eq!(shard(&mut client), None, "its connections end with it");
    }
    assert_eq!(shard(&mut server.connect()), Some(3));
}
