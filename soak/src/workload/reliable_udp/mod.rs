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
//! as are `faults`; `channel`, `sender` and `receiver` join them to sockets and timers.
//!
//! Memory is bounded by the windows. Cost per datagram: two timers armed and one cancelled, one
//! send, one receive; half of the datagrams are acknowledgements.

mod channel;
mod faults;
mod receiver;
mod sender;

use glommio::channels::oneshot::{self, SharedReceiver, SharedSender};
use glommio::net::UdpSocket;

use self::channel::Flow;
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
        let receiver = Receiver::new(flow.channel(checker, socket, false)?);
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
        let sender = Sender::new(flow.channel(checker, socket, true)?);
        ends.push(spawn_local(sender.run()));
    }
    for end in ends {
        end.await;
    }
    Ok(())
}

const FLOWS: usize = 8;
