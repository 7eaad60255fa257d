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
//! within the rounds. With `--write-docs` the table goes to `docs/benchmarks.md`, too: to a block
//! for each timer queue.

#![forbid(unsafe_code)]

mod measure;
mod ours;
#[cfg(feature = "peers")]
mod theirs;

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use benches::command::command;
use clap::Parser;
use measure::{Figures, OPERATIONS};
use support::machine;
use support::numbers::number;
use support::output::{docs_directory, exit_code, write_block};
use support::quantiles::{Samples, Spread};
use support::tables::Table;

#[derive(Debug, Parser)]
struct Options {
    /// How often each queue has its turn.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,

    /// Write to docs/ too.
    #[arg(long)]
    write_docs: bool,

    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
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

fn run(options: &Options) -> io::Result<()> {
    // As `cargo test` runs a bench: to see that it works.
    let rounds = if options.bench { options.rounds } else { 1 };
    let (begin, load) = (Instant::now(), machine::load());
    let table = measure_all(rounds);
    println!("\n{}", table.terminal());
    let has_wheel = glommio::BUILD.contains("timing-wheel");
    let features = match (cfg!(feature = "peers"), has_wheel) {
        (true, true) => " --features peers,glommio/timing-wheel",
        (true, false) => " --features peers",
        (false, true) => " --features glommio/timing-wheel",
        (false, false) => "",
    };
    let text = format!(
        "- `{}`\n- {}\n- load average {load} before, {} after; {rounds} rounds in {:.1} min\n\n\
         Nanoseconds for an item, our timers in {}.\n\n{}",
        command("delay_queue", features),
        machine::describe(),
        machine::load(),
        begin.elapsed().as_secs_f64() / 60.0,
        if has_wheel {
            "the timing wheel"
        } else {
            "the ordered map"
        },
        table.markdown()
    );
    println!("{text}");
    if options.write_docs {
        let page = docs_directory()?.join("benchmarks.md");
        let block = if has_wheel {
            "delay-queue-wheel"
        } else {
            "delay-queue-map"
        };
        write_block(&page, block, &text)?;
        println!("written to {}", page.display());
    }
    Ok(())
}

fn measure_all(rounds: u16) -> Table {
    let names = QUEUES.iter().map(|(name, _)| *name);
    let ratio = (QUEUES.len() > 1).then_some("ratio");
    let mut table = Table::new(["ns for an item"].into_iter().chain(names).chain(ratio));
    for items in POPULATIONS {
        let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); QUEUES.len()];
        for round in 0..usize::from(rounds) {
            // The first one finds the caches as the last one left them: take turns.
            for turn in 0..QUEUES.len() {
                let queue = (round + turn) % QUEUES.len();
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

/// The middle one, and the ends.
fn cell(samples: Samples) -> String {
    samples.spread().map_or_else(
        || "—".to_owned(),
        |Spread { min, median, max }| {
            let [median, min, max] = [median, min, max].map(number);
            format!("{median} ({min} – {max})")
        },
    )
}
