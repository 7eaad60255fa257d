//! Faults and links, one by one.

use std::net::IpAddr;
use std::time::Duration;

use super::super::Link;
use super::{
    Address, Kind, Network, SocketId, address, advance_by, advance_to, connect, connected,
    is_readable, listen, receive, two_nodes,
};

fn fixed(ms: u64) -> Link {
    let latency = Duration::from_millis(ms);
    Link {
        latency: latency..latency,
        ..Link::default()
    }
}

/// Advances until the socket has an error, and returns it with the moment.
fn error_of(network: &mut Network, id: SocketId) -> (i32, Duration) {
    while network.readiness(id) & libc::POLLERR == 0 {
        let next = network.next_event().expect("an error to come");
        network.advance(next);
    }
    (
        network.take_error(id).expect("open").expect("an error"),
        network.now,
    )
}

fn udp(network: &mut Network, node: super::NodeId, port: u16) -> SocketId {
    let socket = network.socket(node, Kind::UdpV4);
    network
        .bind(socket, &Address::Ip(([0, 0, 0, 0], port).into()))
        .expect("a free port");
    socket
}

#[test]
fn links_have_directions() {
    let (mut network, one, two) = two_nodes(1);
    network.set_link(one, two, fixed(5));
    network.set_link(two, one, fixed(70));
    let (client, server) = (udp(&mut network, one, 1), udp(&mut network, two, 1));
    network
        .send_to(client, b"there", &address(2, 1))
        .expect("sent");
    network
        .send_to(server, b"back", &address(1, 1))
        .expect("sent");
    assert_eq!(network.next_event(), Some(Duration::from_millis(5)));
    network.advance(Duration::from_millis(5));
    assert!(is_readable(&network, server) && !is_readable(&network, client));
    assert_eq!(network.next_event(), Some(Duration::from_millis(70)));
    network.advance(Duration::from_millis(70));
    assert!(is_readable(&network, client));
}

#[test]
fn a_link_of_limited_bandwidth_takes_its_time_and_drops_what_exceeds_its_queue() {
    let (mut network, one, two) = two_nodes(1);
    let link = Link {
        bandwidth: Some(1000),
        queue_bytes: 1000,
        ..fixed(0)
    };
    network.set_default_link(link);
    let (client, server) = (udp(&mut network, one, 1), udp(&mut network, two, 1));
    for _ in 0..20 {
        // With headers 100 bytes.
        network
            .send_to(client, &[7; 72], &address(2, 1))
            .expect("sent");
    }
    let mut arrivals = Vec::new();
    while let Some(next) = network.next_event() {
        network.advance(next);
        arrivals.push(next.as_millis());
    }
    // The one that is on its way, and a full queue.
    let expected: Vec<_> = (1..=11).map(|number| number * 100).collect();
    assert_eq!(arrivals, expected);
    let received = std::iter::from_fn(|| receive(&mut network, server, 100).ok()).count();
    assert_eq!(received, 11);
}

#[test]
fn the_mtu_cuts_datagrams_into_fragments_that_are_lost_together() {
    let lost = |len: usize| {
        let (mut network, one, two) = two_nodes(9);
        network.set_default_link(Link {
            loss: 0.1,
            mtu: 1000,
            ..Link::default()
        });
        let (client, _server) = (udp(&mut network, one, 1), udp(&mut network, two, 1));
        for _ in 0..1000 {
            network
                .send_to(client, &vec![0; len], &address(2, 1))
                .expect("sent");
        }
        // Those that are on their way.
        1000 - network.events.len()
    };
    let (whole, cut) = (lost(900), lost(9900));
    assert!((50..150).contains(&whole), "{whole} of 1000");
    // One of ten is lost with 0.65.
    assert!((550..750).contains(&cut), "{cut} of 1000");
}

#[test]
fn connecting_to_a_node_without_power_times_out() {
    let (mut network, one, two) = two_nodes(1);
    let _listener = listen(&mut network, two);
    network.cut(two);
    let client = connect(&mut network, one);
    // 1 + 2 + 4 + .. + 64 seconds.
    assert_eq!(
        error_of(&mut network, client),
        (libc::ETIMEDOUT, Duration::from_secs(127))
    );
    assert_eq!(
        network.connect(client, &address(2, 80)),
        Err(libc::ECONNABORTED)
    );
}

