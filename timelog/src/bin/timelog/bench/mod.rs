//! `timelog bench`: the cases of the published Timelog, floors and peers, interleaved in one run.

mod analytics;
mod bars;
mod case;
mod durable;
mod latency;
mod matrix;
mod mixed;
mod page;
mod plot;
mod reads;
mod record;
mod report;
mod results;
mod sample;
mod scaling;
mod setting;
mod writes;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use case::{Case, Fixture, Form};
use clap::Args;
use indicatif::ProgressBar;
use results::{Measured, Results};
use sample::{Sample, Summary};
use support::output::OutputFile;

#[derive(Args)]
pub struct Options {
    /// Cases to run, separated by commas; `A*` names all that begin with A, `floors` the
    /// comparison with bare loops and std's collections, `durable` logs in files. All by default.
    #[arg(long = "case", value_delimiter = ',', default_value = "*")]
    cases: Vec<String>,
    /// Comparisons with floors whose description has this text. All by default.
    #[arg(long, default_value = "")]
    floor: String,
    /// The form to run; both where both exist by default.
    #[arg(long)]
    form: Option<Form>,
    /// Measured rounds, after three that are not.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Rows of the comparison with floors.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(50_000..))]
    rows: u64,
    /// The most rows of the growth of load and scan.
    #[arg(long, default_value_t = 16_384_000, value_parser = clap::value_parser!(u64).range(4_000..))]
    most_rows: u64,
    /// Appends of the latency cases K1 and K1B.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    appends: u64,
    /// A short run: five rounds, 200,000 rows, growth up to 256,000 rows, 200,000 appends.
    #[arg(long, conflicts_with_all = ["rounds", "rows", "most_rows", "appends"])]
    quick: bool,
    /// Writes `timelog-benchmark.md`, its plots in `timelog-benchmark-plots.html`, and
    /// `timelog-benchmark.json` to this folder.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Where durable logs are measured, for their time: on the disk that is meant. The system's folder of
    /// temporary files by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Durable logs on the published glommio 0.9.0, too. Has cargo compile them, in a checkout of this
    /// repository, which takes a C compiler.
    #[arg(long)]
    published: bool,
    /// JSON on stdout instead of tables.
    #[arg(long)]
    json: bool,
}

const WARM_UPS: u32 = 3;
/// The greatest sizes take seconds each.
const GROWTH_ROUNDS: u32 = 5;

/// How much to run.
#[derive(Clone, Copy)]
struct Sizes {
    rounds: u32,
    rows: usize,
    most_rows: usize,
    appends: u64,
}

impl Options {
    fn sizes(&self) -> Sizes {
        if self.quick {
            return Sizes {
                rounds: 5,
                rows: 200_000,
                most_rows: 256_000,
                appends: 200_000,
            };
        }
        Sizes {
            rounds: self.rounds,
            rows: self.rows as usize,
            most_rows: self.most_rows as usize,
            appends: self.appends,
        }
    }

    fn is_chosen(&self, id: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => id.starts_with(start),
            None => id == pattern,
        };
        self.cases.iter().any(matches)
    }
}

