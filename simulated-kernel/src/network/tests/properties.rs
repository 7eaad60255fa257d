//! Laws that hold on every network.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::time::Duration;

use proptest::prelude::*;

use super::super::{Entry, Kind, Link, Network, SocketId};
use super::{Fault, NodeId, Time, address, advance_by, connect, listen, receive, two_nodes};

/// A network that is bad for a while, and how two programs use it.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    there: Link,
    back: Link,
    faults: Vec<(Time, Fault)>,
    /// Bytes of the writes from each end.
    writes: [Vec<usize>; 2],
    /// How much each end reads at once.
    reads: [usize; 2],
    buffers: [usize; 2],
}

fn link() -> impl Strategy<Value = Link> {
    let latency = (0u64..50, 0u64..50)
        .prop_map(|(base, width)| Duration::from_millis(base)..Duration::from_millis(base + width));
    let bandwidth = proptest::option::weighted(0.3, 20_000u64..2_000_000);
    (
        latency,
        0.0..0.25f64,
        0.0..0.3f64,
        0.0..0.3f64,
        0.0..0.3f64,
        bandwidth,
        576u32..9000,
    )
        .prop_map(
            |(latency, loss, duplicate, reorder, split, bandwidth, mtu)| Link {
                latency,
                loss,
                duplicate,
                reorder,
                split,
                bandwidth,
                queue_bytes: 64 << 10,
                mtu,
            },
        )
}

