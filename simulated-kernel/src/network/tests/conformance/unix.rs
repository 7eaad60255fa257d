//! Unix sockets.

use std::net::Shutdown;

use super::super::super::{Address, Kind, UnixName};
use super::{Run, Setting, compare};

const ALL: [Kind; 2] = [Kind::UnixStream, Kind::UnixDatagram];

fn listener(run: &mut Run, backlog: usize) -> (usize, Address) {
    let listener = run.socket(Kind::UnixStream);
    let path = run.path("listener");
    calls! { run, listener: bind(&path), listen(backlog); }
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
            calls! { run,
                socket: ready(), local(), peer(), receive(8), send(b"x"), accept(), listen(1);
            }
            let nothing = run.path("nothing");
            calls! { run,
                socket: connect(&nothing), send_to(b"x", &nothing),
                    connect(&abstract_name("nothing")), take_error(), shutdown(Shutdown::Write),
                    ready();
            }
            if kind != Kind::UnixDatagram {
                // Kernels differ in what they look at first, the missing peer or the shutdown.
                run.send(socket, b"x");
            }
            calls! { run, socket: shutdown(Shutdown::Both), ready(), receive(8); }
        });
    }
}

#[test]
fn names() {
    for kind in ALL {
        compare(|run| {
            let path = run.path("name");
            let one = run.socket(kind);
            calls! { run, one: bind(&path), local(); }
            let other = run.path("other");
            calls! { run, one: bind(&other), bind(&path), bind(&abstract_name("second")); }
            let two = run.socket(kind);
            calls! { run,
                two: bind(&path), connect(&path);
                one: close();
                two: connect(&path), send_to(b"x", &path), bind(&path);
            }
            run.unlink(&path);
            calls! { run, two: connect(&path), bind(&path); }
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
        calls! { run, stream: bind(&path), listen(4); }
        for kind in ALL {
            let socket = run.socket(kind);
            calls! { run, socket: connect(&path), send_to(b"x", &path); }
        }
        let unnamed = run.socket(Kind::UnixDatagram);
        run.connect(unnamed, &Address::Unix(UnixName::Unnamed));
    });
}

#[run_test(compare)]
fn connections(run: &mut Run) {
    let (listener, path) = listener(run, 4);
    calls! { run,
        listener: ready(), accept(), receive(1), send(b"x"), peer(), connect(&path),
            bind(&path);
    }
    let client = run.socket(Kind::UnixStream);
    calls! { run,
        client: connect(&path), ready();
        listener: ready();
        client: connect(&path), listen(1), local(), peer(), send(b"early");
    }
    let server = run.accept(listener).expect("a connection");
    calls! { run,
        listener: ready();
        server: local(), peer(), ready(), peek(3), receive(3), receive(8), receive(8),
            send(b"one"), send(b"two"), send(b"");
        client: receive(0), receive(4), receive(4), receive(4), send_to(b"x", &path);
        listener: close(); client: connect(&path);
    }
    let late = run.socket(Kind::UnixStream);
    run.connect(late, &path);
    run.unlink(&path);
    run.connect(late, &path);
}

#[run_test(compare)]
fn a_full_backlog_of_unix_sockets(run: &mut Run) {
    let (listener, path) = listener(run, 1);
    let clients: Vec<_> = (0..3).map(|_| run.socket(Kind::UnixStream)).collect();
    for client in &clients {
        run.connect(*client, &path);
        run.ready(*client);
    }
    run.accept(listener);
    run.connect(clients[2], &path);
    run.send(clients[1], b"x");
    calls! { run, listener: shutdown(Shutdown::Read), ready(); }
    let late = run.socket(Kind::UnixStream);
    calls! { run, late: connect(&path); listener: accept(), accept(), accept(); }
}

#[run_test(compare)]
fn a_listener_is_closed_before_it_accepts(run: &mut Run) {
    let (listener, path) = listener(run, 4);
    let client = run.socket(Kind::UnixStream);
    calls! { run,
        client: connect(&path); listener: close();
        client: ready(), receive(8), receive(8), send(b"x"), peer();
    }
}

#[test]
fn pairs_end() {
    for kind in ALL {
        compare(|run| {
            let (one, two) = run.pair(kind);
            calls! { run,
                one: local(), peer(), ready(), send(b"last"), close();
                two: ready(), receive(8), receive(8), ready(), send(b"x"), ready(), send(b"x"),
                    send(b""), take_error(), peer();
            }
        });
        compare(|run| {
            let (one, two) = run.pair(kind);
            calls! { run,
                one: send(b"unread");
                two: send(b"answer"), close();
                one: ready(), receive(8), ready(), receive(8), receive(8), ready();
            }
        });
        compare(|run| {
            let (one, two) = run.pair(kind);
            calls! { run,
                one: send(b"unread"); two: close();
                one: send(b"x"), take_error(), send(b"x");
            }
        });
    }
}

#[test]
fn pairs_are_shut_down() {
    for kind in ALL {
        for how in [Shutdown::Read, Shutdown::Write, Shutdown::Both] {
            compare(|run| {
                let (one, two) = run.pair(kind);
                calls! { run,
                    two: send(b"before");
                    one: shutdown(how), ready();
                    two: ready();
                    one: receive(8), receive(8), send(b"x");
                    two: send(b"y"); one: ready(); two: ready(); one: receive(8);
                    two: receive(8), receive(8);
                }
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
    calls! { run, client: send_to(b"anonymous", &path); server: ready(), receive(4), ready(); }
    let own = run.path("client");
    calls! { run,
        client: bind(&own), send_to(b"named", &path), send_to(b"", &path);
        server: peek(8), receive(8), receive(8), receive(8);
        client: connect(&path), peer(), send(b"connected");
        server: receive(16), connect(&own);
    }
    let other = run.socket(Kind::UnixDatagram);
    calls! { run,
        other: send_to(b"x", &path), connect(&path);
        server: send(b"answer");
        client: ready(), receive(8);
        server: send(b"lost"), close();
        client: ready(), receive(8), send(b"x"), send(b"x"), peer(), ready(), send_to(b"x", &path),
            connect(&path);
    }
}

#[run_test(compare)]
fn a_peer_takes_another_peer(run: &mut Run) {
    let (one, two) = run.pair(Kind::UnixDatagram);
    let path = run.path("third");
    let third = run.socket(Kind::UnixDatagram);
    calls! { run,
        third: bind(&path); one: send(b"unread"); two: send(b"dropped");
        one: connect(&path), ready(), receive(8);
        two: ready(), send(b"x"), receive(8), receive(8), send(b"x"), ready();
    }
}

#[run_test(compare)]
fn a_full_queue_of_datagrams(run: &mut Run) {
    let path = run.path("server");
    let server = run.socket(Kind::UnixDatagram);
    run.bind(server, &path);
    let client = run.socket(Kind::UnixDatagram);
    run.connect(client, &path);
    let other = run.socket(Kind::UnixDatagram);
    calls! { run,
        client: fill(1), ready();
        other: ready(), send_to(b"x", &path);
        server: receive(8); client: ready(); other: send_to(b"y", &path);
        client: send(b"z"), ready();
        server: close(); client: ready();
    }
}

#[run_test(compare)]
fn lengths_of_datagrams(run: &mut Run) {
    let (one, two) = run.pair(Kind::UnixDatagram);
    run.set(one, Setting::SendBuffer(8192));
    for len in [16384 - 33, 16384 - 32, 16384 - 31, 16384, 100_000] {
        calls! { run, one: send(&vec![b'a'; len]); two: receive(2); }
    }
}

#[run_test(compare)]
fn full_buffers_of_streams(run: &mut Run) {
    let (one, two) = run.pair(Kind::UnixStream);
    let sent = run.fill(one, 4096);
    assert!(sent > 100_000, "only {sent} bytes fit");
    calls! { run,
        one: ready();
        two: ready(), drain(sent);
        one: ready(); two: ready(); one: fill(4096); two: shutdown(Shutdown::Read);
        one: ready(), send(b"x");
        two: close();
        one: ready(), receive(1), receive(1);
    }
}
