//! Reliable UDP: many streams over links that lose, double, delay, swap and damage what they carry.
//!
//! ```text
//!   sender                             link                            receiver
//!     window of segments ──▶ Data(sequence, segment) ──▶ faults ──▶ reassembly ──▶ compare, hash
//!     a timer for each                                                  │
//!     cancelled, sampled ◀── faults ◀── Ack(next, bitmap) ◀─────────────┘
//! ```
//!
//! Selective repeat, which is what a reliable UDP does to a timer queue: each datagram in flight
//! has a retransmission timer of its own, nearly all of which are cancelled, and the rest back off.
//! A datagram in transit is a timer too. The links are as short as across a city and as long as by
//! way of two satellites, so timeouts are of very different lengths. The bytes must arrive whole:
//! each one is compared as it comes in order, and each transfer's hash at its end.
//!
//! The protocol is that of the example `reliable_udp`, in pure parts that are tested by themselves,
//! as are `content` and `faults`; `channel`, `sender` and `receiver` join them to sockets and timers.
//!
//! Memory is bounded by the windows. Cost per datagram: two timers armed and one cancelled, one
//! send, one receive; half of the datagrams are acknowledgements.

mod channel;
mod content;
mod faults;
mod receiver;
mod sender;

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use examples::reliable_udp::wire::Salt;
use futures_lite::future::zip;
use glommio::net::UdpSocket;
use glommio::{GlommioError, spawn_local};
use support::generator::stream;

use self::channel::{Channel, Direction};
use self::content::{Inbound, Outbound};
use self::faults::{Distance, Faults};
use self::receiver::Receiver;
use self::sender::Sender;
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::check::probe::Workload;
use crate::clock;
use crate::workload::bound::Bound;
use crate::workload::executor::{Executor, Plan};

/// Starts the receiving executor, then the sending one; on a single core one executor for both.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    let flows: Vec<Flow> = (0..plan.scaled(FLOWS, 2) as u64)
        .map(|number| Flow::new(plan.seed, number))
        .collect();
    let host = plan.address();
    if plan.cores == 1 {
        let both = Executor::start(
            plan,
            Workload::ReliableUdp,
            "udp",
            move |checker| async move {
                let (sockets, addresses) = bind(host, flows.len());
                checker.spawn_sweeper();
                zip(
                    receive(&checker, &flows, sockets),
                    send(&checker, &flows, host, addresses),
                )
                .await;
                checker.settle().await;
            },
        )?;
        return Ok(vec![both]);
    }
    let bound = Bound::default();
    let receiver = Executor::start(plan, Workload::ReliableUdp, "udp-receiver", {
        let (flows, bound) = (flows.clone(), bound.clone());
        move |checker| async move {
            let (sockets, addresses) = bind(host, flows.len());
            bound.tell(addresses);
            checker.spawn_sweeper();
            receive(&checker, &flows, sockets).await;
            checker.settle().await;
        }
    })?;
    let host = plan.address();
    let sender = Executor::start(
        plan,
        Workload::ReliableUdp,
        "udp-sender",
        move |checker| async move {
            checker.spawn_sweeper();
            match bound.wait().await {
                Ok(addresses) => send(&checker, &flows, host, addresses).await,
                Err(error) => complain(&checker, format!("the receiver did not bind: {error}")),
            }
            checker.settle().await;
        },
    )?;
    Ok(vec![receiver, sender])
}

/// What both ends of a flow agree on.
#[derive(Clone, Debug)]
struct Flow {
    seed: u64,
    number: u64,
    distance: Distance,
    window: usize,
    data: Arc<Direction>,
    acks: Arc<Direction>,
}

impl Flow {
    fn new(seed: u64, number: u64) -> Self {
        let (distance, window) = LINKS[number as usize % LINKS.len()];
        let mut rng = stream(seed, FLOW_IDENTITIES + number);
        let mut direction = || Arc::new(Direction::new(Salt(rng.u64(..))));
        Flow {
            seed,
            number,
            distance,
            window,
            data: direction(),
            acks: direction(),
        }
    }

    /// One end of the link, which sends in the first direction and receives in the second.
    fn channel(
        &self,
        checker: &Rc<Checker>,
        socket: UdpSocket,
        is_connected: bool,
        [outgoing, incoming]: [&Arc<Direction>; 2],
    ) -> glommio::Result<Rc<Channel>, ()> {
        let identity = 2 * (FLOW_IDENTITIES + self.number) + u64::from(is_connected);
        let faults = Faults::new(stream(!self.seed, identity), self.distance, clock::now());
        let read_timeout = (self.distance.one_way * 2).min(channel::READ_TIMEOUT_MAX);
        Channel::new(
            checker,
            socket,
            is_connected,
            faults,
            [outgoing, incoming],
            read_timeout,
        )
    }
}

fn bind(host: IpAddr, count: usize) -> (Vec<UdpSocket>, Vec<SocketAddr>) {
    (0..count)
        .map(|_| {
            let socket = UdpSocket::bind((host, 0)).expect("there is a free port");
            let address = socket.local_addr().expect("a bound socket has an address");
            (socket, address)
        })
        .unzip()
}

async fn receive(checker: &Rc<Checker>, flows: &[Flow], sockets: Vec<UdpSocket>) {
    let mut ends = Vec::new();
    for (flow, socket) in flows.iter().zip(sockets) {
        match flow.channel(checker, socket, false, [&flow.acks, &flow.data]) {
            Ok(channel) => {
                let inbound = Inbound::new(flow.seed, flow.number);
                let receiver = Receiver::new(checker, channel, inbound, flow.window);
                ends.push(spawn_local(receiver.run()));
            }
            Err(error) => complain(checker, format!("receiver: {error}")),
        }
    }
    for end in ends {
        end.await;
    }
}

async fn send(checker: &Rc<Checker>, flows: &[Flow], host: IpAddr, addresses: Vec<SocketAddr>) {
    let mut ends = Vec::new();
    for (flow, address) in flows.iter().zip(addresses) {
        match connect(checker, flow, host, address).await {
            Ok(channel) => {
                let outbound = Outbound::new(flow.seed, flow.number);
                let sender = Sender::new(checker, channel, outbound, flow.window);
                ends.push(spawn_local(sender.run()));
            }
            Err(error) => complain(checker, format!("sender: {error}")),
        }
    }
    for end in ends {
        end.await;
    }
}

async fn connect(
    checker: &Rc<Checker>,
    flow: &Flow,
    host: IpAddr,
    address: SocketAddr,
) -> glommio::Result<Rc<Channel>, ()> {
    let socket = UdpSocket::bind((host, 0))?;
    socket.connect(address).await?;
    flow.channel(checker, socket, true, [&flow.data, &flow.acks])
}

/// Enters what must not happen to a flow.
fn complain(checker: &Checker, what: String) {
    checker.holds(Invariant::BytesWhole, false, || what);
}

const FLOWS: usize = 8;

/// Distances in turn, with the datagrams that each keeps in flight.
const LINKS: [(Distance, usize); 4] = [
    (link(260, 15), 384),
    (link(5, 2), 8),
    (link(520, 30), 768),
    (link(60, 8), 48),
];

const fn link(one_way_ms: u64, jitter_ms: u64) -> Distance {
    Distance {
        one_way: Duration::from_millis(one_way_ms),
        jitter: Duration::from_millis(jitter_ms),
    }
}

/// Where the identities of flows begin among those of the seed's generators.
const FLOW_IDENTITIES: u64 = 0x5544_5000;
