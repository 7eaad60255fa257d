//! Who is told that something has changed, and when a loss is repaired.

use std::time::Duration;

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
fn one_lost_segment_among_others_is_sent_again_at_once() {
    let (mut network, one, two) = two_nodes(1);
    let (client, server) = connected(&mut network, one, two);
    network.partition(&[vec![one]]);
    network.send(client, b"a").expect("space");
    network.heal();
    for _ in 0..5 {
        network.send(client, b"b").expect("space");
    }
    // Far less than the shortest time-out.
    advance_by(&mut network, Duration::from_millis(10));
    assert_eq!(receive(&mut network, server, 10), Ok(b"abbbbb".to_vec()));
}
