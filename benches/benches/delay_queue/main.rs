//! Items with deadlines: `glommio::timer::DelayQueue`, and with the feature `peers` beside it
//! `tokio_util::time::DelayQueue`, each on its own runtime and the real clock.
//!
//! ```console
//! $ cargo bench -p benches --features peers --bench delay_queue -- [--rounds 11] [--write-docs]
//! $ cargo bench -p benches --features peers,glommio/timing-wheel --bench delay_queue
//! ```
//!
//! Beside 1,000 and beside 100,000 items, 1,000 of them are inserted, reset and removed, and
//! inserted once more where the first were; then all that there are expire within one millisecond
//! and are taken out. The queues take turns, in rounds; printed are nanoseconds of processor time
//! for an item, the median of all rounds and the least and the most, and the median of the ratios
//! within the rounds. The table goes to `target/peers/`; with `--write-docs` also to `docs/benchmarks.md`, to a block
//! for each timer queue.

#![forbid(unsafe_code)]

mod measure;
mod ours;
#[cfg(feature = "peers")]
mod theirs;

use std::process::ExitCode;

use benches::run::{Common, Destination, Run, turns};
use clap::Parser;
use measure::{Figures, OPERATIONS};
use support::output::exit_code;
use support::quantiles::Samples;
use support::tables::Table;

#[derive(Debug, Parser)]
struct Options {
    /// How often each queue has its turn.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    common: Common,
}

/// A queue with so many items in it, measured once.
type Measured = fn(usize) -> Figures;

/// The yardstick last.
const QUEUES: &[(&str, Measured)] = &[
    ("glommio", ours::run),
    #[cfg(feature = "peers")]
    ("tokio-util", theirs::run),
];

const POPULATIONS: [usize; 2] = [1_000, 100_000];

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    // As `cargo test` runs a bench: to see that it works.
    let is_bench = options.common.bench;
    let rounds = if is_bench { options.rounds } else { 1 };
    let run = Run::new();
    let table = measure_all(rounds.into());
    println!("\n{}", table.terminal());
    if !is_bench {
        return Ok(());
    }
    let has_wheel = glommio::BUILD.contains("timing-wheel");
    let features = match (cfg!(feature = "peers"), has_wheel) {
        (true, true) => " --features peers,glommio/timing-wheel",
        (true, false) => " --features peers",
        (false, true) => " --features glommio/timing-wheel",
        (false, false) => "",
    };
    let (timers, block) = if has_wheel {
        ("the timing wheel", "delay-queue-wheel")
    } else {
        ("the ordered map", "delay-queue-map")
    };
    let setting = run.setting("delay_queue", features, "", format_args!("{rounds} rounds"));
    let text = format!(
        "{setting}\nNanoseconds for an item, our timers in {timers}.\n\n{}",
        table.markdown()
    );
    println!("{text}");
    let destination = Destination {
        name: block,
        folder: "peers",
        page: "benchmarks",
        block,
    };
    destination.write(&text, &text, &options.common, |_| Ok(()))
}

fn measure_all(rounds: usize) -> Table {
    let names = QUEUES.iter().map(|(name, _)| *name);
    let ratio = (QUEUES.len() > 1).then_some("ratio");
    let mut table = Table::new(["ns for an item"].into_iter().chain(names).chain(ratio));
    for items in POPULATIONS {
        let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); QUEUES.len()];
        for round in 0..rounds {
            for queue in turns(QUEUES.len(), round) {
                figures[queue].push((QUEUES[queue].1)(items));
            }
        }
        for (row, operation) in OPERATIONS.iter().enumerate() {
            let mut line = vec![format!("{operation}, {items} items")];
            line.extend(figures.iter().map(|figures| {
                let samples: Samples = figures.iter().map(|figures| figures[row]).collect();
                cell(samples)
            }));
            if let [ours, theirs] = &figures[..] {
                let pairs = ours.iter().zip(theirs);
                let ratios: Samples = pairs.map(|(a, b)| a[row] / b[row]).collect();
                line.push(cell(ratios));
            }
            table.push(line);
        }
    }
    table
}

fn cell(samples: Samples) -> String {
    let spread = samples.spread().expect("there is a round");
    spread.to_string()
}
