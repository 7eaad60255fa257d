//! Measures the crates in turn and gathers the figures.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use support::quantiles::{Samples, Spread};

use super::method::Method;
use super::peers::{Binary, Peer};
use super::rows::Row;
use crate::run::turns;

/// The figures of all rounds.
#[derive(Debug, Default)]
pub struct Figures {
    /// By row and crate, each with its round.
    samples: HashMap<(&'static str, &'static str), Vec<(u32, f64)>>,
    /// Cases that failed in a round, with their crate, in words.
    pub failures: Vec<String>,
}

impl Figures {
    /// What is known of `row` on `peer`.
    pub fn spread(&self, row: &Row, peer: Peer) -> Option<Spread> {
        self.spread_of(row.name, peer)
    }

    /// The ratio of `row` on `peer` to what it is to be compared with on `yardstick`: the middle of
    /// the ratios within the rounds. The machine may be faster in one round than in another,
    /// but hardly within one.
    pub fn ratio(&self, row: &Row, peer: Peer, yardstick: Peer) -> Option<f64> {
        let ratios = self.ratios(row, peer, yardstick);
        ratios.map(|(_, ratio)| ratio).collect::<Samples>().median()
    }

    /// The ratios of all `rows` together: the geometric mean of their [ratios](Self::ratio).
    pub fn ratio_of_all(&self, rows: &[&Row], peer: Peer, yardstick: Peer) -> Option<f64> {
        let ratios = rows
            .iter()
            .filter_map(|row| self.ratio(row, peer, yardstick));
        geometric_mean(ratios)
    }

    /// The same of each single round.
    pub fn ratios_of_rounds(&self, rows: &[&Row], peer: Peer, yardstick: Peer) -> Samples {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for row in rows {
            for (round, ratio) in self.ratios(row, peer, yardstick) {
                rounds.entry(round).or_default().push(ratio);
            }
        }
        let rounds = rounds.into_values();
        rounds.filter_map(geometric_mean).collect()
    }

    /// The ratios within the rounds, each with its round.
    fn ratios(
        &self,
        row: &Row,
        peer: Peer,
        yardstick: Peer,
    ) -> impl Iterator<Item = (u32, f64)> + use<'_> {
        let samples = |name, peer: Peer| self.samples.get(&(name, peer.name)).map(Vec::as_slice);
        let figures = samples(row.name, peer).unwrap_or_default();
        let units = samples(row.against, yardstick).unwrap_or_default();
        figures.iter().filter_map(|(round, figure)| {
            let (_, unit) = units.iter().find(|(other, _)| other == round)?;
            (*unit > 0.0).then(|| (*round, figure / unit))
        })
    }

    /// What is known of the row `name` on `peer`.
    pub fn spread_of(&self, name: &'static str, peer: Peer) -> Option<Spread> {
        let samples = self.samples.get(&(name, peer.name))?;
        let samples: Samples = samples.iter().map(|(_, figure)| *figure).collect();
        samples.spread()
    }
}

/// `None` of none; zeros are left out.
fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logarithms = values.into_iter().filter(|&it| it > 0.0).map(f64::ln);
    let (sum, count) = logarithms.fold((0.0, 0.0), |(sum, count), it| (sum + it, count + 1.0));
    (count > 0.0).then(|| f64::exp(sum / count))
}

/// Runs the cases behind `rows` on every binary that has them, `rounds` times.
pub fn run(method: &dyn Method, binaries: &[Binary], rows: &[&Row], rounds: u32) -> Figures {
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
            for place in turns(binaries.len(), round as usize) {
                let binary = &binaries[place];
                if method.can(binary, case) {
                    run_case(method, binary, case, rows, round, &mut figures);
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

fn run_case(
    method: &dyn Method,
    binary: &Binary,
    case: &str,
    rows: &[&Row],
    round: u32,
    figures: &mut Figures,
) {
    match method.measure(binary, case) {
        Ok(printed) => {
            for (name, value) in printed.lines().filter_map(parse) {
                if let Some(row) = rows.iter().find(|row| row.name == name) {
                    figures
                        .samples
                        .entry((row.name, binary.peer.name))
                        .or_default()
                        .push((round, value));
                }
            }
        }
        Err(complaint) => {
            let failure = format!("{case} on {}: {complaint}", binary.peer.name);
            eprintln!("{failure}");
            figures.failures.push(failure);
        }
    }
}

/// Reads one line `{"row": "tcp-rtt", "value": 33.1}`, the only form there is.
fn parse(line: &str) -> Option<(&str, f64)> {
    let (name, value) = line
        .strip_prefix("{\"row\": \"")?
        .split_once("\", \"value\": ")?;
    Some((name, value.strip_suffix('}')?.parse().ok()?))
}
