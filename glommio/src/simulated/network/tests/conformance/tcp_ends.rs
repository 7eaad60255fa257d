//! How connections of TCP end, and who may have which port.

use std::net::{Ipv4Addr, Ipv6Addr, Shutdown};

use super::super::super::{Address, Kind};
use super::tcp::{connection, listener};
use super::{Run, Setting, V4, V6, compare, ip};

#[run_test(compare)]
fn closing_with_unread_data_resets(run: &mut Run) {
    let (client, server) = connection(run);
    run.send(server, b"answer");
    run.send(client, b"unread");
    run.ready(server);
    run.close(server);
    run.ready(client);
    run.receive(client, 3);
    run.ready(client);
    run.receive(client, 8);
    run.receive(client, 8);
    run.receive(client, 8);
    run.send(client, b"x");
    run.peer(client);
    run.ready(client);
    run.shutdown(client, Shutdown::Write);
}

#[test]
fn a_reset_is_told_once() {
    for reader in 0..3 {
        compare(|run| {
            let (client, server) = connection(run);
            run.set(server, Setting::ResetOnClose);
            run.close(server);
            run.ready(client);
            match reader {
                0 => run.take_error(client),
                1 => run.send(client, b"x"),
                _ => run.receive(client, 8),
            }
            run.ready(client);
            run.take_error(client);
            run.receive(client, 8);
            run.send(client, b"x");
            let address = ip(V4, 1);
            run.connect(client, &address);
        });
    }
}

#[run_test(compare)]
fn shutdown_for_reading(run: &mut Run) {
    let (client, server) = connection(run);
    run.shutdown(client, Shutdown::Read);
    run.ready(client);
    run.receive(client, 8);
    run.send(server, b"still");
    run.ready(client);
    run.receive(client, 8);
    run.receive(client, 8);
    run.send(client, b"out");
    run.ready(server);
    run.receive(server, 8);
    run.shutdown(client, Shutdown::Write);
    run.ready(client);
    run.ready(server);
    // Now a reset answers data.
    run.send(server, b"late");
    run.ready(server);
    run.receive(server, 8);
    run.take_error(server);
    run.send(server, b"late");
    run.ready(client);
    run.take_error(client);
    run.receive(client, 8);
}

#[test]
fn shutdown_of_both_ends() {
    for how in [Shutdown::Write, Shutdown::Both] {
        compare(|run| {
            let (client, server) = connection(run);
            run.shutdown(client, how);
            run.ready(server);
            run.shutdown(server, how);
            run.ready(client);
            run.ready(server);
            run.receive(client, 1);
            run.receive(server, 1);
            run.peer(client);
            run.peer(server);
            run.shutdown(client, how);
            run.shutdown(server, how);
            run.send(client, b"x");
            run.send(server, b"x");
            run.take_error(client);
            run.take_error(server);
        });
    }
}

#[test]
fn a_listener_ends() {
    compare(|run| {
        let (listener, address) = listener(run, Kind::TcpV4);
        let client = run.socket(Kind::TcpV4);
        run.connect(client, &address);
        run.ready(client);
        run.send(client, b"early");
        run.close(listener);
        run.ready(client);
        run.receive(client, 8);
        run.receive(client, 8);
        run.send(client, b"x");
    });
    compare(|run| {
        let (listener, address) = listener(run, Kind::TcpV4);
        run.shutdown(listener, Shutdown::Write);
        run.ready(listener);
        run.shutdown(listener, Shutdown::Both);
        run.ready(listener);
        run.accept(listener);
        run.local(listener);
        let client = run.socket(Kind::TcpV4);
        run.connect(client, &address);
        run.ready(client);
        run.take_error(client);
        run.listen(listener, 4);
        run.ready(listener);
        run.local(listener);
        let client = run.socket(Kind::TcpV4);
        run.connect(client, &address);
        run.ready(client);
        run.ready(listener);
    });
}

#[test]
fn a_connection_ends_before_it_is_accepted() {
    for setting in [None, Some(Setting::ResetOnClose)] {
        compare(|run| {
            let (listener, address) = listener(run, Kind::TcpV4);
            let client = run.socket(Kind::TcpV4);
            run.connect(client, &address);
            run.ready(client);
            run.send(client, b"hello");
            if let Some(setting) = setting {
                run.set(client, setting);
            }
            run.close(client);
            run.ready(listener);
            let server = run.accept(listener).expect("a connection");
            run.ready(server);
            run.peer(server);
            run.receive(server, 8);
            run.receive(server, 8);
            run.receive(server, 8);
            run.ready(server);
        });
    }
}

