//! QUIC: many connections over a network that loses datagrams, from clients that keep moving to other
//! addresses.
//!
//! ```text
//!   executor `quic-clients`        thread             executors `quic-shard`
//!   an endpoint for a hundred      lossy proxy
//!   connections ───────────────▶ loses, and gives ─────────▶ send back
//!        │ move                  each address of             what they read
//!        ▼ once in a while       a client its own
//! ```
//!
//! Each byte comes back and is compared. A connection that is lost, or left at the end, a stream that
//! does not come back within two minutes, and a packet that the kernel steers to the wrong shard are
//! violations, too. Some of the clients are asked for their address first (retry).

mod clients;
mod servers;

use std::net::Ipv4Addr;

use glommio::channels::oneshot::shared;
use glommio_quic::Shard;
use support::lossy_proxy::Proxy;

use self::servers::{Ended, complain};
use crate::workload::prelude::*;

/// Starts the shards, the network, and the executor of the clients.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let connections = plan.scaled(CONNECTIONS, 4);
    let shards = Shard::bind((Ipv4Addr::LOCALHOST, 0).into(), SHARDS)?;
    let address = shards[0].local_addr()?;
    let endpoints = connections.div_ceil(clients::SHARE);
    let proxy = Proxy::start(address, LOST_PPM, plan.seed, 3 * endpoints)?;
    let mut stops = Vec::new();
    for shard in shards {
        let (stop, stopped) = shared();
        stops.push(stop);
        let name = format!("quic-shard{}", shard.number());
        let work = move |checker: Rc<Checker>| async move {
            let served = servers::serve(&checker, shard, stopped).await;
            end(&checker, "a shard", served);
        };
        plan.start(&name, work)?;
    }
    let seed = plan.seed;
    let work = move |checker: Rc<Checker>| async move {
        let ran = clients::run(&checker, &proxy, seed, connections).await;
        end(&checker, "the clients", ran);
        // The shards end when no client is left.
        for stop in stops {
            // If it has ended before, it has said why.
            let _ = stop.send(());
        }
        drop(proxy);
    };
    plan.start("quic-clients", work)
}

fn end(checker: &Checker, who: &str, ended: Ended) {
    if let Err(error) = ended {
        complain(checker, format!("{who}: {error}"));
    }
}

/// As many as the load says.
const CONNECTIONS: usize = 1000;

const SHARDS: usize = 2;

/// In each direction.
const LOST_PPM: u32 = 10_000;
