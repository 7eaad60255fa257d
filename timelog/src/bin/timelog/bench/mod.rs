//! `timelog bench`: cases of the published Timelog, floors and peers, interleaved in one run.

mod floors;
mod latency;
mod reads;
mod sample;
mod writes;

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use timelog::{Config, Snapshot, Ts};

use crate::dataset::{Dataset, Lateness, Order, Row};
use sample::{Sample, Summary};

#[derive(Args)]
pub struct Options {
    /// Cases to run, separated by commas; `A*` names all that begin with A. All by default.
    #[arg(long = "case", value_delimiter = ',', default_value = "*")]
    cases: Vec<String>,
    /// Measured rounds, after three that are not.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Appends of the latency cases K1 and K1B.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    appends: u64,
}

/// One case. A wrong result panics.
struct Case {
    id: &'static str,
    /// Rows a second as published for version 0.4.5, with another machine, language and timing: see the notes.
    published: Option<f64>,
    run: fn(&Fixture) -> Sample,
}

const fn case(id: &'static str, published: f64, run: fn(&Fixture) -> Sample) -> Case {
    Case {
        id,
        published: Some(published),
        run,
    }
}

const fn unpublished(id: &'static str, run: fn(&Fixture) -> Sample) -> Case {
    Case {
        id,
        published: None,
        run,
    }
}

/// What all cases work on; made before the clock runs.
struct Fixture {
    late05: Vec<Row>,
    late20: Vec<Row>,
    /// `late05` in time order.
    sorted: Vec<Row>,
    /// `late05`, loaded by 10,000 and flushed.
    loaded: Snapshot<Order>,
    t0: Ts,
}

const SECOND: Ts = 1_000_000_000;
const WARM_UPS: u32 = 3;
const NOTES: &str = "\
Published figures are of version 0.4.5 on Windows 10 with Python 3.13. Its A, D and E time CSV parsing and Python
objects, ours the engine alone; its F1 and F2 read no timestamp; its B5 and H4 hold the scan that picks the timestamps.";

impl Fixture {
    fn new() -> Self {
        let rows =
            |late| Dataset::new(100_000, late, Lateness::UpTo(500_000), 42).collect::<Vec<_>>();
        let late05 = rows(50_000);
        let mut sorted = late05.clone();
        sorted.sort_by_key(|row| row.ts);
        let loaded = writes::loaded(&late05, Config::bulk_ingest()).snapshot();
        Self {
            t0: sorted[0].ts,
            late20: rows(200_000),
            late05,
            sorted,
            loaded,
        }
    }

    /// The rows from `start` to before `end`, in nanoseconds after the first.
    fn within(&self, start: Ts, end: Ts) -> &[Row] {
        let at = |ts: Ts| self.sorted.partition_point(|row| row.ts < self.t0 + ts);
        &self.sorted[at(start)..at(end)]
    }
}

pub fn run(options: &Options, is_quiet: bool) -> io::Result<()> {
    let is_chosen = |id: &str| {
        options
            .cases
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => id.starts_with(start),
                None => id == pattern,
            })
    };
    let cases: Vec<&Case> = all_cases().filter(|case| is_chosen(case.id)).collect();
    let latencies: Vec<_> = latency::CASES
        .iter()
        .filter(|case| is_chosen(case.id))
        .collect();
    if cases.is_empty() && latencies.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no case of that name",
        ));
    }
    let mut out = io::stdout().lock();
    if !cases.is_empty() {
        let progress =
            crate::generate::progress((WARM_UPS + options.rounds).into(), "rounds", is_quiet);
        let summaries = measure(&cases, options.rounds, &progress);
        progress.finish_and_clear();
        report(&cases, &summaries, &mut out)?;
    }
    if !latencies.is_empty() {
        latency::run(&latencies, options.appends, &mut out)?;
    }
    Ok(())
}

fn all_cases() -> impl Iterator<Item = &'static Case> {
    writes::CASES
        .iter()
        .chain(reads::CASES)
        .chain(floors::CASES)
}

/// Each round runs every case once, so that noise meets all of them alike.
fn measure(cases: &[&Case], rounds: u32, progress: &ProgressBar) -> Vec<Summary> {
    let fixture = Fixture::new();
    let mut samples = vec![Vec::new(); cases.len()];
    for round in 0..WARM_UPS + rounds {
        for (case, samples) in cases.iter().zip(&mut samples) {
            let sample = (case.run)(&fixture);
            if round >= WARM_UPS {
                samples.push(sample);
            }
        }
        progress.inc(1);
    }
    samples.iter().map(|samples| Summary::of(samples)).collect()
}

fn report(cases: &[&Case], summaries: &[Summary], mut out: impl Write) -> io::Result<()> {
    writeln!(
        out,
        "| Case | Operations | Median /s | p95 | p99 | MAD | Published /s | Ratio |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
    for (case, summary) in cases.iter().zip(summaries) {
        let rate = summary.rate();
        let (published, ratio) = match case.published {
            Some(published) => (short(published), format!("{:.1}", rate / published)),
            None => ("–".into(), "–".into()),
        };
        let Summary {
            operations,
            p95,
            p99,
            mad,
            ..
        } = *summary;
        let id = case.id;
        writeln!(
            out,
            "| {id} | {operations} | {} | {} | {} | {} | {published} | {ratio} |",
            short(rate),
            time(p95),
            time(p99),
            time(mad),
        )?;
    }
    writeln!(out, "\n{NOTES}")
}

/// A rate with three digits or so.
fn short(rate: f64) -> String {
    match rate {
        1e9.. => format!("{:.2}G", rate / 1e9),
        1e6.. => format!("{:.2}M", rate / 1e6),
        1e3.. => format!("{:.1}K", rate / 1e3),
        _ => format!("{rate:.0}"),
    }
}

fn time(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_nanos() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case gives right results, which is asserted inside.
    #[test]
    fn every_case_is_right() {
        let fixture = Fixture::new();
        for case in all_cases() {
            let sample = (case.run)(&fixture);
            assert!(sample.operations > 0, "{}", case.id);
        }
    }

    #[test]
    fn a_report_has_a_line_for_each_case() {
        let cases = [&reads::CASES[0], &floors::CASES[0]];
        let sample = Sample {
            operations: 2_000,
            elapsed: Duration::from_millis(1),
        };
        let summaries = [Summary::of(&[sample]), Summary::of(&[sample; 3])];
        let mut out = Vec::new();
        report(&cases, &summaries, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.contains("| B1 | 2000 | 2.00M | 1000.0 µs | 1000.0 µs | 0.0 µs | 976.0K | 2.0 |"),
            "{out}"
        );
        assert!(
            cases
                .iter()
                .all(|case| out.contains(&format!("| {} |", case.id)))
        );
    }
}
