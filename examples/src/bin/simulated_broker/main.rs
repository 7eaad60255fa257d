//! A message broker that survives power cuts, and the simulation that proves it: clients, network, disk
//! and all, in one thread, from one seed.
//!
//! ```console
//! $ cargo run --release -p examples --features simulation --bin simulated_broker -- --seeds 100
//! 100 seeds: ... messages confirmed, ... power cuts, none lost
//! $ cargo run --release -p examples --features simulation --bin simulated_broker -- --seeds 100 --without-sync
//! seed 0: ...
//! to repeat this: GLOMMIO_SEED=0
//! ```
//!
//! # The service
//!
//! ```text
//!   producer ──PUT id──▶ │          │ ──append, fdatasync──▶ log on disk
//!            ◀──OK id─── │  broker  │
//!   consumer ──GET n───▶ │          │ ◀──read at the start── log on disk
//!            ◀──id n+1── │          │
//! ```
//!
//! `OK` says that the message is on the device. The broker gathers messages for a group of two milliseconds,
//! writes them, and answers when the sync is over. After a restart it reads its log up to the first
//! record that is not whole. Clients connect again whenever their connection is gone, and send what was not
//! confirmed once more, so that a message may be there twice.
//!
//! # What is checked
//!
//! A message that was confirmed is in the log when all is over, whatever happened in between. With
//! `--without-sync` the broker leaves the sync out, which a few seeds find.

#![forbid(unsafe_code)]

mod broker;
mod client;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use glommio::simulation::{Failure, Minimised, Report, Simulation, SimulationBuilder};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Runs a broker and its clients in a simulation, with power cuts.
#[derive(Clone, Debug, Parser)]
#[command(name = "simulated_broker")]
struct Options {
    /// How many seeds, from `--seed` on.
    #[arg(long, default_value_t = 20)]
    seeds: u64,

    /// The first one. Default: that in the environment variable GLOMMIO_SEED, or 0.
    #[arg(long, env = "GLOMMIO_SEED", default_value_t = 0)]
    seed: u64,

    /// How many messages each producer sends.
    #[arg(long, default_value_t = 300)]
    messages: u32,

    /// The broker confirms messages that are not on its device yet.
    #[arg(long)]
    without_sync: bool,

    /// Find out which of the faults suffice for a failure.
    #[arg(long)]
    minimise: bool,
}

/// What the clients know of messages.
#[derive(Default)]
struct Ledger {
    confirmed: RefCell<BTreeSet<u64>>,
    starts: Cell<u64>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = Options::parse();
    let (mut confirmed, mut starts) = (0, 0);
    for seed in options.seed..options.seed + options.seeds {
        let ledger = Rc::new(Ledger::default());
        if let Err(failure) = simulate(Simulation::builder().seed(seed), &options, &ledger) {
            println!("{failure}");
            if options.minimise {
                println!("\n{}", minimise(seed, &options)?);
            }
            return Ok(ExitCode::FAILURE);
        }
        confirmed += ledger.confirmed.borrow().len();
        starts += ledger.starts.get() - 1;
    }
    let seeds = options.seeds;
    println!("{seeds} seeds: {confirmed} messages confirmed, {starts} power cuts, none lost");
    Ok(ExitCode::SUCCESS)
}

/// Fails with the fewest faults that it takes.
fn minimise(seed: u64, options: &Options) -> Result<Minimised, &'static str> {
    let minimised =
        Simulation::minimise(|simulation| simulate(simulation.seed(seed), options, &Rc::default()));
    minimised.err().ok_or("it did not fail again")
}

fn simulate(
    simulation: SimulationBuilder,
    options: &Options,
    ledger: &Rc<Ledger>,
) -> Result<Report, Failure> {
    let syncs = !options.without_sync;
    let (of_broker, of_auditor) = (Rc::clone(ledger), Rc::clone(ledger));
    let mut simulation = simulation
        .network(|network| {
            network
                .latency(MILLISECOND / 10..5 * MILLISECOND)
                .loss(0.01)
        })
        .disk(|disk| disk.lost_unsynced(true).torn_writes(true))
        .node("broker", 1, move || {
            of_broker.starts.set(of_broker.starts.get() + 1);
            broker::run(syncs)
        })
        .restarts("broker", SECOND / 10..2 * SECOND, MILLISECOND..SECOND / 2);
    let producers = 3;
    for producer in 0..producers {
        let ledger = Rc::clone(ledger);
        let messages = options.messages;
        simulation = simulation.client(format!("producer {producer}"), move || {
            client::produce(producer, messages, Rc::clone(&ledger))
        });
    }
    let expected = producers * u64::from(options.messages);
    simulation = simulation.client("auditor", move || {
        client::audit(expected as usize, Rc::clone(&of_auditor))
    });
    simulation.run()
}
