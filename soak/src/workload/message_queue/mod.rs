//! A broker and its clients: what a message queue does to a timer queue.
//!
//! ```text
//!   client                                   broker
//!     Publish(id, allowance, payload) ─────▶  arm the ack deadline
//!     ◀───────────── Deliver(id, attempt) ──  (again at each deadline that passes)
//!     wait a while: a timer here too
//!     Ack(id, attempt) ────────────────────▶  cancel the deadline
//!     ◀──────────────── Settled(id, how) ───  acked, or dead after the last attempt
//! ```
//!
//! Nine deliveries in ten are acked in time, some after one extension; the tenth is ignored or
//! acked too late. What happens to a message follows from the seed and its number alone
//! ([`script`]), so broker and client can each say how often it must be delivered, and neither
//! trusts the other.
//!
//! Memory is bounded by the window: a connection has at most so many messages that are not settled,
//! and a link stops reading while what it has to write is above a limit. A client that sees timers
//! come late, its own or the broker's, makes its window smaller for a while. Cost per message: two
//! timers armed, about two cancelled or fired, four frames.

mod broker;
mod client;
mod link;
mod protocol;
mod script;
mod timeouts;

use std::net::SocketAddr;

use glommio::GlommioError;

pub(super) use self::link::judge_timeout;
use self::script::Pattern;
use crate::check::probe::Workload;
use crate::workload::bound::Bound;
use crate::workload::executor::{Executor, Plan};

/// Starts the brokers, then the clients of each.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    let mut executors = Vec::new();
    let mut clients = 0..plan.clients;
    let brokers = brokers(plan);
    for broker in 0..brokers {
        let share = clients.len() / (brokers - broker);
        start_broker(plan, broker, clients.by_ref().take(share), &mut executors)?;
    }
    Ok(executors)
}

/// One for four cores, and no more than there are clients.
fn brokers(plan: &Plan) -> usize {
    (plan.cores / 4).clamp(1, plan.clients)
}

fn start_broker(
    plan: &Plan,
    broker: usize,
    clients: impl ExactSizeIterator<Item = usize>,
    executors: &mut Vec<Executor>,
) -> Result<(), GlommioError<()>> {
    let connections = clients.len() * client::CONNECTIONS_PER_CLIENT;
    let window = plan
        .scaled(IN_FLIGHT_PER_BROKER, connections)
        .div_ceil(connections);
    let bound = Bound::<SocketAddr>::default();
    let (host, binds) = (plan.address(), bound.clone());
    executors.push(Executor::start(
        plan,
        Workload::MessageQueue,
        &format!("broker-{broker}"),
        move |checker| broker::run(checker, connections, host, binds),
    )?);

    for client in clients {
        let pattern = match plan.nodes {
            None => Pattern::new(plan.seed, plan.duration),
            Some(_) => Pattern::simulated(plan.seed, plan.duration),
        };
        let name = format!("client-{client}");
        let broker = bound.clone();
        executors.push(Executor::start(
            plan,
            Workload::MessageQueue,
            &name,
            move |checker| {
                let first_connection = client * client::CONNECTIONS_PER_CLIENT;
                client::run(checker, pattern, broker, first_connection, window)
            },
        )?);
    }
    Ok(())
}

const IN_FLIGHT_PER_BROKER: usize = 100_000;
