//! The workloads in simulations: the same checks, in one thread, in simulated time, from one seed each.
//!
//! ```text
//!   one seed ──▶ a node for each executor, over a network with latency and loss
//!                a node that appends to a file, and loses its power again and again
//!                control: looks for violations, has the run drain, waits for the ends
//! ```
//!
//! Left out is what is about real time or the process: lateness next to a hog, noise, processor time, resident
//! memory, signals, child processes. In their place nothing may be late at all, as time stands still while
//! anything can run. In every second seed executors are paused now and then; there, lateness is not judged. In every second
//! pair of seeds the tasks of a queue run in a random order; there, it is not judged in which order timers are seen to fire.
//!
//! A violation ends the run, so that the latest events are those that led to it.

mod judge;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glommio::simulation::{Fault, Simulation, SimulationBuilder};
use glommio::timer::sleep;
use support::generator::{Draw, stream};

use self::judge::{Judge, Judged, Tally};
use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::probe::Workload;
use crate::counts;
use crate::measure::{memory, process};
use crate::options::Options;
use crate::timer_queue::OURS;
use crate::workload::files::power::Appended;
use crate::workload::{self, Nodes, Plan};

/// Simulates each seed, until one fails.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let workloads = workloads(options)?;
    let labels: Vec<_> = workloads.iter().map(|it| it.label()).collect();
    let (duration, load, labels) = (options.duration, options.load, labels.join(", "));
    println!("timer queue: {OURS}   duration: {duration:?}   load: {load}   workloads: {labels}");
    let began = Instant::now();
    let first = options.seed.unwrap_or(0);
    let mut sum = Tally::default();
    for seed in first..first.saturating_add(options.seeds) {
        match whole(options, &workloads, seed, seed > first) {
            Ok(tally) => sum.add(&tally),
            Err(failure) => {
                println!("{failure}\nseed {seed} fails; to repeat this: --seed {seed} --seeds 1");
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    let (seeds, took) = (options.seeds, began.elapsed().as_secs_f64());
    println!("{sum}{seeds} seeds in {took:.1} s: nothing is broken");
    Ok(ExitCode::SUCCESS)
}

/// What is asked for, of what can be simulated.
fn workloads(options: &Options) -> Result<Vec<Workload>, String> {
    let asked = &options.workload;
    match asked.iter().find(|it| !SIMULATED.contains(it)) {
        Some(other) => Err(format!("the workload {} is not simulated", other.label())),
        None if asked.is_empty() => Ok(SIMULATED.to_vec()),
        None => Ok(asked.to_vec()),
    }
}

const SIMULATED: [Workload; 8] = [
    Workload::MessageQueue,
    Workload::ReliableUdp,
    Workload::ReEntrancy,
    Workload::Cluster,
    Workload::Queues,
    Workload::Files,
    Workload::Greedy,
    Workload::Survival,
];

/// A run, and whether all that it took is back; of memory this can be told better once one has run before.
fn whole(
    options: &Options,
    workloads: &[Workload],
    seed: u64,
    is_warm: bool,
) -> Result<Tally, String> {
    let descriptors = || process::descriptors().map_err(|error| error.to_string());
    let before = (memory::allocated().bytes, descriptors()?);
    let tally = simulate(options, workloads, seed)?;
    let left = memory::allocated().bytes.saturating_sub(before.0);
    let open = descriptors()? - before.1;
    if open != 0 {
        return Err(format!("descriptors constant: {open} are left open"));
    }
    let most = if is_warm { LEFT_MAX } else { LEFT_MAX_AT_FIRST };
    if left > most {
        let left = counts::bytes(left);
        return Err(format!("memory after the end: {left} are left"));
    }
    Ok(tally)
}

fn simulate(options: &Options, workloads: &[Workload], seed: u64) -> Result<Tally, String> {
    let (plan, duration) = (plan(options, seed), options.duration);
    for workload in workloads {
        workload::start(*workload, &plan).map_err(|error| error.to_string())?;
    }
    let mut simulation = Simulation::builder()
        .seed(seed)
        .network(|network| {
            let latency = MILLISECOND / 10..5 * MILLISECOND;
            network.latency(latency).loss(0.001)
        })
        .disk(|disk| disk.lost_unsynced(true).torn_writes(true));
    let (has_pauses, has_order) = (seed % 2 == 1, seed % 4 < 2);
    simulation = simulation.random_task_order(!has_order);
    let nodes = plan.nodes.iter().flat_map(|it| it.executors.take());
    for (number, node) in nodes.enumerate() {
        if has_pauses {
            let rng = stream(seed, PAUSES + number as u64);
            simulation = with_pauses(simulation, rng, &node.name, duration);
        }
        let main = Cell::new(Some(node.main));
        simulation = simulation.client(node.name, move || {
            main.take().expect("it has power all the time")()
        });
    }
    for service in plan.nodes.iter().flat_map(|it| it.services.take()) {
        simulation = simulation.node(service.name, service.shards, service.main);
    }
    if workloads.contains(&Workload::Files) {
        let stats = Arc::new(ExecutorStats::new(Workload::Files, "appender".to_owned()));
        plan.control.enlist(Arc::clone(&stats));
        let appended = Appended::new(stats, seed);
        simulation = simulation
            .node("appender", 1, move || Rc::clone(&appended).live())
            .restarts("appender", POWER_LASTS, POWER_OFF);
    }
    let judged = Judged {
        lateness: !has_pauses,
        order: has_order,
        peaks: workloads.len() == 1,
    };
    let judge = Judge::new(Arc::clone(&plan.control), judged);
    let judge = Rc::new(RefCell::new(judge));
    let watching = Rc::clone(&judge);
    let simulation = simulation
        .client("control", move || {
            Judge::watch(Rc::clone(&watching), duration)
        })
        // One that hangs would keep the others going for ever.
        .node("limit", 1, move || async move {
            sleep(duration + END_PATIENCE).await;
            Err::<(), _>("not all executors have ended")
        });
    let report = simulation.run().map_err(|failure| failure.to_string())?;
    judge.borrow_mut().look()?;
    let tally = judge.borrow().tally(&report);
    Ok(tally)
}

fn plan(options: &Options, seed: u64) -> Plan {
    Plan {
        control: Arc::new(Control::simulated(PATIENCE)),
        seed,
        load: options.load,
        cores: 4,
        clients: 1,
        duration: options.duration,
        slowness: 1.0,
        files_in: "/".into(),
        nodes: Some(Nodes::default()),
    }
}

fn with_pauses(
    mut simulation: SimulationBuilder,
    mut rng: impl Draw,
    node: &str,
    duration: Duration,
) -> SimulationBuilder {
    let mut at = rng.uniform(Duration::ZERO, BETWEEN_PAUSES);
    while at < duration {
        let length = rng.log_uniform(MILLISECOND, PAUSE_MAX);
        let node = node.to_owned();
        simulation = simulation.at(at, Fault::Pause { node, length });
        at += length + rng.uniform(Duration::ZERO, BETWEEN_PAUSES);
    }
    simulation
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// After it a timer that is overdue is lost. Longer than a pause.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_millis(500);
const BETWEEN_PAUSES: Duration = Duration::from_secs(5);

const POWER_LASTS: std::ops::Range<Duration> =
    Duration::from_millis(20)..Duration::from_millis(400);
const POWER_OFF: std::ops::Range<Duration> = Duration::from_millis(1)..Duration::from_millis(100);

/// Of all executors together, once the run drains.
const END_PATIENCE: Duration = Duration::from_secs(60);

/// What the process may have kept after a run, in caches that grow.
const LEFT_MAX: u64 = 64 << 10;
const LEFT_MAX_AT_FIRST: u64 = 4 << 20;

/// Apart from every workload that draws from the same seed.
const PAUSES: u64 = u64::MAX - 1_000;

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use clap::Parser;

    use super::*;

    /// A seed does the same, whatever other threads of the process have allocated.
    #[test]
    fn a_run_does_not_go_by_the_allocator() {
        let arguments = "soak --simulate --workload queues --duration 200ms --load 0.005";
        let options = Options::parse_from(arguments.split(' '));
        // Other tests of this process are among the checks, but not in the digest.
        let digest = |it: Tally| it.to_string().split(';').next().map(str::to_owned);
        let run = || simulate(&options, &SIMULATED, 0).map(digest);
        let quiet = run();
        let is_over = AtomicBool::new(false);
        let noisy = thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = stream(1, 1);
                while !is_over.load(Ordering::Relaxed) {
                    let held = black_box(vec![0_u8; rng.usize(..16 << 20)]);
                    thread::sleep(rng.uniform(Duration::ZERO, MILLISECOND));
                    drop(held);
                }
            });
            let noisy = run();
            is_over.store(true, Ordering::Relaxed);
            noisy
        });
        assert_eq!(quiet, noisy);
    }
}
