//! Who is told that something has changed, and when a loss is repaired.

use std::time::Duration;

use super::super::{Address, Errno, Fault, Kind, UnixName};
use super::{advance_by, connect, connected, listen, receive, two_nodes};

#[test]
fn both_ends_of_a_connection_are_told() {
    let (mut network, one, two) = two_nodes(1);
    let listener = listen(&mut network, two);
    let client = connect(&mut network, one);
    network.take_changed();
    let mut changed = Vec::new();
    while let Some(next) = network.next_event() {
        network.advance(next);
        changed.extend(network.take_changed());
    }
    let (server, _) = network.accept(listener).expect("a connection");
    // With the connection that was not accepted yet.
    assert_eq!(changed, [client, server, listener]);
    for _ in 0..2 {
        // Also when it is readable already.
        network.send(client, b"data").expect("space");
        advance_by(&mut network, Duration::from_secs(1));
        assert_eq!(network.take_changed(), [server]);
    }
}

#[test]
fn a_writer_is_told_of_space() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    while network.send(client, &[1; 50_000]).is_ok() {
        advance_by(&mut network, Duration::from_millis(1));
    }
    assert_eq!(network.readiness(client) & libc::POLLOUT, 0);
    network.take_changed();
    while receive(&mut network, server, 100_000).is_ok() {}
    advance_by(&mut network, Duration::from_secs(1));
    assert_ne!(network.readiness(client) & libc::POLLOUT, 0);
    assert!(network.take_changed().contains(&client));
}

#[test]
fn senders_of_datagrams_are_told_of_a_place_in_the_queue() {
    let (mut network, one, _) = two_nodes(1);
    let server = network.socket(one, Kind::UnixDatagram);
    let name = Address::Unix(UnixName::Abstract(b"server".to_vec()));
    network.bind(server, &name).expect("a free name");
    let client = network.socket(one, Kind::UnixDatagram);
    network.connect(client, &name).expect("connected");
    while network.send(client, b"x").is_ok() {}
    assert_eq!(network.send(client, b"x"), Err(Errno(libc::EAGAIN)));
    network.take_changed();
    assert_eq!(network.readiness(client) & libc::POLLOUT, 0);
    receive(&mut network, server, 1).expect("a datagram");
    assert_ne!(network.readiness(client) & libc::POLLOUT, 0);
    assert_eq!(network.take_changed(), [client]);
}

#[test]
fn one_lost_segment_among_others_is_sent_again_at_once() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    network.apply(&Fault::Partition(vec![vec![one]]));
    network.send(client, b"a").expect("space");
    network.apply(&Fault::Heal);
    for _ in 0..5 {
        network.send(client, b"b").expect("space");
    }
    // Far less than the shortest time-out.
    advance_by(&mut network, Duration::from_millis(10));
    assert_eq!(receive(&mut network, server, 10), Ok(b"abbbbb".to_vec()));
}

#[test]
fn a_time_out_that_passes_in_a_pause_comes_after_it() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    network.apply(&Fault::Partition(vec![vec![one]]));
    network.send(client, b"lost").expect("space");
    network.apply(&Fault::Pause(one));
    advance_by(&mut network, Duration::from_secs(60));
    assert_eq!(network.next_event(), None);
    network.apply(&Fault::Heal);
    network.apply(&Fault::Resume(one));
    assert_eq!(network.next_event(), Some(network.now()));
    advance_by(&mut network, Duration::from_millis(1));
    assert_eq!(receive(&mut network, server, 10), Ok(b"lost".to_vec()));
}
