//! Any calls in any order: nothing panics, no record is left, and each change of readiness is told.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::time::Duration;

use proptest::prelude::*;

use super::super::ports::Ports;
use super::super::{Address, Entry, Kind, Link, Network, SocketId, UnixName};
use super::{Fault, NodeId, address, two_nodes};

#[derive(Clone, Debug)]
enum Step {
    Socket(u8, Kind),
    Pair(u8, Kind),
    Bind(u8, Address),
    Listen(u8, usize),
    Connect(u8, Address),
    Accept(u8),
    Send(u8, usize),
    SendTo(u8, usize, Address),
    Receive(u8, usize, bool),
    Shutdown(u8, Shutdown),
    Close(u8),
    TakeError(u8),
    Set(u8, u8),
    Pass(u64),
    Fault(Fault),
}

const KINDS: [Kind; 6] = [
    Kind::TcpV4,
    Kind::TcpV6,
    Kind::UdpV4,
    Kind::UdpV6,
    Kind::UnixStream,
    Kind::UnixDatagram,
];

fn any_address() -> impl Strategy<Value = Address> {
    let ips = [
        [10, 0, 0, 1].into(),
        [10, 0, 0, 2].into(),
        [10, 0, 0, 3].into(),
        std::net::Ipv4Addr::LOCALHOST.into(),
        std::net::Ipv4Addr::UNSPECIFIED.into(),
        std::net::Ipv6Addr::LOCALHOST.into(),
        std::net::Ipv6Addr::UNSPECIFIED.into(),
        std::net::IpAddr::V6(std::net::Ipv4Addr::LOCALHOST.to_ipv6_mapped()),
    ];
    let ip = (proptest::sample::select(ips.to_vec()), 0u16..4)
        .prop_map(|(ip, port)| Address::Ip((ip, port).into()));
    let names = [
        UnixName::Unnamed,
        UnixName::Path(b"/a".to_vec()),
        UnixName::Path(b"/b".to_vec()),
        UnixName::Abstract(b"c".to_vec()),
    ];
    prop_oneof![3 => ip, 2 => proptest::sample::select(names.to_vec()).prop_map(Address::Unix)]
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let node = || (0usize..2).prop_map(NodeId);
    let bad = Link {
        latency: Duration::from_millis(1)..Duration::from_millis(300),
        loss: 0.2,
        duplicate: 0.2,
        reorder: 0.2,
        split: 0.2,
        bandwidth: Some(100_000),
        queue_bytes: 10_000,
        mtu: 600,
    };
    prop_oneof![
        Just(Fault::Links(bad)),
        Just(Fault::Partition),
        Just(Fault::Heal),
        node().prop_map(Fault::PowerCut),
        node().prop_map(Fault::PowerOn),
        node().prop_map(Fault::Pause),
        node().prop_map(Fault::Resume),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let kind = || proptest::sample::select(KINDS.to_vec());
    let how = proptest::sample::select(vec![Shutdown::Read, Shutdown::Write, Shutdown::Both]);
    let id = any::<u8>;
    prop_oneof![
        6 => (0u8..2, kind()).prop_map(|(node, kind)| Step::Socket(node, kind)),
        1 => (0u8..2, kind()).prop_map(|(node, kind)| Step::Pair(node, kind)),
        6 => (id(), any_address()).prop_map(|(id, address)| Step::Bind(id, address)),
        5 => (id(), 0usize..3).prop_map(|(id, backlog)| Step::Listen(id, backlog)),
        9 => (id(), any_address()).prop_map(|(id, address)| Step::Connect(id, address)),
        6 => id().prop_map(Step::Accept),
        9 => (id(), 0usize..70_000).prop_map(|(id, len)| Step::Send(id, len)),
        4 => (id(), 0usize..3000, any_address()).prop_map(|(id, len, address)| Step::SendTo(id, len, address)),
        9 => (id(), 0usize..90_000, any::<bool>()).prop_map(|(id, len, peek)| Step::Receive(id, len, peek)),
        3 => (id(), how).prop_map(|(id, how)| Step::Shutdown(id, how)),
        3 => id().prop_map(Step::Close),
        2 => id().prop_map(Step::TakeError),
        3 => (id(), 0u8..6).prop_map(|(id, option)| Step::Set(id, option)),
        6 => (0u64..3_000).prop_map(Step::Pass),
        1 => (0u64..200_000).prop_map(Step::Pass),
        1 => any_fault().prop_map(Step::Fault),
    ]
}

struct World {
    network: Network,
    ids: Vec<SocketId>,
    masks: BTreeMap<SocketId, i16>,
}

impl World {
    fn id(&self, number: u8) -> Option<SocketId> {
        (!self.ids.is_empty()).then(|| self.ids[usize::from(number) % self.ids.len()])
    }

    fn add(&mut self, id: SocketId) {
        self.masks.insert(id, self.network.readiness(id));
        self.ids.push(id);
    }

    /// Does the step, whose errors are all right.
    fn step(&mut self, step: &Step) -> Option<()> {
        let network = &mut self.network;
        let pick = |number: &u8| {
            (!self.ids.is_empty()).then(|| self.ids[usize::from(*number) % self.ids.len()])
        };
        match step {
            Step::Socket(node, kind) => {
                let id = network.socket(NodeId((*node).into()), *kind);
                self.add(id);
            }
            Step::Pair(node, kind) => {
                let (one, two) = network.pair(NodeId((*node).into()), *kind).ok()?;
                self.add(one);
                self.add(two);
            }
            Step::Accept(id) => {
                let (child, _) = network.accept(pick(id)?).ok()?;
                self.add(child);
            }
            Step::Close(id) => {
                let id = self.id(*id)?;
                self.ids.retain(|other| *other != id);
                self.masks.remove(&id);
                self.network.close(id).ok()?;
                assert_eq!(self.network.readiness(id), libc::POLLNVAL);
            }
            Step::Bind(id, address) => network.bind(pick(id)?, address).ok()?,
            Step::Listen(id, backlog) => network.listen(pick(id)?, *backlog).ok()?,
            Step::Connect(id, address) => network.connect(pick(id)?, address).ok()?,
            Step::Send(id, len) => drop(network.send(pick(id)?, &vec![1; *len])),
            Step::SendTo(id, len, address) => {
                let _ = network.send_to(pick(id)?, &vec![1; *len], address);
            }
            Step::Receive(id, len, peek) => {
                drop(network.recv(pick(id)?, &mut vec![0; *len], *peek))
            }
            Step::Shutdown(id, how) => network.shutdown(pick(id)?, *how).ok()?,
            Step::TakeError(id) => drop(network.take_error(pick(id)?)),
            Step::Set(id, option) => {
                let id = pick(id)?;
                match option {
                    0 => network.set_reuse_address(id, true),
                    1 => network.set_reuse_port(id, true),
                    2 => network.set_broadcast(id, true),
                    3 => network.set_linger(id, Some(Duration::ZERO)),
                    4 => network.set_send_buffer(id, 3000),
                    _ => network.set_receive_buffer(id, 3000),
                }
                .ok()?;
            }
            Step::Pass(ms) => network.advance(network.now + Duration::from_millis(*ms)),
            Step::Fault(fault) => fault.happens(network),
        }
        Some(())
    }

    /// Sockets that are ready for more than before must be told, unless the step was their own
    /// call.
    fn check_changes(&mut self, step: &Step) {
        let changed = self.network.take_changed();
        for (id, mask) in &mut self.masks {
            let now = self.network.readiness(*id);
            let is_more = now & !*mask != 0 && now != libc::POLLNVAL;
            assert!(
                !is_more || changed.contains(id),
                "{id:?} changed from {mask:#x} to {now:#x} unseen by {step:?}"
            );
            *mask = now;
        }
    }
}

fn run(seed: u64, steps: &[Step]) -> Vec<Entry> {
    let (network, ..) = two_nodes(seed);
    let mut world = World {
        network,
        ids: Vec::new(),
        masks: BTreeMap::new(),
    };
    for step in steps {
        world.step(step);
        world.check_changes(step);
    }
    for fault in [
        Fault::Heal,
        Fault::Resume(NodeId(0)),
        Fault::Resume(NodeId(1)),
    ] {
        fault.happens(&mut world.network);
    }
    for id in std::mem::take(&mut world.ids) {
        // Those of a node without power are gone.
        let _ = world.network.close(id);
    }
    let network = &mut world.network;
    network.advance(network.now + Duration::from_secs(7200));
    assert_eq!(network.sockets.len(), 0);
    assert_eq!(network.next_event(), None);
    assert_eq!(
        format!("{:?}", network.ports),
        format!("{:?}", Ports::default())
    );
    for node in &network.nodes {
        assert!(
            node.unix_names
                .iter()
                .all(|(name, id)| id.is_none() && matches!(name, UnixName::Path(_)))
        );
    }
    network.take_log()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_left_and_changes_are_told(seed: u64, steps in proptest::collection::vec(any_step(), 1..120)) {
        prop_assert!(run(seed, &steps) == run(seed, &steps));
    }
}

#[test]
fn a_connection_in_time_wait_that_connects_again_leaves_no_address_behind() {
    let own = Address::Ip("127.0.0.1:3".parse().unwrap());
    let steps = [
        Step::Socket(0, Kind::TcpV4),
        Step::Bind(0, own.clone()),
        Step::Connect(0, own.clone()),
        Step::Shutdown(0, Shutdown::Write),
        // The first of them takes the error of the old connection.
        Step::Connect(0, own),
        Step::Connect(0, Address::Ip("127.0.0.1:0".parse().unwrap())),
    ];
    run(0, &steps);
}

#[test]
fn addresses_of_another_node_are_not_local() {
    let (mut network, one, _) = two_nodes(1);
    let socket = network.socket(one, Kind::UdpV4);
    let error = libc::EADDRNOTAVAIL;
    assert_eq!(network.bind(socket, &address(2, 80)), Err(error));
    assert_eq!(network.bind(socket, &address(1, 80)), Ok(()));
}
