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
//! each one is compared as it comes in order.
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

use examples::reliable_udp::wire::Salt;
use glommio::channels::oneshot::{self, SharedReceiver, SharedSender};
use glommio::net::UdpSocket;

use self::channel::{Channel, Direction};
use self::content::Content;
use self::faults::{Distance, Faults};
use self::receiver::Receiver;
use self::sender::Sender;
use crate::workload::prelude::*;

/// Starts the receiving executor, then the sending one.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let flows = (0..plan.scaled(FLOWS, 2) as u64).map(|number| Flow::new(plan.seed, number));
    let flows: Vec<Flow> = flows.collect();
    let (tell, bound) = oneshot::shared();
    let (received, host) = (flows.clone(), plan.address());
    plan.start("udp-receiver", move |checker| async move {
        checker.spawn_sweeper();
        let ended = receive(&checker, &received, host, tell).await;
        checker.ended(Invariant::BytesWhole, "receiving", ended);
    })?;
    let host = plan.address();
    let work = move |checker: Rc<Checker>| async move {
        checker.spawn_sweeper();
        let ended = send(&checker, &flows, host, bound).await;
        checker.ended(Invariant::BytesWhole, "sending", ended);
    };
    plan.start("udp-sender", work)
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

    fn content(&self) -> Content {
        Content::new(self.seed, self.number)
    }

    /// One end of the link: that of the sender has a socket that is connected.
    fn channel(
        &self,
        checker: &Rc<Checker>,
        socket: UdpSocket,
        is_connected: bool,
    ) -> glommio::Result<Rc<Channel>, ()> {
        let identity = 2 * (FLOW_IDENTITIES + self.number) + u64::from(is_connected);
        let faults = Faults::new(stream(!self.seed, identity), self.distance, clock::now());
        let read_timeout = (self.distance.one_way * 2).min(channel::READ_TIMEOUT_MAX);
        let directions = match is_connected {
            true => [&self.data, &self.acks],
            false => [&self.acks, &self.data],
        };
        Channel::new(
            checker,
            socket,
            is_connected,
            faults,
            directions,
            read_timeout,
        )
    }
}

async fn receive(
    checker: &Rc<Checker>,
    flows: &[Flow],
    host: IpAddr,
    tell: SharedSender<Vec<SocketAddr>>,
) -> glommio::Result<(), ()> {
    let (mut ends, mut addresses) = (Vec::new(), Vec::new());
    for flow in flows {
        let socket = UdpSocket::bind((host, 0))?;
        addresses.push(socket.local_addr()?);
        let channel = flow.channel(checker, socket, false)?;
        let receiver = Receiver::new(channel, flow.content(), flow.window);
        ends.push(spawn_local(receiver.run()));
    }
    tell.send(addresses).map_err(io::Error::other)?;
    for end in ends {
        end.await;
    }
    Ok(())
}

async fn send(
    checker: &Rc<Checker>,
    flows: &[Flow],
    host: IpAddr,
    bound: SharedReceiver<Vec<SocketAddr>>,
) -> glommio::Result<(), ()> {
    let mut ends = Vec::new();
    for (flow, address) in flows.iter().zip(bound.await.map_err(io::Error::other)?) {
        let socket = UdpSocket::bind((host, 0))?;
        socket.connect(address).await?;
        let channel = flow.channel(checker, socket, true)?;
        let sender = Sender::new(channel, flow.content(), flow.window);
        ends.push(spawn_local(sender.run()));
    }
    for end in ends {
        end.await;
    }
    Ok(())
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