/// Partitions and pauses that end.
fn faults() -> impl Strategy<Value = Vec<(Time, Fault)>> {
    let fault = (0u64..20_000, 1u64..20_000, 0u8..3).prop_map(|(start, length, which)| {
        let (one, two) = (NodeId(0), NodeId(1));
        let (begin, end) = match which {
            0 => (Fault::Partition, Fault::Heal),
            1 => (Fault::Pause(one), Fault::Resume(one)),
            _ => (Fault::Pause(two), Fault::Resume(two)),
        };
        [
            (Duration::from_millis(start), begin),
            (Duration::from_millis(start + length), end),
        ]
    });
    proptest::collection::vec(fault, 0..4).prop_map(|faults| {
        let mut faults = faults.concat();
        faults.sort_by_key(|(at, _)| *at);
        faults.extend([
            (Duration::from_secs(60), Fault::Heal),
            (Duration::from_secs(60), Fault::Resume(NodeId(0))),
            (Duration::from_secs(60), Fault::Resume(NodeId(1))),
        ]);
        faults
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let writes = || proptest::collection::vec(1usize..20_000, 0..12);
    (
        any::<u64>(),
        link(),
        link(),
        faults(),
        [writes(), writes()],
        [1usize..30_000, 1..30_000],
        [2000usize..60_000, 2000..60_000],
    )
        .prop_map(|(seed, there, back, faults, writes, reads, buffers)| Plan {
            seed,
            there,
            back,
            faults,
            writes,
            reads,
            buffers,
        })
}

/// One end of the connection: what it has still to send, and what it has received.
struct End {
    socket: SocketId,
    output: Vec<u8>,
    sent: usize,
    is_finished: bool,
    received: Vec<u8>,
    has_ended: bool,
    read: usize,
}

impl End {
    fn new(socket: SocketId, salt: u8, bytes: usize, read: usize) -> Self {
        let output = (0..bytes)
            .map(|number| (number / 7 % 251) as u8 ^ salt)
            .collect();
        Self {
            socket,
            output,
            sent: 0,
            is_finished: false,
            received: Vec::new(),
            has_ended: false,
            read,
        }
    }

    /// Does what it can, and returns whether that was something.
    fn work(&mut self, network: &mut Network) -> bool {
        let mut has_worked = false;
        while self.sent < self.output.len() {
            match network.send(self.socket, &self.output[self.sent..]) {
                Ok(len) => self.sent += len,
                Err(error) => {
                    assert_eq!(error, libc::EAGAIN);
                    break;
                }
            }
            has_worked = true;
        }
        if self.sent == self.output.len()
            && !self.is_finished
            && network.shutdown(self.socket, Shutdown::Write).is_ok()
        {
            self.is_finished = true;
            has_worked = true;
        }
        while !self.has_ended {
            match receive(network, self.socket, self.read) {
                Ok(bytes) => {
                    self.has_ended = bytes.is_empty();
                    self.received.extend(bytes);
                }
                Err(error) => {
                    assert_eq!(error, libc::EAGAIN);
                    break;
                }
            }
            has_worked = true;
        }
        has_worked
    }
}

/// Runs the plan, and returns all that has happened on the network.
fn transfer(plan: &Plan) -> Vec<Entry> {
    let (mut network, one, two) = two_nodes(plan.seed);
    let listener = listen(&mut network, two);
    network
        .set_receive_buffer(listener, plan.buffers[0])
        .expect("open");
    let client = connect(&mut network, one);
    network
        .set_send_buffer(client, plan.buffers[1])
        .expect("open");
    network.advance(Duration::from_millis(1));
    let (server, _) = network.accept(listener).expect("a connection");
    network.set_link(one, two, plan.there.clone());
    network.set_link(two, one, plan.back.clone());
    let sizes = plan
        .writes
        .each_ref()
        .map(|writes| writes.iter().sum::<usize>());
    let mut ends = [
        End::new(client, 0, sizes[0], plan.reads[0]),
        End::new(server, 0x55, sizes[1], plan.reads[1]),
    ];
    let mut faults = plan.faults.iter().peekable();
    while !ends.iter().all(|end| end.has_ended && end.is_finished) {
        for end in &mut ends {
            while end.work(&mut network) {}
        }
        let next = network.next_event();
        let fault = faults.peek().map(|(at, _)| *at);
        match (next, fault) {
            (Some(next), fault) if fault.is_none_or(|at| next < at) => network.advance(next),
            (_, Some(at)) => {
                network.advance(at.max(network.now));
                faults.next().expect("a fault").1.happens(&mut network);
            }
            (None, None) => break,
            (Some(_), None) => unreachable!("the first arm takes it"),
        }
        assert!(
            network.now < Duration::from_secs(3600),
            "no end after an hour"
        );
    }
    assert!(
        ends[0].received == ends[1].output,
        "{} of {}",
        ends[0].received.len(),
        ends[1].output.len()
    );
    assert!(
        ends[1].received == ends[0].output,
        "{} of {}",
        ends[1].received.len(),
        ends[0].output.len()
    );
    for end in &ends {
        network.close(end.socket).expect("open");
    }
    network.close(listener).expect("open");
    network.heal();
    network.resume(one);
    network.resume(two);
    advance_by(&mut network, Duration::from_secs(3600));
    assert_eq!(network.sockets.len(), 0);
    assert_eq!(network.next_event(), None);
    network.take_log()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_arrive_complete_in_order_and_once(plan in plan()) {
        prop_assert!(transfer(&plan) == transfer(&plan));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each datagram that arrives was sent, whole, and at most twice; queues are bounded.
    #[test]
    fn datagrams_are_not_invented(seed: u64, link in link(), sizes in proptest::collection::vec(0usize..4000, 1..200)) {
        let (mut network, one, two) = two_nodes(seed);
        network.set_default_link(link.clone());
        let bound = |network: &mut Network, node, last| {
            let socket = network.socket(node, Kind::UdpV4);
            network.bind(socket, &address(last, 7)).expect("a free port");
            socket
        };
        let (sender, receiver) = (bound(&mut network, one, 1), bound(&mut network, two, 2));
        let mut unseen = BTreeMap::new();
        for (number, size) in sizes.iter().enumerate() {
            let data = [&(number as u32).to_le_bytes()[..], &vec![number as u8; *size]].concat();
            prop_assert_eq!(network.send_to(sender, &data, &address(2, 7)), Ok(data.len()));
            unseen.insert(data, 2);
        }
        advance_by(&mut network, Duration::from_secs(60));
        let mut buffer = vec![0; 5000];
        let mut queued = 0;
        while let Ok(received) = network.recv(receiver, &mut buffer, false) {
            prop_assert_eq!(received.from, Some(address(1, 7)));
            let copies = unseen.get_mut(&buffer[..received.len]);
            prop_assert!(copies.is_some_and(|copies| { *copies -= 1; *copies >= 0 }), "not sent, or not that often");
            queued += received.len;
        }
        prop_assert!(queued <= network.sockets[&receiver].options.receive_buffer);
        let is_perfect = link.loss == 0.0 && link.bandwidth.is_none();
        prop_assert!(!is_perfect || unseen.values().all(|copies| *copies < 2));
    }

    /// A handshake over a bad link ends: with a connection on both sides, or an error.
    #[test]
    fn handshakes_end(seed: u64, there in link(), back in link()) {
        let (mut network, one, two) = two_nodes(seed);
        network.set_link(one, two, there);
        network.set_link(two, one, back);
        let listener = listen(&mut network, two);
        let client = connect(&mut network, one);
        advance_by(&mut network, Duration::from_secs(300));
        prop_assert_eq!(network.next_event(), None);
        let is_connected = network.peer_addr(client).is_ok();
        let error = network.take_error(client).expect("open");
        prop_assert_eq!(is_connected, error.is_none());
        prop_assert!(error.is_none_or(|error| error == libc::ETIMEDOUT));
        if is_connected && network.accept(listener).is_err() {
            // The server has given up; data tells the client.
            network.send(client, b"x").expect("space");
            advance_by(&mut network, Duration::from_secs(2000));
            let error = network.take_error(client).expect("open");
            prop_assert!(error.is_some());
        }
    }
}
