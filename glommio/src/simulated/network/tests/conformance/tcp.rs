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
    run.connect(client, &address);
    run.ready(client);
    run.ready(listener);
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
            run.ready(socket);
            run.local(socket);
            run.peer(socket);
            run.receive(socket, 8);
            run.send(socket, b"a");
            run.send(socket, b"");
            run.accept(socket);
            run.take_error(socket);
            run.shutdown(socket, Shutdown::Write);
            run.ready(socket);
            run.shutdown(socket, Shutdown::Both);
            run.ready(socket);
            run.receive(socket, 8);
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
    run.bind(socket, &ip(V4, 0));
    run.local(socket);
    run.receive(socket, 8);
    run.send(socket, b"x");
    run.ready(socket);
    run.local(socket);
    run.listen(socket, 1);
    let address = run.local(socket);
    run.ready(socket);
    let client = run.socket(Kind::TcpV4);
    run.connect(client, &address);
    run.ready(client);
    run.ready(socket);
    let server = run.accept(socket).expect("a connection");
    run.ready(server);
}

#[test]
fn data_in_both_directions() {
    for kind in [Kind::TcpV4, Kind::TcpV6] {
        compare(|run| {
            let (listener, address) = listener(run, kind);
            run.ready(listener);
            run.peer(listener);
            run.accept(listener);
            run.receive(listener, 1);
            run.send(listener, b"a");
            run.connect(listener, &address);
            let client = run.socket(kind);
            run.connect(client, &address);
            run.ready(client);
            run.local(client);
            run.peer(client);
            run.connect(client, &address);
            run.connect(client, &address);
            run.listen(client, 1);
            run.bind(client, &address);
            run.ready(listener);
            let server = run.accept(listener).expect("a connection");
            run.ready(listener);
            run.local(server);
            run.peer(server);
            run.ready(server);
            run.receive(server, 8);
            run.send(client, b"one");
            run.send(client, b"");
            run.send_to(client, b" two", &address);
            run.ready(server);
            run.peek(server, 3);
            run.receive(server, 0);
            run.receive(server, 2);
            run.receive(server, 10);
            run.receive(server, 0);
            run.ready(server);
            run.send(server, b"answer");
            run.ready(client);
            run.receive(client, 10);
            run.ready(client);
        });
    }
}

#[run_test(compare)]
fn half_close_and_close(run: &mut Run) {
    let (client, server) = connection(run);
    run.send(client, b"last");
    run.shutdown(client, Shutdown::Write);
    run.send(client, b"more");
    run.ready(client);
    run.ready(server);
    run.receive(server, 2);
    run.ready(server);
    run.receive(server, 8);
    run.receive(server, 8);
    run.ready(server);
    run.send(server, b"answer");
    run.ready(client);
    run.receive(client, 8);
    run.receive(client, 8);
    run.ready(client);
    run.close(server);
    run.ready(client);
    run.receive(client, 8);
    run.peer(client);
    run.shutdown(client, Shutdown::Both);
    run.take_error(client);
    run.send(client, b"x");
}

#[run_test(compare)]
fn the_peer_closes_first(run: &mut Run) {
    let (client, server) = connection(run);
    run.close(server);
    run.ready(client);
    run.receive(client, 8);
    run.send(client, b"into nothing");
    run.ready(client);
    run.peer(client);
    run.send(client, b"again");
    run.ready(client);
    run.send(client, b"again");
    run.receive(client, 8);
    run.take_error(client);
    run.ready(client);
}

#[test]
fn a_refused_connection() {
    for kind in [Kind::TcpV4, Kind::TcpV6] {
        compare(|run| {
            let address = closed_port(run, kind);
            let client = run.socket(kind);
            run.connect(client, &address);
            run.ready(client);
            run.peer(client);
            run.take_error(client);
            run.take_error(client);
            run.ready(client);
            run.receive(client, 8);
            run.send(client, b"x");
            run.connect(client, &address);
            run.ready(client);
            run.connect(client, &address);
            run.ready(client);
            run.connect(client, &address);
            run.receive(client, 1);
            let client = run.socket(kind);
            run.connect(client, &address);
            run.ready(client);
            run.receive(client, 8);
            run.receive(client, 8);
            run.send(client, b"x");
            let client = run.socket(kind);
            run.connect(client, &address);
            run.ready(client);
            run.send(client, b"x");
            run.send(client, b"x");
            run.receive(client, 8);
            run.ready(client);
            run.shutdown(client, Shutdown::Both);
        });
    }
}

