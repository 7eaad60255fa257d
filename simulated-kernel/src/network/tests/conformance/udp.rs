//! Datagrams.

use std::net::{Ipv4Addr, Ipv6Addr, Shutdown};

use super::super::super::{Address, Kind};
use super::tcp::closed_port;
use super::{Run, Setting, V4, V6, compare, ip};

fn loopback(kind: Kind) -> Address {
    if kind.is_v6() { ip(V6, 0) } else { ip(V4, 0) }
}

fn bound(run: &mut Run, kind: Kind) -> (usize, Address) {
    let socket = run.socket(kind);
    run.bind(socket, &loopback(kind));
    let address = run.local(socket);
    (socket, address)
}

#[test]
fn datagrams_without_a_connection() {
    for kind in [Kind::UdpV4, Kind::UdpV6] {
        compare(|run| {
            let one = run.socket(kind);
            calls! { run,
                one: ready(), local(), peer(), receive(8), send(b"nowhere"), listen(1), accept();
            }
            let (two, address) = bound(run, kind);
            calls! { run,
                one: send_to(b"datagram", &address);
                two: ready(), peek(4), receive(4), receive(4), ready();
                one: send_to(b"", &address), send_to(b"next", &address);
                two: ready(), receive(8), receive(0), receive(8);
                one: local(), send_to(b"x", &loopback(kind));
            }
            let Address::Ip(to) = address else {
                unreachable!()
            };
            run.send_to(one, b"any", &ip(Ipv4Addr::UNSPECIFIED, to.port()));
            run.send_to(one, b"any", &ip(Ipv6Addr::UNSPECIFIED, to.port()));
            run.bind(two, &address);
            run.take_error(two);
            let refused = closed_port(run, kind);
            calls! { run, one: send_to(b"x", &refused), ready(), receive(8); }
        });
    }
}

#[test]
fn lengths() {
    for (kind, longest) in [(Kind::UdpV4, 65507), (Kind::UdpV6, 65527)] {
        compare(|run| {
            let (one, address) = bound(run, kind);
            for len in [longest, longest + 1, 65535, 65536, 100_000] {
                run.send_to(one, &vec![b'a'; len], &address);
            }
            calls! { run, one: ready(), receive(3), receive(3); }
        });
    }
}

#[test]
fn connected_datagrams() {
    for kind in [Kind::UdpV4, Kind::UdpV6] {
        compare(|run| {
            let (one, first) = bound(run, kind);
            let (two, second) = bound(run, kind);
            let (three, third) = bound(run, kind);
            calls! { run,
                three: send_to(b"before", &first);
                one: connect(&second), peer(), ready(), receive(8), send(b"to two");
                two: ready(), receive(8);
                one: send_to(b"to three", &third);
                three: ready(), receive(8);
            }
            // No connected socket takes it, which the kernel refuses.
            calls! { run,
                three: send_to(b"filtered", &first); two: send_to(b"passes", &first);
                one: ready(), receive(8), receive(8), connect(&third), peer(), send(b"again");
                three: ready(), receive(8);
            }
            let fresh = run.socket(kind);
            calls! { run, fresh: connect(&first), local(), ready(); }
        });
    }
}

#[test]
fn a_refusal_is_told_once() {
    for kind in [Kind::UdpV4, Kind::UdpV6] {
        compare(|run| {
            let address = closed_port(run, kind);
            let socket = run.socket(kind);
            calls! { run,
                socket: connect(&address), ready(), send(b"a"), ready(), receive(8), ready(),
                    receive(8), send(b"b"), ready(), send(b"c"), ready(), send(b"d"), ready(),
                    take_error(), take_error(), ready();
            }
        });
    }
}

#[test]
fn shut_down_datagrams() {
    for how in [Shutdown::Read, Shutdown::Write, Shutdown::Both] {
        for connects in [false, true] {
            compare(|run| {
                let (one, first) = bound(run, Kind::UdpV4);
                let (two, second) = bound(run, Kind::UdpV4);
                if connects {
                    run.connect(one, &second);
                }
                calls! { run,
                    one: shutdown(how), ready(), receive(8), send_to(b"out", &second);
                    two: send_to(b"in", &first);
                    one: ready(), receive(8), receive(8), ready();
                }
            });
        }
    }
}

#[run_test(compare)]
fn both_families_of_datagrams(run: &mut Run) {
    let any = run.socket(Kind::UdpV6);
    run.bind(any, &ip(Ipv6Addr::UNSPECIFIED, 0));
    let Address::Ip(address) = run.local(any) else {
        unreachable!()
    };
    let (v4, v4_address) = bound(run, Kind::UdpV4);
    calls! { run,
        v4: send_to(b"from v4", &ip(V4, address.port()));
        any: ready(), receive(16), send_to(b"to v4", &v4_address);
        v4: ready(), receive(16);
    }
    let Address::Ip(v4_address) = v4_address else {
        unreachable!()
    };
    run.send_to(any, b"mapped", &ip(V4.to_ipv6_mapped(), v4_address.port()));
    run.ready(v4);
    run.receive(v4, 16);
    run.send_to(v4, b"x", &ip(V6, address.port()));
    run.connect(v4, &ip(V6, address.port()));
    calls! { run,
        any: connect(&ip(V4.to_ipv6_mapped(), v4_address.port())), local(), peer();
    }
}

#[run_test(compare)]
fn broadcasts_must_be_allowed(run: &mut Run) {
    let socket = run.socket(Kind::UdpV4);
    run.send_to(socket, b"all", &ip(Ipv4Addr::BROADCAST, 9));
    run.connect(socket, &ip(Ipv4Addr::BROADCAST, 9));
    run.set(socket, Setting::Broadcast);
    run.bind(socket, &ip([203, 0, 113, 7], 0));
}

#[run_test(compare)]
fn a_full_receive_buffer_drops(run: &mut Run) {
    let (one, address) = bound(run, Kind::UdpV4);
    let (two, _) = bound(run, Kind::UdpV4);
    run.set(one, Setting::ReceiveBuffer(4096));
    for _ in 0..100 {
        run.send_to(two, &[b'a'; 1000], &address);
    }
    calls! { run, one: ready(), receive(2), ready(); }
}
