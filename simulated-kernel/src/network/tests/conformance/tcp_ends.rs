//! How connections of TCP end, and who may have which port.

use std::net::{Ipv4Addr, Ipv6Addr, Shutdown};

use super::super::super::{Address, Kind};
use super::tcp::{connection, listener};
use super::{Run, Setting, V4, V6, compare, ip};

#[run_test(compare)]
fn closing_with_unread_data_resets(run: &mut Run) {
    let (client, server) = connection(run);
    calls! { run,
        server: send(b"answer"); client: send(b"unread");
        server: ready(), close();
        client: ready(), receive(3), ready(), receive(8), receive(8), receive(8), send(b"x"),
            peer(), ready(), shutdown(Shutdown::Write);
    }
}

#[test]
fn a_reset_is_told_once() {
    for reader in 0..3 {
        compare(|run| {
            let (client, server) = connection(run);
            calls! { run, server: set(Setting::ResetOnClose), close(); client: ready(); }
            match reader {
                0 => run.take_error(client),
                1 => run.send(client, b"x"),
                _ => run.receive(client, 8),
            }
            calls! { run, client: ready(), take_error(), receive(8), send(b"x"); }
            let address = ip(V4, 1);
            run.connect(client, &address);
        });
    }
}

#[run_test(compare)]
fn shutdown_for_reading(run: &mut Run) {
    let (client, server) = connection(run);
    calls! { run,
        client: shutdown(Shutdown::Read), ready(), receive(8);
        server: send(b"still");
        client: ready(), receive(8), receive(8), send(b"out");
        server: ready(), receive(8);
        client: shutdown(Shutdown::Write), ready();
        server: ready();
    }
    // Now a reset answers data.
    calls! { run,
        server: send(b"late"), ready(), receive(8), take_error(), send(b"late");
        client: ready(), take_error(), receive(8);
    }
}

#[test]
fn shutdown_of_both_ends() {
    for how in [Shutdown::Write, Shutdown::Both] {
        compare(|run| {
            let (client, server) = connection(run);
            calls! { run,
                client: shutdown(how);
                server: ready(), shutdown(how);
                client: ready(); server: ready(); client: receive(1); server: receive(1);
                client: peer(); server: peer(); client: shutdown(how); server: shutdown(how);
                client: send(b"x"); server: send(b"x"); client: take_error(); server: take_error();
            }
        });
    }
}

#[test]
fn a_listener_ends() {
    compare(|run| {
        let (listener, address) = listener(run, Kind::TcpV4);
        let client = run.socket(Kind::TcpV4);
        calls! { run,
            client: connect(&address), ready(), send(b"early");
            listener: close();
            client: ready(), receive(8), receive(8), send(b"x");
        }
    });
    compare(|run| {
        let (listener, address) = listener(run, Kind::TcpV4);
        calls! { run,
            listener: shutdown(Shutdown::Write), ready(), shutdown(Shutdown::Both), ready(),
                accept(), local();
        }
        let client = run.socket(Kind::TcpV4);
        calls! { run,
            client: connect(&address), ready(), take_error();
            listener: listen(4), ready(), local();
        }
        let client = run.socket(Kind::TcpV4);
        calls! { run, client: connect(&address), ready(); listener: ready(); }
    });
}

#[test]
fn a_connection_ends_before_it_is_accepted() {
    for setting in [None, Some(Setting::ResetOnClose)] {
        compare(|run| {
            let (listener, address) = listener(run, Kind::TcpV4);
            let client = run.socket(Kind::TcpV4);
            calls! { run, client: connect(&address), ready(), send(b"hello"); }
            if let Some(setting) = setting {
                run.set(client, setting);
            }
            calls! { run, client: close(); listener: ready(); }
            let server = run.accept(listener).expect("a connection");
            calls! { run, server: ready(), peer(), receive(8), receive(8), receive(8), ready(); }
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
        calls! { run, one: set(*setting); two: set(*setting); }
    }
    run.bind(one, &first.1);
    let Address::Ip(address) = run.local(one) else {
        unreachable!()
    };
    let Address::Ip(mut other) = second.1 else {
        unreachable!()
    };
    other.set_port(address.port());
    calls! { run, two: bind(&Address::Ip(other)), local(); }
    if !matches!(first.0, Kind::TcpV4 | Kind::TcpV6) {
        return;
    }
    run.listen(one, 4);
    let three = run.socket(second.0);
    for setting in settings {
        run.set(three, *setting);
    }
    calls! { run, three: bind(&Address::Ip(other)); two: listen(4); }
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
                calls! { run, listener: bind(&ip(V4, 0)), listen(4); }
                let address = run.local(listener);
                let client = run.socket(Kind::TcpV4);
                calls! { run, client: connect(&address), ready(); listener: ready(); }
                let server = run.accept(listener).expect("a connection");
                run.close(listener);
                let again = |run: &mut Run| {
                    let socket = run.socket(Kind::TcpV4);
                    if reuse {
                        run.set(socket, Setting::ReuseAddress);
                    }
                    calls! { run, socket: bind(&address), listen(4), close(); }
                };
                again(run);
                let (first, second) = if server_closes_first {
                    (server, client)
                } else {
                    (client, server)
                };
                calls! { run, first: close(); second: ready(); }
                again(run);
                run.close(second);
                run.pass(std::time::Duration::from_millis(20));
                again(run);
            });
        }
    }
}
