//! Tests of the simulated network. See `conformance` for the comparison with the kernel.

use std::net::IpAddr;
use std::time::Duration;

use super::address::{NodeId, Result, Time};
use super::{Address, Kind, Link, Network, SocketId};

mod conformance;
mod faults;
mod properties;
mod random_calls;
mod wakes;

fn two_nodes(seed: u64) -> (Network, NodeId, NodeId) {
    let mut network = Network::new(seed);
    let one = network.add_node("one", IpAddr::from([10, 0, 0, 1]));
    let two = network.add_node("two", IpAddr::from([10, 0, 0, 2]));
    (network, one, two)
}

fn address(last: u8, port: u16) -> Address {
    Address::Ip((IpAddr::from([10, 0, 0, last]), port).into())
}

/// What goes wrong by chance.
#[derive(Clone, Debug)]
enum Fault {
    Links(Link),
    Partition,
    Heal,
    PowerCut(NodeId),
    PowerOn(NodeId),
    Pause(NodeId),
    Resume(NodeId),
}

impl Fault {
    fn happens(&self, network: &mut Network) {
        match self {
            Fault::Links(link) => network.set_default_link(link.clone()),
            Fault::Partition => network.partition(&[vec![NodeId(0)], vec![NodeId(1)]]),
            Fault::Heal => network.heal(),
            Fault::PowerCut(node) => network.cut(*node),
            Fault::PowerOn(node) => network.power_on(*node),
            Fault::Pause(node) => network.pause(*node),
            Fault::Resume(node) => network.resume(*node),
        }
    }
}

/// A listener of a node, on port 80 of all addresses.
fn listen(network: &mut Network, node: NodeId) -> SocketId {
    let listener = network.socket(node, Kind::TcpV4);
    network
        .bind(listener, &Address::Ip(([0, 0, 0, 0], 80).into()))
        .expect("a free port");
    network.listen(listener, 128).expect("a listener");
    listener
}

/// Connects node one to port 80 of node two.
fn connect(network: &mut Network, one: NodeId) -> SocketId {
    let client = network.socket(one, Kind::TcpV4);
    assert_eq!(
        network.connect(client, &address(2, 80)),
        Err(libc::EINPROGRESS)
    );
    client
}

fn connected(network: &mut Network, one: NodeId, two: NodeId) -> (SocketId, SocketId) {
    let listener = listen(network, two);
    let client = connect(network, one);
    network.advance(network.now + Duration::from_secs(1));
    let (server, _) = network.accept(listener).expect("a connection");
    network.close(listener).expect("an open socket");
    (client, server)
}

/// Delivers all that happens until `end`.
fn advance_to(network: &mut Network, end: Time) {
    while let Some(next) = network.next_event().filter(|next| *next <= end) {
        network.advance(next);
    }
    network.advance(end);
}

fn advance_by(network: &mut Network, length: Time) {
    advance_to(network, network.now + length);
}

fn receive(network: &mut Network, id: SocketId, len: usize) -> Result<Vec<u8>> {
    let mut buffer = vec![0; len];
    let received = network.recv(id, &mut buffer, false)?;
    buffer.truncate(received.len);
    Ok(buffer)
}

fn is_readable(network: &Network, id: SocketId) -> bool {
    network.readiness(id) & libc::POLLIN != 0
}
