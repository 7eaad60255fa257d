//! Connections of TCP: how they begin, and data.

use std::net::Shutdown;
use std::time::Duration;

use super::super::super::{Address, Kind};
use super::{Run, Setting, V4, V6, compare, ip};

/// A listener on a free port of the loopback address.
pub(super) fn listener(run: &mut Run, kind: Kind) -> (usize, Address) {
    let listener = run.socket(kind);
    run.bind(
        listener,
        &if kind == Kind::TcpV4 {
            ip(V4, 0)
        } else {
            ip(V6, 0)
        },
    );
    run.listen(listener, 16);
    let address = run.local(listener);
    (listener, address)
}

/// Two ends of a connection: of the client, and the accepted one.
pub(super) fn connection(run: &mut Run) -> (usize, usize) {
    let (listener, address) = listener(run, Kind::TcpV4);
    let client = run.socket(Kind::TcpV4);
    calls! { run, client: connect(&address), ready(); listener: ready(); }
    let server = run.accept(listener).expect("a connection");
    run.close(listener);
    (client, server)
}

/// An address at which nothing listens.
pub(super) fn closed_port(run: &mut Run, kind: Kind) -> Address {
    let socket = run.socket(kind);
    run.bind(socket, &if kind.is_v6() { ip(V6, 0) } else { ip(V4, 0) });
    let address = run.local(socket);
    run.close(socket);
    address
}

#[test]
fn a_fresh_socket() {
    for kind in [Kind::TcpV4, Kind::TcpV6] {
        compare(|run| {
            let socket = run.socket(kind);
            calls! { run,
                socket: ready(), local(), peer(), receive(8), send(b"a"), send(b""), accept(),
                    take_error(), shutdown(Shutdown::Write), ready(), shutdown(Shutdown::Both),
                    ready(), receive(8);
            }
            run.bind(
                socket,
                &Address::Unix(super::UnixName::Path(b"/nothing".to_vec())),
            );
        });
    }
}

#[run_test(compare)]
fn a_bound_socket_keeps_its_port(run: &mut Run) {
    let socket = run.socket(Kind::TcpV4);
    calls! { run,
        socket: bind(&ip(V4, 0)), local(), receive(8), send(b"x"), ready(), local(), listen(1);
    }
    let address = run.local(socket);
    run.ready(socket);
    let client = run.socket(Kind::TcpV4);
    calls! { run, client: connect(&address), ready(); socket: ready(); }
    let server = run.accept(socket).expect("a connection");
    run.ready(server);
}

#[test]
fn data_in_both_directions() {
    for kind in [Kind::TcpV4, Kind::TcpV6] {
        compare(|run| {
            let (listener, address) = listener(run, kind);
            calls! { run,
                listener: ready(), peer(), accept(), receive(1), send(b"a"), connect(&address);
            }
            let client = run.socket(kind);
            calls! { run,
                client: connect(&address), ready(), local(), peer(), connect(&address),
                    connect(&address), listen(1), bind(&address);
                listener: ready();
            }
            let server = run.accept(listener).expect("a connection");
            calls! { run,
                listener: ready();
                server: local(), peer(), ready(), receive(8);
                client: send(b"one"), send(b""), send_to(b" two", &address);
                server: ready(), peek(3), receive(0), receive(2), receive(10), receive(0), ready(),
                    send(b"answer");
                client: ready(), receive(10), ready();
            }
        });
    }
}

#[run_test(compare)]
fn half_close_and_close(run: &mut Run) {
    let (client, server) = connection(run);
    calls! { run,
        client: send(b"last"), shutdown(Shutdown::Write), send(b"more"), ready();
        server: ready(), receive(2), ready(), receive(8), receive(8), ready(), send(b"answer");
        client: ready(), receive(8), receive(8), ready();
        server: close();
        client: ready(), receive(8), peer(), shutdown(Shutdown::Both), take_error(), send(b"x");
    }
}

#[run_test(compare)]
fn the_peer_closes_first(run: &mut Run) {
    let (client, server) = connection(run);
    calls! { run,
        server: close();
        client: ready(), receive(8), send(b"into nothing"), ready(), peer(), send(b"again"),
            ready(), send(b"again"), receive(8), take_error(), ready();
    }
}

#[test]
fn a_refused_connection() {
    for kind in [Kind::TcpV4, Kind::TcpV6] {
        compare(|run| {
            let address = closed_port(run, kind);
            let client = run.socket(kind);
            calls! { run,
                client: connect(&address), ready(), peer(), take_error(), take_error(), ready(),
                    receive(8), send(b"x"), connect(&address), ready(), connect(&address), ready(),
                    connect(&address), receive(1);
            }
            let client = run.socket(kind);
            calls! { run, client: connect(&address), ready(), receive(8), receive(8), send(b"x"); }
            let client = run.socket(kind);
            calls! { run,
                client: connect(&address), ready(), send(b"x"), send(b"x"), receive(8), ready(),
                    shutdown(Shutdown::Both);
            }
        });
    }
}