pub fn run(options: &Options, is_quiet: bool) -> io::Result<()> {
    let sizes = options.sizes();
    let bar = |count: usize, unit: &str| crate::generate::progress(count as u64, unit, is_quiet);
    let setting = setting::Setting::here();

    let outputs = options.out.as_deref().map(outputs).transpose()?;

    // First, while the process is small.
    let has_floors = options.is_chosen("floors");
    let memory = has_floors.then(|| bars::memory(4_000_000)).flatten();
    let floors = if has_floors {
        let progress = bar(
            bars::BARS.len() * (sizes.rounds as usize + 1),
            "comparisons",
        );
        let is_chosen = |bar: &bars::Bar| bar.what.contains(&options.floor);
        let floors = bars::measure(sizes.rows, sizes.rounds, is_chosen, || progress.inc(1));
        progress.finish_and_clear();
        floors
    } else {
        Vec::new()
    };

    let chosen: Vec<(&'static Case, Form)> = all_cases()
        .filter(|case| options.is_chosen(case.id))
        .flat_map(|case| case.forms.iter().map(move |form| (case, *form)))
        .filter(|(_, form)| options.form.is_none_or(|wanted| wanted == *form))
        .collect();
    let latencies: Vec<&'static latency::Case> = latency::CASES
        .iter()
        .filter(|case| options.is_chosen(case.id))
        .collect();
    let has_durable = options.is_chosen("durable");
    if chosen.is_empty() && latencies.is_empty() && !has_floors && !has_durable {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no case of that name and form",
        ));
    }
    let fixture = Fixture::new()?;
    let progress = bar(chosen.len() * (WARM_UPS + sizes.rounds) as usize, "cases");
    let cases = measure(&fixture, &chosen, sizes.rounds, &progress);
    progress.finish_and_clear();

    let matrix = if options.is_chosen("K5") {
        let progress = bar(16 * (sizes.rounds as usize + 1), "cells");
        let matrix = matrix::measure(&fixture, sizes.rounds, || progress.inc(1));
        progress.finish_and_clear();
        matrix
    } else {
        Vec::new()
    };
    drop(fixture);

    let progress = bar(latencies.len(), "latencies");
    let timed = latencies.into_iter().map(|case| {
        let outcome = latency::measure(case, sizes.appends);
        progress.inc(1);
        outcome
    });
    let latencies = timed.collect();
    progress.finish_and_clear();

    let growth = options.is_chosen("J2").then(|| {
        let rounds = sizes.rounds.min(GROWTH_ROUNDS);
        let steps = scaling::sizes(sizes.most_rows).count() * rounds as usize;
        let progress = bar(steps, "sizes");
        let growth = scaling::measure(sizes.most_rows, rounds, || progress.inc(1));
        progress.finish_and_clear();
        growth
    });

    let durable = if has_durable {
        let progress = bar(durable::PARTS, "parts of durable logs");
        let folder = options.folder.clone().unwrap_or_else(std::env::temp_dir);
        let measured = durable::measure(&folder, sizes.rounds as usize, sizes.rows, || {
            progress.inc(1)
        });
        progress.finish_and_clear();
        let mut rows = measured.map_err(|error| told(&folder, &error))?;
        if options.published {
            rows.extend(durable::measure_published(&folder)?);
        }
        rows
    } else {
        Vec::new()
    };

    let results = Results {
        setting: setting.after(),
        cases,
        floors,
        memory,
        latencies,
        growth,
        matrix,
        durable,
    };
    publish(options, outputs, &results)
}

/// The files in `folder`: Markdown, JSON and HTML. Before the run, as it would be lost if they
/// could not be written.
fn outputs(folder: &Path) -> io::Result<[OutputFile; 3]> {
    fs::create_dir_all(folder).map_err(|error| told(folder, &error))?;
    let open = |ending: &str| {
        let path = folder.join(format!("timelog-benchmark{ending}"));
        OutputFile::open(&path).map_err(|error| told(&path, &error))
    };
    // mdBook makes `timelog-benchmark.html` of the first.
    Ok([open(".md")?, open(".json")?, open("-plots.html")?])
}

fn told(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn publish(
    options: &Options,
    outputs: Option<[OutputFile; 3]>,
    results: &Results,
) -> io::Result<()> {
    let report = report::markdown(results);
    let json = record::json(results);
    if let Some(outputs) = outputs {
        let texts = [&report, &json, &page::html(results)?];
        for (mut output, text) in outputs.into_iter().zip(texts) {
            let written = output.write(|file| file.write_all(text.as_bytes()));
            written.map_err(|error| told(output.path(), &error))?;
        }
    }
    let mut out = io::stdout().lock();
    if options.json {
        out.write_all(json.as_bytes())
    } else {
        out.write_all(report.as_bytes())
    }
}

fn all_cases() -> impl Iterator<Item = &'static Case> {
    writes::CASES
        .iter()
        .chain(reads::CASES)
        .chain(analytics::CASES)
        .chain(mixed::CASES)
}

