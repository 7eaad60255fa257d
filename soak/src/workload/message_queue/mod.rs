//! A broker and its clients: what a message queue does to a timer queue.
//!
//! ```text
//!   client                                   broker
//!     Publish(id, allowance, payload) ─────▶  arm the ack deadline
//!     ◀───────────── Deliver(id, attempt) ──  (again at each deadline that passes)
//!     wait a while: a timer here too
//!     Ack(id, attempt) ────────────────────▶  cancel the deadline
//!     ◀──────────── Settled, or Dead (id) ──  acked, or given up after the last attempt
//! ```
//!
//! Nine deliveries in ten are acked in time, some after one extension; the tenth is ignored or acked too late. What happens
//! to a message follows from the seed and its number alone ([`script`]), so broker and client can each say how often it must
//! be delivered, and neither trusts the other.
//!
//! Memory is bounded by the window: a connection has at most so many messages that are not settled, and a link stops reading
//! while what it has to write is above a limit. A client that sees timers come late, its own or the broker's, makes its
//! window smaller for a while. Cost per message: two timers armed, about two cancelled or fired, four frames.

mod broker;
mod client;
mod link;
mod script;
mod timeouts;

use glommio::channels::watch;

use self::client::CONNECTIONS_PER_CLIENT;
pub(super) use self::link::judge_timeout;
use self::script::Pattern;
use crate::workload::prelude::*;

/// Starts the brokers, one for four cores and no more than there are clients, then the clients of each.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let mut clients = 0..plan.clients;
    let brokers = (plan.cores / 4).clamp(1, plan.clients);
    for broker in 0..brokers {
        let share = clients.len() / (brokers - broker);
        let connections = share * CONNECTIONS_PER_CLIENT;
        let in_flight = plan.scaled(IN_FLIGHT_PER_BROKER, connections);
        let window = in_flight.div_ceil(connections);
        let (tell, bound) = watch::shared(None);
        let host = plan.address();
        let work = move |checker| broker::run(checker, connections, host, tell);
        plan.start(&format!("broker-{broker}"), work)?;
        for client in clients.by_ref().take(share) {
            let pattern = Pattern::new(plan.seed, plan.duration, plan.nodes.is_some());
            let (broker, first) = (bound.clone(), client * CONNECTIONS_PER_CLIENT);
            let work = move |checker| client::run(checker, pattern, broker, first, window);
            plan.start(&format!("client-{client}"), work)?;
        }
    }
    Ok(())
}

const IN_FLIGHT_PER_BROKER: usize = 100_000;