#[run_test(compare)]
fn families_and_strange_addresses(run: &mut Run) {
    let v4 = run.socket(Kind::TcpV4);
    let v6 = run.socket(Kind::TcpV6);
    calls! { run,
        v4: bind(&ip(V6, 0)); v6: bind(&ip(V4, 0)); v4: connect(&ip(V6, 9));
        v6: connect(&ip(V4, 9));
        v4: bind(&ip([203, 0, 113, 7], 0)), connect(&ip([255, 255, 255, 255], 9)),
            connect(&ip([224, 0, 0, 1], 9)), bind(&ip([127, 0, 0, 9], 0)), local(),
            bind(&ip([127, 0, 0, 9], 0)), connect(&ip([203, 0, 113, 7], 9)), ready();
    }
}

#[run_test(compare)]
fn unspecified_addresses_and_both_families(run: &mut Run) {
    let listener = run.socket(Kind::TcpV6);
    calls! { run, listener: bind(&ip(std::net::Ipv6Addr::UNSPECIFIED, 0)), listen(8); }
    let Address::Ip(address) = run.local(listener) else {
        unreachable!()
    };
    let clients = [
        (Kind::TcpV4, ip(V4, address.port())),
        (Kind::TcpV4, ip([0, 0, 0, 0], address.port())),
        (Kind::TcpV6, ip(V6, address.port())),
        (
            Kind::TcpV6,
            ip(std::net::Ipv6Addr::UNSPECIFIED, address.port()),
        ),
        (Kind::TcpV6, ip(V4.to_ipv6_mapped(), address.port())),
    ];
    for (kind, address) in clients {
        let client = run.socket(kind);
        calls! { run, client: connect(&address), ready(), local(), peer(); listener: ready(); }
        let server = run.accept(listener).expect("a connection");
        calls! { run, server: local(), peer(); }
    }
}

#[run_test(compare)]
fn a_socket_connects_to_itself(run: &mut Run) {
    let socket = run.socket(Kind::TcpV4);
    run.bind(socket, &ip(V4, 0));
    let address = run.local(socket);
    calls! { run,
        socket: connect(&address), ready(), connect(&address), peer(), send(b"echo"), ready(),
            receive(8), shutdown(Shutdown::Write), ready(), receive(8);
    }
}

#[run_test(compare)]
fn full_buffers(run: &mut Run) {
    let (listener, address) = listener(run, Kind::TcpV4);
    run.set(listener, Setting::ReceiveBuffer(16384));
    let client = run.socket(Kind::TcpV4);
    run.set(client, Setting::SendBuffer(16384));
    run.connect(client, &address);
    run.ready(client);
    run.ready(listener);
    let server = run.accept(listener).expect("a connection");
    let sent = run.fill(client, 1000);
    assert!(sent > 4000, "only {sent} bytes fit");
    calls! { run,
        client: ready();
        server: ready(), drain(sent);
        client: ready(), send(b"on");
        server: ready(), receive(8);
    }
    // Full, and the reader never comes.
    calls! { run,
        client: fill(1000), shutdown(Shutdown::Write), ready();
        server: close();
        client: ready(), receive(8), receive(8);
    }
}

#[run_test(compare)]
fn a_full_backlog(run: &mut Run) {
    let listener = run.socket(Kind::TcpV4);
    calls! { run, listener: bind(&ip(V4, 0)), listen(0); }
    let address = run.local(listener);
    let one = run.socket(Kind::TcpV4);
    calls! { run, one: connect(&address), ready(); }
    let two = run.socket(Kind::TcpV4);
    run.connect(two, &address);
    run.pass(Duration::from_millis(100));
    calls! { run,
        two: ready(), connect(&address), receive(1), send(b"early"), peer();
        listener: listen(1), accept(), accept();
    }
    // The SYN is sent again after a second.
    run.pass(Duration::from_millis(3500));
    calls! { run, two: ready(); listener: ready(), accept(); two: connect(&address); }
    // An attempt is given up.
    let three = run.socket(Kind::TcpV4);
    let four = run.socket(Kind::TcpV4);
    calls! { run,
        listener: listen(0);
        three: connect(&address), ready();
        four: connect(&address), ready(), shutdown(Shutdown::Write), ready(), receive(1);
    }
}
