//! The process that serves: a pool of shards that die and are restarted, and a store.
//!
//! To its parent it says on which port it listens, and when its standard input ends, so does the
//! service: then it says how many descriptors are left, what was found of the pools beside it, and what it has
//! stored of each client.

use std::error::Error;
use std::io::stdin;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use glommio::net::BalancedTcpListener;
use glommio::{LocalExecutorBuilder, LocalExecutorPoolBuilder, PoolPlacement, ShardExitPolicy};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::client::Left;
use super::pools;
use super::protocol::Deaths;
use super::shard::{self, Lives, SHARDS, Service};
use crate::check::invariants::Ledger;
use crate::measure::ring_events;
use crate::print::tell;
use crate::workload::prelude::*;

/// Serves until standard input ends.
pub(crate) fn serve() -> Result<ExitCode, Box<dyn Error>> {
    set_pdeathsig(Signal::SIGKILL)?;
    ring_events::install();
    ring_events::watch_for(pools::FAILED);
    let descriptors = process::descriptors()?;
    let lives = Lives::new();
    let store = {
        let lives = lives.clone();
        LocalExecutorBuilder::default()
            .name("soak-store")
            .spawn(move || shard::keep(lives))?
    };
    let listener = BalancedTcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    tell(listener.local_addr()?.port())?;
    let service = Service {
        listen: Arc::new(move || Ok(listener.clone())),
        lives: lives.clone(),
        begun: Default::default(),
        deaths: Deaths::default(),
    };
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(SHARDS))
        .name("soak-survival")
        .on_shard_end(ShardExitPolicy::Restart {
            per_minute: u32::MAX,
        })
        .on_all_shards(move || shard::run(service))?;
    let (ledger, is_over) = (Ledger::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let pools = scope.spawn(|| pools::run(&ledger, &is_over));
        io::copy(&mut stdin().lock(), &mut io::sink())?;
        is_over.store(true, Ordering::SeqCst);
        Ok::<_, Box<dyn Error>>(pools.join().expect("it is about others that die")?)
    })?;
    lives.end();
    for ended in shards.join_all() {
        ended??;
    }
    let stored = store.join()?;
    let mut left = Left::new(process::descriptors()? - descriptors, stored);
    left.pools = pools::ROWS
        .map(|row| (row as usize, ledger.count(row)))
        .into();
    left.words = ledger.first_violations();
    tell(serde_json::to_string(&left)?)?;
    Ok(ExitCode::SUCCESS)
}
