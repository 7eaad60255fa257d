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
            run.ready(one);
            run.local(one);
            run.peer(one);
            run.receive(one, 8);
            run.send(one, b"nowhere");
            run.listen(one, 1);
            run.accept(one);
            let (two, address) = bound(run, kind);
            run.send_to(one, b"datagram", &address);
            run.ready(two);
            run.peek(two, 4);
            run.receive(two, 4);
            run.receive(two, 4);
            run.ready(two);
            run.send_to(one, b"", &address);
            run.send_to(one, b"next", &address);
            run.ready(two);
            run.receive(two, 8);
            run.receive(two, 0);
            run.receive(two, 8);
            run.local(one);
            run.send_to(one, b"x", &loopback(kind));
            let Address::Ip(to) = address else {
                unreachable!()
            };
            run.send_to(one, b"any", &ip(Ipv4Addr::UNSPECIFIED, to.port()));
            run.send_to(one, b"any", &ip(Ipv6Addr::UNSPECIFIED, to.port()));
            run.bind(two, &address);
            run.take_error(two);
            let refused = closed_port(run, kind);
            run.send_to(one, b"x", &refused);
            run.ready(one);
            run.receive(one, 8);
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
            run.ready(one);
            run.receive(one, 3);
            run.receive(one, 3);
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
            run.send_to(three, b"before", &first);
            run.connect(one, &second);
            run.peer(one);
            run.ready(one);
            run.receive(one, 8);
            run.send(one, b"to two");
            run.ready(two);
            run.receive(two, 8);
            run.send_to(one, b"to three", &third);
            run.ready(three);
            run.receive(three, 8);
            // No connected socket takes it, which the kernel refuses.
            run.send_to(three, b"filtered", &first);
            run.send_to(two, b"passes", &first);
            run.ready(one);
            run.receive(one, 8);
            run.receive(one, 8);
            run.connect(one, &third);
            run.peer(one);
            run.send(one, b"again");
            run.ready(three);
            run.receive(three, 8);
            let fresh = run.socket(kind);
            run.connect(fresh, &first);
            run.local(fresh);
            run.ready(fresh);
        });
    }
}

#[test]
fn a_refusal_is_told_once() {
    for kind in [Kind::UdpV4, Kind::UdpV6] {
        compare(|run| {
            let address = closed_port(run, kind);
            let socket = run.socket(kind);
            run.connect(socket, &address);
            run.ready(socket);
            run.send(socket, b"a");
            run.ready(socket);
            run.receive(socket, 8);
            run.ready(socket);
            run.receive(socket, 8);
            run.send(socket, b"b");
            run.ready(socket);
            run.send(socket, b"c");
            run.ready(socket);
            run.send(socket, b"d");
            run.ready(socket);
            run.take_error(socket);
            run.take_error(socket);
            run.ready(socket);
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
                run.shutdown(one, how);
                run.ready(one);
                run.receive(one, 8);
                run.send_to(one, b"out", &second);
                run.send_to(two, b"in", &first);
                run.ready(one);
                run.receive(one, 8);
                run.receive(one, 8);
                run.ready(one);
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
    run.send_to(v4, b"from v4", &ip(V4, address.port()));
    run.ready(any);
    run.receive(any, 16);
    run.send_to(any, b"to v4", &v4_address);
    run.ready(v4);
    run.receive(v4, 16);
    let Address::Ip(v4_address) = v4_address else {
        unreachable!()
    };
    run.send_to(any, b"mapped", &ip(V4.to_ipv6_mapped(), v4_address.port()));
    run.ready(v4);
    run.receive(v4, 16);
    run.send_to(v4, b"x", &ip(V6, address.port()));
    run.connect(v4, &ip(V6, address.port()));
    let only = run.socket(Kind::UdpV6);
    run.set(only, Setting::V6Only);
    run.send_to(only, b"x", &Address::Ip(v4_address));
    run.send_to(only, b"x", &ip(V4.to_ipv6_mapped(), v4_address.port()));
    run.connect(only, &ip(V4.to_ipv6_mapped(), v4_address.port()));
    run.connect(any, &ip(V4.to_ipv6_mapped(), v4_address.port()));
    run.local(any);
    run.peer(any);
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
    run.ready(one);
    run.receive(one, 2);
    run.ready(one);
}