#[test]
fn connecting_to_an_address_that_no_node_has() {
    let (mut network, one, _) = two_nodes(1);
    let client = network.socket(one, Kind::TcpV4);
    assert_eq!(
        network.connect(client, &address(99, 80)),
        Err(libc::EINPROGRESS)
    );
    assert_eq!(
        error_of(&mut network, client),
        (libc::EHOSTUNREACH, Duration::from_secs(3))
    );
    // Datagrams are lost, and no node has IPv6.
    let socket = udp(&mut network, one, 1);
    network
        .send_to(socket, b"x", &address(99, 80))
        .expect("sent");
    let v6 = network.socket(one, Kind::UdpV6);
    let to = Address::Ip((IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), 80).into());
    assert_eq!(network.send_to(v6, b"x", &to), Err(libc::ENETUNREACH));
}

#[test]
fn a_power_cut_is_silent_until_the_node_is_back() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    let (sender, receiver) = (udp(&mut network, one, 1), udp(&mut network, two, 1));
    network.connect(sender, &address(2, 1)).expect("connected");
    network.cut(two);
    for id in [server, receiver] {
        assert_eq!(network.readiness(id), libc::POLLNVAL);
        assert_eq!(network.send(id, b"x"), Err(libc::EBADF));
        assert_eq!(network.close(id), Err(libc::EBADF));
    }
    network.send(client, b"into the dark").expect("space");
    network.send(sender, b"lost").expect("sent");
    advance_by(&mut network, Duration::from_secs(20));
    assert_eq!(network.readiness(client), libc::POLLOUT | libc::POLLWRNORM);
    assert_eq!(network.recv(sender, &mut [0], false), Err(libc::EAGAIN));
    network.power_on(two);
    // The next retransmission is answered with a reset.
    assert_eq!(error_of(&mut network, client).0, libc::ECONNRESET);
    network.send(sender, b"refused").expect("sent");
    assert_eq!(error_of(&mut network, sender).0, libc::ECONNREFUSED);
}

#[test]
fn an_idle_connection_does_not_notice_a_power_cut() {
    let (mut network, one, two) = two_nodes(1);
    let (client, _) = connected(&mut network, one, two);
    network.cut(two);
    advance_to(&mut network, Duration::from_secs(100_000));
    assert_eq!(network.readiness(client), libc::POLLOUT | libc::POLLWRNORM);
}

#[test]
fn the_same_ports_connect_again_after_a_power_cut() {
    let (mut network, one, two) = two_nodes(1);
    let listener = listen(&mut network, two);
    let connect_from_90 = |network: &mut Network| {
        let client = network.socket(one, Kind::TcpV4);
        network.bind(client, &address(1, 90)).expect("a free port");
        assert_eq!(
            network.connect(client, &address(2, 80)),
            Err(libc::EINPROGRESS)
        );
        advance_by(network, Duration::from_secs(5));
        client
    };
    connect_from_90(&mut network);
    let (old, _) = network.accept(listener).expect("a connection");
    network.cut(one);
    network.power_on(one);
    // The server still has the former connection, until the new SYN leads to a reset.
    let client = connect_from_90(&mut network);
    assert_eq!(network.take_error(old), Ok(Some(libc::ECONNRESET)));
    network.send(client, b"new").expect("space");
    advance_to(&mut network, Duration::from_secs(20));
    let (server, _) = network.accept(listener).expect("a connection");
    assert_eq!(receive(&mut network, server, 8), Ok(b"new".to_vec()));
}

#[test]
fn packets_on_their_way_do_not_enter_a_partition() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = (udp(&mut network, one, 1), udp(&mut network, two, 1));
    network.send_to(client, b"x", &address(2, 1)).expect("sent");
    network.partition(&[vec![one], vec![two]]);
    advance_to(&mut network, Duration::from_secs(1));
    assert!(!is_readable(&network, server));
}

