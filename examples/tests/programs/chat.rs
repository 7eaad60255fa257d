//! The example `chat`, and its guests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::servers::{PATIENCE, Server};

fn start(arguments: &[&str]) -> Server {
    let arguments = [&["--port", "0"], arguments].concat();
    Server::start(env!("CARGO_BIN_EXE_chat"), &arguments)
}

/// Enters, and hears that it is guest `number`.
fn enter(server: &Server, number: usize) -> BufReader<TcpStream> {
    let mut guest = BufReader::new(server.connect());
    assert_eq!(hear(&mut guest), format!("* you are guest {number}\n"));
    guest
}

fn hear(guest: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    guest.read_line(&mut line).expect("a line comes");
    line
}

fn say(guest: &BufReader<TcpStream>, line: &str) {
    guest
        .get_ref()
        .write_all(line.as_bytes())
        .expect("it listens");
}

/// Lines reach all others, in order and whole, and not their sender.
#[test]
fn lines_reach_all_others() {
    let server = start(&[]);
    let mut ann = enter(&server, 1);
    let mut bob = enter(&server, 2);
    assert_eq!(hear(&mut ann), "* guest 2 has come\n");
    let mut cay = enter(&server, 3);
    assert_eq!(hear(&mut ann), "* guest 3 has come\n");
    assert_eq!(hear(&mut bob), "* guest 3 has come\n");
    say(&ann, "hello\nis anybody");
    say(&ann, " there?\n");
    for guest in [&mut bob, &mut cay] {
        assert_eq!(hear(guest), "1: hello\n");
        assert_eq!(hear(guest), "1: is anybody there?\n");
    }
    say(&bob, "yes\n");
    // The first that she hears: nothing of her own came back.
    assert_eq!(hear(&mut ann), "2: yes\n");
    drop(bob);
    assert_eq!(hear(&mut ann), "* guest 2 has left\n");
}

/// A guest that reads nothing loses its place when its outbox is full; the others talk on all the
/// while.
#[test]
fn a_slow_guest_does_not_block_others() {
    let server = start(&[]);
    let speaker = enter(&server, 1);
    let mut listener = enter(&server, 2);
    let slow = enter(&server, 3);
    assert_eq!(hear(&mut listener), "* guest 3 has come\n");
    let before = server.descriptors();
    let line = format!("{}\n", "x".repeat(4000));
    let begin = Instant::now();
    loop {
        assert!(begin.elapsed() < PATIENCE, "the slow guest is still here");
        say(&speaker, &line);
        // Step by step, so that the listener is never behind.
        match &*hear(&mut listener) {
            "* guest 3 is gone: too slow\n" => break,
            heard => assert!(heard == format!("1: {line}"), "{heard}"),
        }
    }
    server.await_descriptors(before - 1);
    drop(slow);
    assert!(hear(&mut listener) == format!("1: {line}"));
}

/// A guest that says nothing is closed, and the others hear of it.
#[test]
fn a_silent_guest_is_closed() {
    let server = start(&["--idle-timeout", "300ms"]);
    let mut silent = enter(&server, 1);
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).expect("it ends well");
    assert_eq!(rest, b"");
}

/// A line without end is not kept for ever.
#[test]
fn an_endless_line_is_cut_off() {
    let server = start(&[]);
    let mut watcher = enter(&server, 1);
    let endless = enter(&server, 2);
    assert_eq!(hear(&mut watcher), "* guest 2 has come\n");
    say(&endless, &"x".repeat(4097));
    assert_eq!(hear(&mut watcher), "* guest 2 is gone: too long a line\n");
}