/// Each round runs every case once, so that noise meets all of them alike.
fn measure(
    fixture: &Fixture,
    chosen: &[(&'static Case, Form)],
    rounds: u32,
    progress: &ProgressBar,
) -> Vec<Measured> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); chosen.len()];
    for round in 0..WARM_UPS + rounds {
        for ((case, form), samples) in chosen.iter().zip(&mut samples) {
            let sample = (case.run)(fixture, *form);
            if round >= WARM_UPS {
                samples.push(sample);
            }
            progress.inc(1);
        }
    }
    let measured = chosen.iter().zip(samples);
    measured
        .map(|((case, form), samples)| Measured {
            case,
            form: *form,
            summary: Summary::of(&samples),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case gives right results, which is asserted inside.
    #[test]
    fn every_case_is_right() {
        let fixture = Fixture::new().unwrap();
        for case in all_cases() {
            for form in case.forms {
                let sample = (case.run)(&fixture, *form);
                assert!(sample.operations > 0, "{} {}", case.id, form.name());
            }
        }
    }

    /// All that were published, and some that were not measured then.
    #[test]
    fn no_case_is_missing() {
        let mut ids: Vec<&str> = all_cases().map(|case| case.id).collect();
        ids.extend(latency::CASES.iter().map(|case| case.id));
        let published = "A0 A1 A2 A2_less A2B A2B_less A3 A4 A5 A6 B1 B2 B3 B4 B5 B6 C1 C1B C2 C3 C4 C5 C6 C7 C8 D1 \
            D2 D3 D4 E1 E2 E3 E4 F1 F2 F3 F4 F5 G1 G2 G3 G4 H1 H2 H3 H3B H4 I1 I2 I3 J1 J2 J3 K1 K1B K2 K3";
        let published: Vec<&str> = published.split_whitespace().collect();
        assert_eq!(published.len(), 57);
        for id in published
            .iter()
            .chain(&["B7", "B8", "K4", "K5", "L1", "L2", "L3", "L4"])
        {
            assert!(ids.contains(id), "{id}");
        }
    }

    /// A run of everything, too short to mean anything, makes a report of each kind.
    #[test]
    fn a_short_run_is_reported() {
        let fixture = Fixture::new().unwrap();
        let chosen: Vec<_> = all_cases()
            .filter(|case| ["A0", "B1", "B7"].contains(&case.id))
            .flat_map(|case| case.forms.iter().map(move |form| (case, *form)))
            .collect();
        let is_brief = |bar: &bars::Bar| bar.what.contains("next");
        let results = Results {
            setting: setting::Setting::here().after(),
            cases: measure(&fixture, &chosen, 1, &ProgressBar::hidden()),
            floors: bars::measure(50_000, 1, is_brief, || {}),
            memory: Some(1.05),
            latencies: vec![latency::measure(&latency::CASES[0], 2_000)],
            growth: Some(scaling::measure(4_000, 1, || {})),
            matrix: matrix::measure(&fixture, 1, || {}),
            durable: durable::measure(&std::env::temp_dir(), 1, 50_000, || {}).unwrap(),
        };
        let report = report::markdown(&results);
        let page = page::html(&results).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record::json(&results)).unwrap();
        for part in [
            "## Floors",
            "## Cases",
            "## Latency",
            "## Growth",
            "## K5",
            "## Durable logs",
            "\n| A0 ",
            "\n| B7 ",
        ] {
            assert!(report.contains(part), "{part}");
        }
        assert!(page.matches("<svg").count() >= 5);
        assert_eq!(record["cases"].as_array().unwrap().len(), chosen.len());
    }
}
