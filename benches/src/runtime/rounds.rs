//! Runs the binaries in turn and gathers what they print.

use std::collections::HashMap;
use std::io;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::peers::{Binary, Peer};
use super::rows::Row;

/// No case takes a tenth of it; a runtime that hangs is named, and the others go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// The figures of all rounds.
#[derive(Debug, Default)]
pub struct Figures {
    /// By row and crate.
    samples: HashMap<(&'static str, &'static str), Vec<f64>>,
    /// Cases that failed in a round, with their crate, in words.
    pub failures: Vec<String>,
}

/// The middle and the ends of one figure.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The one in the middle; of an even number the smaller of the two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Figures {
    /// What is known of `row` on `peer`.
    pub fn spread(&self, row: &Row, peer: Peer) -> Option<Spread> {
        self.spread_of(row.name, peer)
    }

    /// The figure of `peer` that ratios in `row` are to.
    pub fn unit(&self, row: &Row, peer: Peer) -> Option<f64> {
        self.spread_of(row.against, peer)
            .map(|spread| spread.median)
    }

    fn spread_of(&self, name: &'static str, peer: Peer) -> Option<Spread> {
        let mut samples = self.samples.get(&(name, peer.name))?.clone();
        samples.sort_by(f64::total_cmp);
        let median = samples[(samples.len() - 1) / 2];
        Some(Spread {
            min: samples[0],
            median,
            max: *samples.last()?,
        })
    }
}

/// Runs the cases behind `rows` on every binary that has them, `rounds` times.
pub fn run(binaries: &[Binary], rows: &[&Row], rounds: u32) -> Figures {
    let mut cases: Vec<&str> = Vec::new();
    for row in rows {
        if !cases.contains(&row.case) {
            cases.push(row.case);
        }
    }
    let mut figures = Figures::default();
    for round in 0..rounds {
        let begin = Instant::now();
        for case in &cases {
            // Whoever comes first finds the caches and clocks as the previous case left them: take turns.
            let first = round as usize % binaries.len();
            let (front, back) = binaries.split_at(first);
            for binary in back.iter().chain(front) {
                if binary.cases.iter().any(|known| known == case) {
                    run_case(binary, case, rows, &mut figures);
                }
            }
        }
        eprintln!(
            "round {} of {rounds}: {:.0} s",
            round + 1,
            begin.elapsed().as_secs_f64()
        );
    }
    figures
}

fn run_case(binary: &Binary, case: &str, rows: &[&Row], figures: &mut Figures) {
    let complaint = match run_process(binary, case) {
        Ok(Some(output)) if output.status.success() => {
            for (name, value) in String::from_utf8_lossy(&output.stdout)
                .lines()
                .filter_map(parse)
            {
                if let Some(row) = rows.iter().find(|row| row.name == name) {
                    figures
                        .samples
                        .entry((row.name, binary.peer.name))
                        .or_default()
                        .push(value);
                }
            }
            return;
        }
        Ok(Some(output)) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let why: Vec<&str> = errors
                .lines()
                .filter(|line| !line.is_empty())
                .take(2)
                .collect();
            format!("{}: {}", output.status, why.join(" "))
        }
        Ok(None) => format!("killed after {} s", PATIENCE.as_secs()),
        Err(error) => error.to_string(),
    };
    let failure = format!("{case} on {}: {complaint}", binary.peer.name);
    eprintln!("{failure}");
    figures.failures.push(failure);
}

/// Runs one process to its end; `None` when it had to be killed.
fn run_process(binary: &Binary, case: &str) -> io::Result<Option<Output>> {
    let mut process = Command::new(&binary.path)
        .arg(case)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let begin = Instant::now();
    // What it prints, a panic included, fits the pipes: nobody has to read while it runs.
    while process.try_wait()?.is_none() {
        if begin.elapsed() > PATIENCE {
            process.kill()?;
            process.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
    process.wait_with_output().map(Some)
}

/// Reads one line `{"row": "tcp-rtt", "value": 33.1}`, the only form there is.
fn parse(line: &str) -> Option<(&str, f64)> {
    let (name, value) = line
        .strip_prefix("{\"row\": \"")?
        .split_once("\", \"value\": ")?;
    Some((name, value.strip_suffix('}')?.parse().ok()?))
}
