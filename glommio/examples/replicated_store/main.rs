//! A store on three nodes, and the simulation that tests it. Twenty defects can be planted in it, for the simulation to find.
//!
//! ```console
//! $ cargo run --release -p glommio --features simulation --example replicated_store
//! $ cargo run --release -p glommio --features simulation --example replicated_store -- --planted no_sync
//! $ cargo run --release -p glommio --features simulation --example replicated_store -- --planted all --seeds 200
//! ```
//!
//! The first command runs many seeds on all CPUs, and prints what they have covered. The second one plants a defect, and
//! prints the failure that takes the fewest faults. The third one plants each defect in turn, until a seed finds it, and
//! repeats that seed alone in another process.
//!
//! # The service
//!
//! ```text
//!             ┌─ QUERY key ───▶ replica ──append, fdatasync──▶ log on its disk
//!   client  ──┼─ STORE entry ─▶ replica
//!             └──────────────── replica
//! ```
//!
//! Clients read and write registers with a majority of the replicas (Attiya, Bar-Noy and Dolev, *Sharing Memory Robustly in
//! Message-Passing Systems*, JACM 1995). A write asks a majority for the newest version, and stores a newer one. A read asks for
//! the newest version, and stores that again before it returns, so that no later read sees an older one.
//!
//! # What is checked
//!
//! Each second, the history of each register must be linearizable. In the first seconds nodes lose their power, processes
//! are killed and pause, the network loses packets and falls apart, and disks make errors. After that, each client has to end.

#![forbid(unsafe_code)]

mod client;
mod entry;
mod history;
mod planted;
mod replica;

use std::env;
use std::panic;
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::simulation::{Failure, Report, Simulation, SimulationBuilder};

use history::History;
use planted::Planted;

pub(crate) const REPLICAS: [&str; 3] = ["a", "b", "c"];
const CLIENTS: u64 = 3;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Of twenty defects, so many have to be found.
const FOUND_MIN: usize = 18;

fn simulate(simulation: SimulationBuilder, planted: Planted) -> Result<Report, Failure> {
    let history = Rc::new(History::default());
    let checked = Rc::clone(&history);
    let mut simulation = simulation
        .swarm(true)
        .network(|it| {
            let it = it.latency(MILLISECOND / 10..5 * MILLISECOND);
            it.loss(0.02).duplicate(0.02).reorder(0.05)
        })
        .disk(|it| {
            let it = it.lost_unsynced(true).torn_writes(true);
            it.errors(0.02).short(0.05)
        })
        .invariant(SECOND, move || checked.check())
        .partitions(SECOND / 2..3 * SECOND, SECOND / 10..SECOND)
        .recovers(8 * SECOND, 60 * SECOND);
    for replica in REPLICAS {
        let (every, length) = (SECOND / 5..2 * SECOND, MILLISECOND..SECOND / 2);
        simulation = simulation
            .node(replica, 1, move || replica::run(planted))
            .restarts(replica, every.clone(), length.clone())
            .kills(replica, every.clone(), length.clone())
            .pauses(replica, every, length);
    }
    for number in 1..=CLIENTS {
        let history = Rc::clone(&history);
        simulation = simulation.client(format!("client {number}"), move || {
            client::run(number, planted, Rc::clone(&history))
        });
    }
    simulation.run()
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|it| it == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let number = |name| {
        let number = value(name).map(str::parse::<u64>);
        number.map(|it| it.unwrap_or_else(|_| panic!("`{name}` is followed by a number")))
    };
    let seeds = number("--seeds").unwrap_or(200);
    let planted = match value("--planted") {
        Some("all") => return plant_all(seeds),
        Some(name) => Planted::named(name).expect("a defect has that name"),
        None => Planted::NOTHING,
    };
    if let Some(seed) = number("--seed") {
        return match simulate(Simulation::builder().seed(seed), planted) {
            Ok(_) => ExitCode::SUCCESS,
            Err(failure) => {
                println!("{failure}");
                ExitCode::FAILURE
            }
        };
    }
    let summary = Simulation::seeds(0..seeds, |simulation| simulate(simulation, planted));
    println!("{summary}");
    match summary.failed_seeds() {
        [] => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Plants each defect, and prints which seed finds it.
fn plant_all(seeds: u64) -> ExitCode {
    // Failures are told by the table.
    panic::set_hook(Box::new(|_| {}));
    let (began, mut found) = (Instant::now(), 0);
    println!("| defect | seed | found as |\n|---|---:|---|");
    for planted in Planted::all() {
        let name = planted.name();
        let Some(failure) = first_failure(planted, seeds) else {
            println!("| `{name}` | – | not found |");
            continue;
        };
        let (seed, text) = (failure.seed(), last_lines(&failure.to_string()));
        if fails_alone(name, seed, &text) {
            found += 1;
            println!(
                "| `{name}` | {seed} | {} |",
                text.lines().next().unwrap_or_default()
            );
        } else {
            println!("| `{name}` | {seed} | not again alone |");
        }
    }
    let (count, seconds) = (Planted::all().count(), began.elapsed().as_secs());
    println!("{found} of {count} found within {seeds} seeds, in {seconds} s");
    ExitCode::from(u8::from(found < FOUND_MIN))
}

fn first_failure(planted: Planted, seeds: u64) -> Option<Failure> {
    let run = |seed| simulate(Simulation::builder().seed(seed), planted);
    (0..seeds).find_map(|seed| run(seed).err())
}

/// What a failure is, without the events before it.
fn last_lines(failure: &str) -> String {
    let lines: Vec<_> = failure.lines().collect();
    let start = lines.iter().rposition(|line| line.starts_with("after "));
    let lines = &lines[start.unwrap_or_default()..];
    // How to repeat it is another matter.
    let lines = lines.iter().take_while(|it| !it.starts_with("to repeat"));
    lines.copied().collect::<Vec<_>>().join("\n")
}

/// Whether that seed by itself, in another process, fails in the same way.
fn fails_alone(planted: &str, seed: u64, text: &str) -> bool {
    let program = env::current_exe().expect("it is running");
    let alone = Command::new(program)
        .args(["--planted", planted, "--seed", &seed.to_string()])
        .output();
    let alone = alone.expect("a process can be made");
    !alone.status.success() && String::from_utf8_lossy(&alone.stdout).contains(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_where_nothing_is_planted() {
        Simulation::seeds(0..3, |simulation| simulate(simulation, Planted::NOTHING))
            .assert_passed();
    }

    #[test]
    fn defects_are_found_and_a_seed_finds_the_same_again() {
        for name in ["partial_read", "no_sync"] {
            let planted = Planted::named(name).expect("it is one of them");
            let failure = first_failure(planted, 50).expect(name);
            let seed = failure.seed();
            let seen = |failure: &Failure| (failure.digest(), last_lines(&failure.to_string()));
            let again = std::thread::spawn(move || {
                let again = simulate(Simulation::builder().seed(seed), planted);
                seen(&again.unwrap_err())
            });
            let again = again.join().expect("it returns");
            assert_eq!(again, seen(&failure), "{name}");
        }
    }
}
