//! The broker of the examples and its clients: what a message queue does to a timer queue.
//!
//! ```text
//!   client                                   broker
//!     Publish(number, payload) ────────────▶  Confirm(number)
//!     ◀──── Deliver(delivery, attempt) ─────  arm the ack deadline; again at each that passes
//!     wait a while: a timer here too
//!     Ack(delivery) ───────────────────────▶  cancel the deadline
//!     ◀──── Acked(delivery, in time?) ──────  if it was not, the message comes again
//! ```
//!
//! Nine deliveries in ten are acked in time; the tenth is ignored or acked too late. After the last attempt a message
//! goes to the dead letters, to which the client is subscribed as well. What a client does follows from the seed and the
//! message's number alone ([`script`]), so it can say how often each must be delivered. The broker is a program like
//! any other: what it promises is seen from outside, and by what it has counted in the end.
//!
//! Memory is bounded by the window: a connection has at most so many messages that are not settled. A client that sees
//! timers come late, its own or the broker's, makes its window smaller for a while. Cost per message: two timers armed,
//! about two cancelled or fired, five frames.

mod client;
mod script;
mod timeouts;

use examples::broker::{Broker, Limits};
use glommio::channels::watch::{self, SharedSender};
use glommio::sync::CancellationToken;

use self::client::CONNECTIONS_PER_CLIENT;
use self::script::{ATTEMPTS_MAX, Pattern};
pub(super) use self::timeouts::judge_timeout;
use crate::workload::prelude::*;

/// Starts the brokers, one for four cores and no more than there are clients, then the clients of each.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let pattern = Pattern::new(plan.seed, plan.duration, plan.nodes.is_some());
    let limits = Limits {
        ack_deadline: pattern.ack_deadline.into(),
        attempts: ATTEMPTS_MAX.into(),
        waiting_max: usize::MAX,
    };
    let mut clients = 0..plan.clients;
    let brokers = (plan.cores / 4).clamp(1, plan.clients);
    for broker in 0..brokers {
        let share = clients.len() / (brokers - broker);
        let connections = share * CONNECTIONS_PER_CLIENT;
        let in_flight = plan.scaled(IN_FLIGHT_PER_BROKER, connections);
        let window = in_flight.div_ceil(connections);
        let (tell, bound) = watch::shared(None);
        let host = plan.address();
        let work = move |checker| run(checker, limits, connections, host, tell);
        plan.start(&format!("broker-{broker}"), work)?;
        for client in clients.by_ref().take(share) {
            let (broker, first) = (bound.clone(), client * CONNECTIONS_PER_CLIENT);
            let work = move |checker| client::run(checker, pattern, broker, first, window);
            plan.start(&format!("client-{client}"), work)?;
        }
    }
    Ok(())
}

const IN_FLIGHT_PER_BROKER: usize = 100_000;

/// Accepts `connections` connections, serves them to their end, and judges what the broker has counted.
async fn run(
    checker: Rc<Checker>,
    limits: Limits,
    connections: usize,
    host: IpAddr,
    bound: SharedSender<Option<SocketAddr>>,
) {
    let listener = TcpListener::bind((host, 0)).expect("there is a free port");
    let address = listener.local_addr();
    // Clients that are gone do not need it.
    let _ = bound.send(Some(address.expect("a bound listener has an address")));
    checker.spawn_sweeper();
    let broker = Rc::new(Broker::new(limits));
    let deadlines = spawn_local({
        let broker = Rc::clone(&broker);
        async move { broker.watch_deadlines().await }
    });
    let mut served = Vec::new();
    while served.len() < connections {
        // A client that never comes must not keep the broker from ending.
        let drained = async {
            checker.drained().await;
            None
        };
        match or(async { Some(listener.accept().await) }, drained).await {
            Some(Ok(stream)) => {
                let broker = Rc::clone(&broker);
                let serving = async move { broker.serve(stream, &CancellationToken::new()).await };
                served.push(spawn_local(serving));
            }
            Some(Err(error)) => checker.ended(Invariant::Deliveries, "accept", Err(error)),
            None => break,
        }
    }
    drop(listener);
    for connection in served {
        let ended = connection.await;
        checker.ended(
            Invariant::Deliveries,
            "the broker's end of a connection",
            ended,
        );
    }
    deadlines.cancel().await;
    let counts = broker.counts();
    // A message that has died is acked as a dead letter.
    let are_settled =
        counts.acked == counts.published && counts.refused + counts.in_flight + counts.waiting == 0;
    checker.holds(Invariant::Deliveries, are_settled, || {
        format!("not each message was acked once: {counts}")
    });
}
