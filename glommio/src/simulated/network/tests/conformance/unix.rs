//! Unix sockets.

use std::net::Shutdown;

use super::super::super::{Address, Kind, UnixName};
use super::{Run, Setting, compare};

const CONNECTED: [Kind; 2] = [Kind::UnixStream, Kind::UnixSeqpacket];
const ALL: [Kind; 3] = [Kind::UnixStream, Kind::UnixSeqpacket, Kind::UnixDatagram];

fn listener(run: &mut Run, kind: Kind, backlog: usize) -> (usize, Address) {
    let listener = run.socket(kind);
    let path = run.path("listener");
    run.bind(listener, &path);
    run.listen(listener, backlog);
    (listener, path)
}

fn abstract_name(name: &str) -> Address {
    Address::Unix(UnixName::Abstract(
        format!("glommio-test-{}-{name}", std::process::id()).into_bytes(),
    ))
}

#[test]
fn fresh_sockets() {
    for kind in ALL {
        compare(|run| {
            let socket = run.socket(kind);
            run.ready(socket);
            run.local(socket);
            run.peer(socket);
            run.receive(socket, 8);
            run.send(socket, b"x");
            run.accept(socket);
            run.listen(socket, 1);
            let nothing = run.path("nothing");
            run.connect(socket, &nothing);
            run.send_to(socket, b"x", &nothing);
            run.connect(socket, &abstract_name("nothing"));
            run.take_error(socket);
            run.shutdown(socket, Shutdown::Write);
            run.ready(socket);
            if kind != Kind::UnixDatagram {
                // Kernels differ in what they look at first, the missing peer or the shutdown.
                run.send(socket, b"x");
            }
            run.shutdown(socket, Shutdown::Both);
            run.ready(socket);
            run.receive(socket, 8);
        });
    }
}

#[test]
fn names() {
    for kind in ALL {
        compare(|run| {
            let path = run.path("name");
            let one = run.socket(kind);
            run.bind(one, &path);
            run.local(one);
            let other = run.path("other");
            run.bind(one, &other);
            run.bind(one, &path);
            run.bind(one, &abstract_name("second"));
            let two = run.socket(kind);
            run.bind(two, &path);
            run.connect(two, &path);
            run.close(one);
            run.connect(two, &path);
            run.send_to(two, b"x", &path);
            run.bind(two, &path);
            run.unlink(&path);
            run.connect(two, &path);
            run.bind(two, &path);
            let three = run.socket(kind);
            run.bind(three, &abstract_name("three"));
            let four = run.socket(kind);
            run.bind(four, &abstract_name("three"));
            run.connect(four, &abstract_name("three"));
            run.close(three);
            let five = run.socket(kind);
            run.bind(five, &abstract_name("three"));
        });
    }
    compare(|run| {
        let path = run.path("stream");
        let stream = run.socket(Kind::UnixStream);
        run.bind(stream, &path);
        run.listen(stream, 4);
        for kind in ALL {
            let socket = run.socket(kind);
            run.connect(socket, &path);
            run.send_to(socket, b"x", &path);
        }
        let unnamed = run.socket(Kind::UnixDatagram);
        run.connect(unnamed, &Address::Unix(UnixName::Unnamed));
    });
}

#[test]
fn connections() {
    for kind in CONNECTED {
        compare(|run| {
            let (listener, path) = listener(run, kind, 4);
            run.ready(listener);
            run.accept(listener);
            run.receive(listener, 1);
            run.send(listener, b"x");
            run.peer(listener);
            run.connect(listener, &path);
            run.bind(listener, &path);
            let client = run.socket(kind);
            run.connect(client, &path);
            run.ready(client);
            run.ready(listener);
            run.connect(client, &path);
            run.listen(client, 1);
            run.local(client);
            run.peer(client);
            run.send(client, b"early");
            let server = run.accept(listener).expect("a connection");
            run.ready(listener);
            run.local(server);
            run.peer(server);
            run.ready(server);
            run.peek(server, 3);
            run.receive(server, 3);
            run.receive(server, 8);
            run.receive(server, 8);
            run.send(server, b"one");
            run.send(server, b"two");
            run.send(server, b"");
            run.receive(client, 0);
            run.receive(client, 4);
            run.receive(client, 4);
            run.receive(client, 4);
            run.send_to(client, b"x", &path);
            run.close(listener);
            run.connect(client, &path);
            let late = run.socket(kind);
            run.connect(late, &path);
            run.unlink(&path);
            run.connect(late, &path);
        });
    }
}

#[test]
fn a_full_backlog_of_unix_sockets() {
    for kind in CONNECTED {
        compare(|run| {
            let (listener, path) = listener(run, kind, 1);
            let clients: Vec<_> = (0..3).map(|_| run.socket(kind)).collect();
            for client in &clients {
                run.connect(*client, &path);
                run.ready(*client);
            }
            run.accept(listener);
            run.connect(clients[2], &path);
            run.send(clients[1], b"x");
            run.shutdown(listener, Shutdown::Read);
            run.ready(listener);
            let late = run.socket(kind);
            run.connect(late, &path);
            run.accept(listener);
            run.accept(listener);
            run.accept(listener);
        });
        compare(|run| {
            let (listener, path) = listener(run, kind, 4);
            let client = run.socket(kind);
            run.connect(client, &path);
            run.close(listener);
            run.ready(client);
            run.receive(client, 8);
            run.receive(client, 8);
            run.send(client, b"x");
            run.peer(client);
        });
    }
}

