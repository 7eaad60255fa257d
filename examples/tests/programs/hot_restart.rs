//! The example `hot_restart`: servers that are replaced, and successors that are not what they should be.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::servers::{Server, connect};

struct Control(tempfile::TempDir);

impl Control {
    fn new() -> Control {
        Control(tempfile::tempdir().expect("there is space"))
    }

    fn path(&self) -> String {
        let path = self.0.path().join("control");
        path.to_str().expect("text").to_owned()
    }

    fn start(&self) -> Server {
        Server::of("hot_restart", &["--control", &self.path()])
    }
}

/// Sends a line; returns the number of the process that answers it.
fn ask(client: &mut BufReader<TcpStream>, line: &str) -> String {
    client.get_mut().write_all(line.as_bytes()).expect("sent");
    answer(client, line)
}

/// The number of the process that answers with `line`.
fn answer(client: &mut BufReader<TcpStream>, line: &str) -> String {
    let mut answer = String::new();
    client.read_line(&mut answer).expect("it is answered");
    let (server, echoed) = answer.split_once(' ').expect("a number and the line");
    assert_eq!(echoed, line);
    server.to_owned()
}

/// Clients that keep their connection, and clients that connect anew for each request, which all
/// come in two parts, so that a server may be left in the middle of one.
#[test]
fn clients_notice_nothing_of_ten_restarts() {
    let control = Control::new();
    let mut server = control.start();
    let (address, is_over) = (server.address, AtomicBool::new(false));
    thread::scope(|scope| {
        let client = |keeps: bool| {
            let connect = || BufReader::new(connect(address));
            let (mut client, mut servers) = (connect(), BTreeSet::new());
            while !is_over.load(Ordering::Relaxed) {
                if !keeps {
                    client = connect();
                }
                client.get_mut().write_all(b"requ").expect("sent");
                thread::sleep(Duration::from_micros(500));
                client.get_mut().write_all(b"est\n").expect("sent");
                servers.insert(answer(&mut client, "request\n"));
            }
            servers.len()
        };
        let clients: Vec<_> = (0..12)
            .map(|n| scope.spawn(move || client(n < 9)))
            .collect();
        for _ in 0..10 {
            thread::sleep(Duration::from_millis(50));
            let successor = control.start();
            assert_eq!(successor.address, address);
            assert!(std::mem::replace(&mut server, successor).end().success());
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            let servers = client.join().expect("it has noticed nothing");
            assert!(servers > 1, "served by {servers}");
        }
    });
}

#[test]
fn a_connection_goes_on_in_the_successor_in_the_middle_of_a_line() {
    let control = Control::new();
    let server = control.start();
    let mut client = BufReader::new(server.connect());
    let first = ask(&mut client, "one\n");
    client.get_mut().write_all(b"tw").expect("sent");

    let _successor = control.start();
    assert!(server.end().success());
    client.get_mut().write_all(b"o\n").expect("sent");
    assert_ne!(answer(&mut client, "two\n"), first);
}

#[test]
fn a_successor_that_dies_before_it_is_ready_changes_nothing() {
    let control = Control::new();
    let server = control.start();
    let mut client = BufReader::new(server.connect());
    let first = ask(&mut client, "one\n");
    for _ in 0..3 {
        // It gets the sockets, which this drops, and says nothing.
        let mut successor = UnixStream::connect(control.path()).expect("it listens");
        successor.read_exact(&mut [0; 1]).expect("it answers");
        drop(successor);
        assert_eq!(ask(&mut client, "two\n"), first);
        assert_eq!(ask(&mut BufReader::new(server.connect()), "new\n"), first);
    }
    // A later one takes over all the same.
    let successor = control.start();
    assert_eq!(successor.address, server.address);
    assert!(server.end().success());
    assert_ne!(ask(&mut client, "three\n"), first);
}

/// Asks for the sockets as a successor does, is chosen, and reads `count` bytes of what it is sent.
fn chosen(control: &Control, count: usize) -> UnixStream {
    let mut successor = UnixStream::connect(control.path()).expect("it listens");
    successor.read_exact(&mut [0; 1]).expect("the sockets");
    successor.write_all(&[1]).expect("ready");
    successor.read_exact(&mut [0; 1]).expect("it is chosen");
    let sent = successor.read_exact(&mut vec![0; count]);
    sent.expect("the connections");
    successor
}

#[test]
fn a_successor_that_dies_after_it_was_ready_ends_no_service() {
    let control = Control::new();
    let server = control.start();
    let mut client = BufReader::new(server.connect());
    let first = ask(&mut client, "one\n");
    // Before it has the connection, of four bytes, and with it, and when it has been sent all.
    for count in [0, 4, 8] {
        drop(chosen(&control, count));
        assert_eq!(ask(&mut client, "two\n"), first);
        assert_eq!(ask(&mut BufReader::new(server.connect()), "new\n"), first);
    }
    let _successor = control.start();
    assert!(server.end().success());
    assert_ne!(ask(&mut client, "three\n"), first);
}

#[test]
fn a_successor_that_hangs_ends_no_service_and_blocks_no_other() {
    let control = Control::new();
    let patience = ["--control", &control.path(), "--patience", "200ms"];
    let server = Server::of("hot_restart", &patience);
    let mut client = BufReader::new(server.connect());
    let first = ask(&mut client, "one\n");
    let hangs_with_all = chosen(&control, 8);
    assert_eq!(ask(&mut client, "two\n"), first);
    drop(hangs_with_all);
    drop(server);

    let server = control.start();
    let mut client = BufReader::new(server.connect());
    let first = ask(&mut client, "one\n");
    let hang_before_they_are_ready: Vec<_> = (0..3)
        .map(|_| {
            let mut candidate = UnixStream::connect(control.path()).expect("it listens");
            candidate.read_exact(&mut [0; 1]).expect("the sockets");
            candidate
        })
        .collect();
    let _successor = control.start();
    assert!(server.end().success());
    assert_ne!(ask(&mut client, "two\n"), first);
    drop(hang_before_they_are_ready);
}

#[test]
fn of_several_successors_at_a_time_one_serves_in_the_end() {
    let control = Control::new();
    let server = control.start();
    let mut client = BufReader::new(server.connect());
    let first = ask(&mut client, "one\n");
    let successors: Vec<_> = std::thread::scope(|scope| {
        let starts = [(); 3].map(|()| scope.spawn(|| control.start()));
        starts
            .into_iter()
            .map(|it| it.join().expect("it starts"))
            .collect()
    });
    assert!(server.end().success());
    assert_ne!(ask(&mut client, "two\n"), first);
    drop(successors);
}

#[test]
fn the_socket_of_a_server_that_was_killed_is_replaced() {
    let control = Control::new();
    // Killed when it is dropped.
    drop(control.start());
    assert!(std::path::Path::new(&control.path()).exists());
    let server = control.start();
    ask(&mut BufReader::new(server.connect()), "hello\n");
}