#[run_test(compare)]
fn families_and_strange_addresses(run: &mut Run) {
    let v4 = run.socket(Kind::TcpV4);
    let v6 = run.socket(Kind::TcpV6);
    run.bind(v4, &ip(V6, 0));
    run.bind(v6, &ip(V4, 0));
    run.connect(v4, &ip(V6, 9));
    run.connect(v6, &ip(V4, 9));
    run.bind(v4, &ip([203, 0, 113, 7], 0));
    run.connect(v4, &ip([255, 255, 255, 255], 9));
    run.connect(v4, &ip([224, 0, 0, 1], 9));
    run.bind(v4, &ip([127, 0, 0, 9], 0));
    run.local(v4);
    run.bind(v4, &ip([127, 0, 0, 9], 0));
    run.connect(v4, &ip([203, 0, 113, 7], 9));
    run.ready(v4);
}

#[run_test(compare)]
fn unspecified_addresses_and_both_families(run: &mut Run) {
    let listener = run.socket(Kind::TcpV6);
    run.bind(listener, &ip(std::net::Ipv6Addr::UNSPECIFIED, 0));
    run.listen(listener, 8);
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
        run.connect(client, &address);
        run.ready(client);
        run.local(client);
        run.peer(client);
        run.ready(listener);
        let server = run.accept(listener).expect("a connection");
        run.local(server);
        run.peer(server);
    }
    let only = run.socket(Kind::TcpV6);
    run.set(only, Setting::V6Only);
    run.connect(only, &ip(V4.to_ipv6_mapped(), address.port()));
    run.bind(only, &ip(V4.to_ipv6_mapped(), 0));
    run.bind(only, &ip(V6, 0));
    run.set(only, Setting::V6Only);
    let v4 = run.socket(Kind::TcpV4);
    run.set(v4, Setting::V6Only);
}

#[run_test(compare)]
fn a_socket_connects_to_itself(run: &mut Run) {
    let socket = run.socket(Kind::TcpV4);
    run.bind(socket, &ip(V4, 0));
    let address = run.local(socket);
    run.connect(socket, &address);
    run.ready(socket);
    run.connect(socket, &address);
    run.peer(socket);
    run.send(socket, b"echo");
    run.ready(socket);
    run.receive(socket, 8);
    run.shutdown(socket, Shutdown::Write);
    run.ready(socket);
    run.receive(socket, 8);
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
    run.ready(client);
    run.ready(server);
    run.drain(server, sent);
    run.ready(client);
    run.send(client, b"on");
    run.ready(server);
    run.receive(server, 8);
    // Full, and the reader never comes.
    run.fill(client, 1000);
    run.shutdown(client, Shutdown::Write);
    run.ready(client);
    run.close(server);
    run.ready(client);
    run.receive(client, 8);
    run.receive(client, 8);
}

#[run_test(compare)]
fn a_full_backlog(run: &mut Run) {
    let listener = run.socket(Kind::TcpV4);
    run.bind(listener, &ip(V4, 0));
    run.listen(listener, 0);
    let address = run.local(listener);
    let one = run.socket(Kind::TcpV4);
    run.connect(one, &address);
    run.ready(one);
    let two = run.socket(Kind::TcpV4);
    run.connect(two, &address);
    run.pass(Duration::from_millis(100));
    run.ready(two);
    run.connect(two, &address);
    run.receive(two, 1);
    run.send(two, b"early");
    run.peer(two);
    run.listen(listener, 1);
    run.accept(listener);
    run.accept(listener);
    // The SYN is sent again after a second.
    run.pass(Duration::from_millis(3500));
    run.ready(two);
    run.ready(listener);
    run.accept(listener);
    run.connect(two, &address);
    // An attempt is given up.
    let three = run.socket(Kind::TcpV4);
    let four = run.socket(Kind::TcpV4);
    run.listen(listener, 0);
    run.connect(three, &address);
    run.ready(three);
    run.connect(four, &address);
    run.ready(four);
    run.shutdown(four, Shutdown::Write);
    run.ready(four);
    run.receive(four, 1);
}
