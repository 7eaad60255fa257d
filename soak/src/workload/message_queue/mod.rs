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
//! Nine deliveries in ten are acked in time, some after one extension; the tenth is ignored or acked
//! too late. What happens to a message follows from the seed and its number alone ([`script`]), so
//! broker and client can each say how often it must be delivered, and neither trusts the other.
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
use std::sync::mpsc;
use std::time::Duration;

use glommio::GlommioError;

use crate::workload::{Crew, Plan};

/// Starts the broker, then its clients.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Crew>, GlommioError<()>> {
    let connections = plan.clients * CONNECTIONS_PER_CLIENT;
    let in_flight = plan.scaled(
        (IN_FLIGHT_PER_CORE * plan.cores).min(IN_FLIGHT_MAX),
        connections,
    );
    let window = in_flight.div_ceil(connections);

    let (addresses, address) = mpsc::channel::<SocketAddr>();
    let broker = Crew::start(plan, "broker", move |watch| {
        broker::run(watch, connections, move |bound| {
            // The receiver is gone only if starting was given up.
            let _ = addresses.send(bound);
        })
    })?;
    let address = address
        .recv_timeout(BIND_PATIENCE)
        .map_err(|_| std::io::Error::other("the broker's executor did not begin to listen"))?;

    let mut crews = vec![broker];
    for client in 0..plan.clients {
        let seed = plan.seed;
        crews.push(Crew::start(
            plan,
            &format!("client-{client}"),
            move |watch| {
                client::run(
                    watch,
                    seed,
                    address,
                    client * CONNECTIONS_PER_CLIENT,
                    window,
                )
            },
        )?);
    }
    Ok(crews)
}

const CONNECTIONS_PER_CLIENT: usize = 4;
const IN_FLIGHT_PER_CORE: usize = 12_500;
const IN_FLIGHT_MAX: usize = 100_000;
const BIND_PATIENCE: Duration = Duration::from_secs(30);