/// Binds a second socket to the port of a first one, and lets both listen.
fn second_bind(
    run: &mut Run,
    first: (Kind, Address),
    second: (Kind, Address),
    settings: &[Setting],
) {
    let one = run.socket(first.0);
    let two = run.socket(second.0);
    for setting in settings {
        run.set(one, *setting);
        run.set(two, *setting);
    }
    run.bind(one, &first.1);
    let Address::Ip(address) = run.local(one) else {
        unreachable!()
    };
    let Address::Ip(mut other) = second.1 else {
        unreachable!()
    };
    other.set_port(address.port());
    run.bind(two, &Address::Ip(other));
    run.local(two);
    if !matches!(first.0, Kind::TcpV4 | Kind::TcpV6) {
        return;
    }
    run.listen(one, 4);
    let three = run.socket(second.0);
    for setting in settings {
        run.set(three, *setting);
    }
    run.bind(three, &Address::Ip(other));
    run.listen(two, 4);
}

#[test]
fn ports_that_are_taken() {
    let v4 = || (Kind::TcpV4, ip(V4, 0));
    let any4 = || (Kind::TcpV4, ip(Ipv4Addr::UNSPECIFIED, 0));
    let v6 = || (Kind::TcpV6, ip(V6, 0));
    let any6 = || (Kind::TcpV6, ip(Ipv6Addr::UNSPECIFIED, 0));
    let mapped = || (Kind::TcpV6, ip(V4.to_ipv6_mapped(), 0));
    let all = [
        v4(),
        any4(),
        v6(),
        any6(),
        mapped(),
        (Kind::TcpV4, ip([127, 0, 0, 2], 0)),
    ];
    for first in &all {
        for second in &all {
            for settings in [&[][..], &[Setting::ReuseAddress], &[Setting::ReusePort]] {
                compare(|run| second_bind(run, first.clone(), second.clone(), settings));
            }
        }
    }
    for (first, second) in [(any4(), any6()), (any6(), any4())] {
        for settings in [&[][..], &[Setting::ReuseAddress]] {
            compare(|run| {
                let one = run.socket(first.0);
                let two = run.socket(second.0);
                for setting in settings {
                    run.set(one, *setting);
                    run.set(two, *setting);
                }
                let v6 = if first.0 == Kind::TcpV6 { one } else { two };
                run.set(v6, Setting::V6Only);
                run.bind(one, &first.1);
                let Address::Ip(address) = run.local(one) else {
                    unreachable!()
                };
                let Address::Ip(mut other) = second.1 else {
                    unreachable!()
                };
                other.set_port(address.port());
                run.bind(two, &Address::Ip(other));
                run.listen(one, 4);
                run.listen(two, 4);
            });
        }
    }
}

#[test]
fn ports_of_datagrams_that_are_taken() {
    let all = [
        (Kind::UdpV4, ip(V4, 0)),
        (Kind::UdpV4, ip(Ipv4Addr::UNSPECIFIED, 0)),
        (Kind::UdpV6, ip(V6, 0)),
        (Kind::UdpV6, ip(Ipv6Addr::UNSPECIFIED, 0)),
    ];
    for first in &all {
        for second in &all {
            for settings in [&[][..], &[Setting::ReuseAddress], &[Setting::ReusePort]] {
                compare(|run| second_bind(run, first.clone(), second.clone(), settings));
            }
        }
    }
}

#[test]
fn the_port_after_a_connection() {
    for reuse in [false, true] {
        for server_closes_first in [false, true] {
            compare(|run| {
                let listener = run.socket(Kind::TcpV4);
                if reuse {
                    run.set(listener, Setting::ReuseAddress);
                }
                run.bind(listener, &ip(V4, 0));
                run.listen(listener, 4);
                let address = run.local(listener);
                let client = run.socket(Kind::TcpV4);
                run.connect(client, &address);
                run.ready(client);
                run.ready(listener);
                let server = run.accept(listener).expect("a connection");
                run.close(listener);
                let again = |run: &mut Run| {
                    let socket = run.socket(Kind::TcpV4);
                    if reuse {
                        run.set(socket, Setting::ReuseAddress);
                    }
                    run.bind(socket, &address);
                    run.listen(socket, 4);
                    run.close(socket);
                };
                again(run);
                let (first, second) = if server_closes_first {
                    (server, client)
                } else {
                    (client, server)
                };
                run.close(first);
                run.ready(second);
                again(run);
                run.close(second);
                run.pass(std::time::Duration::from_millis(20));
                again(run);
            });
        }
    }
}
