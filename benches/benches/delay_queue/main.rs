//! Items with deadlines: `glommio::timer::DelayQueue`, and with the feature `peers` beside it
//! `tokio_util::time::DelayQueue`, each on its own runtime and the real clock.
//!
//! ```console
//! $ cargo bench -p benches --features peers --bench delay_queue
//! $ cargo bench -p benches --features peers,glommio/timing-wheel --bench delay_queue
//! ```
//!
//! Beside 1,000 and beside 100,000 items, 1,000 of them are inserted, reset and removed, and then
//! all that there are expire within one millisecond and are taken out. The queues take turns, in
//! rounds; printed are nanoseconds of processor time for an item, the median of all rounds and the
//! least and the most.

#![forbid(unsafe_code)]

mod measure;
mod ours;
#[cfg(feature = "peers")]
mod theirs;

use clap::Parser;
use measure::{Figures, OPERATIONS};
use support::machine;

#[derive(Debug, Parser)]
struct Options {
    /// How often each queue has its turn.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A queue with so many items in it, measured once.
type Measured = fn(usize) -> Figures;

const QUEUES: &[(&str, Measured)] = &[
    ("glommio", ours::run),
    #[cfg(feature = "peers")]
    ("tokio-util", theirs::run),
];

const POPULATIONS: [usize; 2] = [1_000, 100_000];

fn main() {
    let options = Options::parse();
    println!("{}", machine::describe());
    println!("load before: {}", machine::load());
    println!("\n| ns for an item | {} |", names().join(" | "));
    println!("|---|{}", "---|".repeat(names().len()));
    for items in POPULATIONS {
        let mut rounds = vec![Vec::new(); QUEUES.len()];
        for round in 0..usize::from(options.rounds) {
            // The first one finds the caches as the last one left them: take turns.
            for turn in 0..QUEUES.len() {
                let queue = (round + turn) % QUEUES.len();
                rounds[queue].push((QUEUES[queue].1)(items));
            }
        }
        for (row, operation) in OPERATIONS.iter().enumerate() {
            let spreads = rounds.iter().map(|figures| Spread::of(figures, row));
            let spreads: Vec<_> = spreads.collect();
            let mut cells: Vec<_> = spreads.iter().map(Spread::to_string).collect();
            if let [ours, theirs] = &spreads[..] {
                cells.push(format!("{:.2}", ours.median / theirs.median));
            }
            println!("| {operation}, {items} items | {} |", cells.join(" | "));
        }
    }
    println!("\nload after: {}", machine::load());
}

fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = QUEUES.iter().map(|(name, _)| *name).collect();
    if names.len() == 2 {
        names.push("ratio");
    }
    names
}

/// The rounds of one operation.
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    fn of(rounds: &[Figures], row: usize) -> Self {
        let mut values: Vec<_> = rounds.iter().map(|figures| figures[row]).collect();
        values.sort_by(f64::total_cmp);
        Spread {
            min: values[0],
            median: values[values.len() / 2],
            max: values[values.len() - 1],
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spread { min, median, max } = self;
        write!(f, "{median:.0} ({min:.0} to {max:.0})")
    }
}