#[test]
fn packets_wait_for_a_paused_node_and_so_do_its_time_outs() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    network.pause(two);
    network.send(client, b"first").expect("space");
    network.send(client, b" second").expect("space");
    advance_to(&mut network, Duration::from_secs(60));
    assert!(!is_readable(&network, server));
    network.resume(two);
    assert_eq!(network.next_event(), Some(network.now));
    network.advance(network.now);
    assert_eq!(
        receive(&mut network, server, 20),
        Ok(b"first second".to_vec())
    );
    // The node that stands still sends nothing again.
    network.partition(&[vec![one], vec![two]]);
    network.send(client, b"lost").expect("space");
    network.pause(one);
    network.take_log();
    advance_by(&mut network, Duration::from_secs(60));
    assert_eq!(network.take_log(), []);
    network.heal();
    network.resume(one);
    advance_by(&mut network, Duration::from_secs(1));
    assert_eq!(receive(&mut network, server, 20), Ok(b"lost".to_vec()));
}

#[test]
fn reordered_packets_are_overtaken_and_others_are_not() {
    for (reorder, expected) in [(0.0, true), (0.3, false)] {
        let (mut network, one, two) = two_nodes(3);
        let latency = Duration::from_millis(1)..Duration::from_millis(50);
        network.set_default_link(Link {
            latency,
            reorder,
            ..Link::default()
        });
        let (client, server) = (udp(&mut network, one, 1), udp(&mut network, two, 1));
        for number in 0..100 {
            network
                .send_to(client, &[number], &address(2, 1))
                .expect("sent");
        }
        advance_to(&mut network, Duration::from_secs(1));
        let received: Vec<_> =
            std::iter::from_fn(|| receive(&mut network, server, 1).ok()).collect();
        assert_eq!(received.len(), 100);
        assert_eq!(received.is_sorted(), expected, "reorder {reorder}");
    }
}

#[test]
fn names_of_nodes() {
    let (mut network, one, two) = two_nodes(1);
    assert_eq!(network.resolve(one, "two"), Some([10, 0, 0, 2].into()));
    assert_eq!(
        network.resolve(two, "localhost"),
        Some([127, 0, 0, 1].into())
    );
    assert_eq!(
        network.resolve(two, "192.0.2.1"),
        Some([192, 0, 2, 1].into())
    );
    assert_eq!(network.resolve(two, "three"), None);
    network.add_address(two, [0xfd00, 0, 0, 0, 0, 0, 0, 2].into());
    let socket = network.socket(two, Kind::UdpV6);
    let own = Address::Ip((IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]), 5).into());
    assert_eq!(network.bind(socket, &own), Ok(()));
}

#[test]
fn a_peer_that_never_reads_does_not_keep_a_closed_socket() {
    let (mut network, one, two) = two_nodes(1);
    let (client, _) = connected(&mut network, one, two);
    while network.send(client, &[1; 50_000]).is_ok() {
        advance_by(&mut network, Duration::from_millis(1));
    }
    advance_by(&mut network, Duration::from_secs(10_000));
    // As long as the socket is open the peer is asked.
    assert_eq!(network.sockets.len(), 2);
    network.close(client).expect("open");
    advance_by(&mut network, Duration::from_secs(10_000));
    assert_eq!(network.sockets.len(), 1);
}

#[test]
fn what_was_lost_is_sent_again_after_the_window_was_full() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    let mut sent = 0;
    while let Ok(len) = network.send(client, &[1; 50_000]) {
        sent += len;
        advance_by(&mut network, Duration::from_millis(1));
    }
    // The update of the window is lost, and asked for.
    network.partition(&[vec![one], vec![two]]);
    let mut received = 0;
    while let Ok(bytes) = receive(&mut network, server, 10_000) {
        received += bytes.len();
    }
    advance_by(&mut network, Duration::from_secs(1));
    network.heal();
    let deadline = network.now + Duration::from_secs(300);
    while received < sent {
        let next = network
            .next_event()
            .filter(|next| *next < deadline)
            .expect("more to come");
        network.advance(next);
        while let Ok(bytes) = receive(&mut network, server, 10_000) {
            received += bytes.len();
        }
    }
    assert_eq!(received, sent);
}