#[test]
fn pairs_end() {
    for kind in ALL {
        compare(|run| {
            let (one, two) = run.pair(kind);
            run.local(one);
            run.peer(one);
            run.ready(one);
            run.send(one, b"last");
            run.close(one);
            run.ready(two);
            run.receive(two, 8);
            run.receive(two, 8);
            run.ready(two);
            run.send(two, b"x");
            run.ready(two);
            run.send(two, b"x");
            run.send(two, b"");
            run.take_error(two);
            run.peer(two);
        });
        compare(|run| {
            let (one, two) = run.pair(kind);
            run.send(one, b"unread");
            run.send(two, b"answer");
            run.close(two);
            run.ready(one);
            run.receive(one, 8);
            run.ready(one);
            run.receive(one, 8);
            run.receive(one, 8);
            run.ready(one);
        });
        compare(|run| {
            let (one, two) = run.pair(kind);
            run.send(one, b"unread");
            run.close(two);
            run.send(one, b"x");
            run.take_error(one);
            run.send(one, b"x");
        });
    }
}

#[test]
fn pairs_are_shut_down() {
    for kind in ALL {
        for how in [Shutdown::Read, Shutdown::Write, Shutdown::Both] {
            compare(|run| {
                let (one, two) = run.pair(kind);
                run.send(two, b"before");
                run.shutdown(one, how);
                run.ready(one);
                run.ready(two);
                run.receive(one, 8);
                run.receive(one, 8);
                run.send(one, b"x");
                run.send(two, b"y");
                run.ready(one);
                run.ready(two);
                run.receive(one, 8);
                run.receive(two, 8);
                run.receive(two, 8);
            });
        }
    }
}

#[run_test(compare)]
fn datagrams_between_names(run: &mut Run) {
    let path = run.path("server");
    let server = run.socket(Kind::UnixDatagram);
    run.bind(server, &path);
    let client = run.socket(Kind::UnixDatagram);
    run.send_to(client, b"anonymous", &path);
    run.ready(server);
    run.receive(server, 4);
    run.ready(server);
    let own = run.path("client");
    run.bind(client, &own);
    run.send_to(client, b"named", &path);
    run.send_to(client, b"", &path);
    run.peek(server, 8);
    run.receive(server, 8);
    run.receive(server, 8);
    run.receive(server, 8);
    run.connect(client, &path);
    run.peer(client);
    run.send(client, b"connected");
    run.receive(server, 16);
    run.connect(server, &own);
    let other = run.socket(Kind::UnixDatagram);
    run.send_to(other, b"x", &path);
    run.connect(other, &path);
    run.send(server, b"answer");
    run.ready(client);
    run.receive(client, 8);
    run.send(server, b"lost");
    run.close(server);
    run.ready(client);
    run.receive(client, 8);
    run.send(client, b"x");
    run.send(client, b"x");
    run.peer(client);
    run.ready(client);
    run.send_to(client, b"x", &path);
    run.connect(client, &path);
}

#[run_test(compare)]
fn a_peer_takes_another_peer(run: &mut Run) {
    let (one, two) = run.pair(Kind::UnixDatagram);
    let path = run.path("third");
    let third = run.socket(Kind::UnixDatagram);
    run.bind(third, &path);
    run.send(one, b"unread");
    run.send(two, b"dropped");
    run.connect(one, &path);
    run.ready(one);
    run.receive(one, 8);
    run.ready(two);
    run.send(two, b"x");
    run.receive(two, 8);
    run.receive(two, 8);
    run.send(two, b"x");
    run.ready(two);
}

#[run_test(compare)]
fn a_full_queue_of_datagrams(run: &mut Run) {
    let path = run.path("server");
    let server = run.socket(Kind::UnixDatagram);
    run.bind(server, &path);
    let client = run.socket(Kind::UnixDatagram);
    run.connect(client, &path);
    let other = run.socket(Kind::UnixDatagram);
    run.fill(client, 1);
    run.ready(client);
    run.ready(other);
    run.send_to(other, b"x", &path);
    run.receive(server, 8);
    run.ready(client);
    run.send_to(other, b"y", &path);
    run.send(client, b"z");
    run.ready(client);
    run.close(server);
    run.ready(client);
}

#[test]
fn lengths_of_datagrams() {
    for kind in [Kind::UnixDatagram, Kind::UnixSeqpacket] {
        compare(|run| {
            let (one, two) = run.pair(kind);
            run.set(one, Setting::SendBuffer(8192));
            for len in [16384 - 33, 16384 - 32, 16384 - 31, 16384, 100_000] {
                run.send(one, &vec![b'a'; len]);
                run.receive(two, 2);
            }
        });
    }
}

#[test]
fn full_buffers_of_streams() {
    compare(|run| {
        let (one, two) = run.pair(Kind::UnixStream);
        let sent = run.fill(one, 4096);
        assert!(sent > 100_000, "only {sent} bytes fit");
        run.ready(one);
        run.ready(two);
        run.drain(two, sent);
        run.ready(one);
        run.ready(two);
        run.fill(one, 4096);
        run.shutdown(two, Shutdown::Read);
        run.ready(one);
        run.send(one, b"x");
        run.close(two);
        run.ready(one);
        run.receive(one, 1);
        run.receive(one, 1);
    });
    compare(|run| {
        let (one, two) = run.pair(Kind::UnixSeqpacket);
        run.fill(one, 4096);
        run.ready(one);
        run.receive(two, 1);
        run.close(two);
        run.ready(one);
    });
}
