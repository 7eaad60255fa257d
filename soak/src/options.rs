//! The command line.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};

use crate::workload::Workload;

/// Soaks glommio under load and judges what it promises: exit status 0 if every invariant held.
#[derive(Debug, Parser)]
#[command(name = "soak", version, about)]
pub(crate) struct Options {
    /// How long to run: `500ms`, `30s`, `5m`, `2h`, or plain seconds.
    #[arg(long, default_value = "5m", value_parser = parse_duration)]
    pub(crate) duration: Duration,

    /// Seed of every random choice. Default: from the clock, and printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// How many times the default number of timers and messages to keep in flight.
    #[arg(long, default_value_t = 1.0, value_parser = parse_load)]
    pub(crate) load: f64,

    /// Client executors of the message queue. Default: one fewer than the cores found, at most 8.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) clients: Option<u16>,

    /// What to run.
    #[arg(long, value_enum, default_value_t = Selection::All)]
    pub(crate) workload: Selection,
}

impl Options {
    /// The seed asked for, else one from the clock.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(1, |since| since.subsec_nanos().into())
        })
    }
}

/// The value of `--workload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Selection {
    /// Every workload at once.
    All,
    /// A broker and its clients: ack deadlines, redelivery, socket timeouts.
    MessageQueue,
    /// Timers that cancel, re-arm and drop each other from inside their callbacks.
    ReEntrancy,
}

impl Selection {
    /// The workloads it stands for.
    pub(crate) fn workloads(self) -> &'static [Workload] {
        match self {
            Selection::All => &[Workload::MessageQueue, Workload::ReEntrancy],
            Selection::MessageQueue => &[Workload::MessageQueue],
            Selection::ReEntrancy => &[Workload::ReEntrancy],
        }
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{text}` does not begin with a whole number"))?;
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("`{unit}` is none of ms, s, m, h")),
    };
    match number.checked_mul(unit_ms) {
        Some(0) => Err("a run of no length checks nothing".to_owned()),
        Some(ms) if ms <= DURATION_MS_MAX => Ok(Duration::from_millis(ms)),
        _ => Err("longer than a year".to_owned()),
    }
}

fn parse_load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if (0.001..=100.0).contains(&load) => Ok(load),
        Ok(_) => Err("outside 0.001 to 100".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

const DURATION_MS_MAX: u64 = 366 * 24 * 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_every_unit() {
        for (text, ms) in [
            ("30s", 30_000),
            ("5m", 300_000),
            ("90", 90_000),
            ("2h", 7_200_000),
            ("250ms", 250),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
    }

    #[test]
    fn durations_that_make_no_sense() {
        for text in [
            "",
            "s",
            "-5",
            "5 s",
            "3d",
            "0",
            "0s",
            "1.5s",
            "18446744073709551615",
            "9999999h",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loads() {
        assert_eq!(parse_load("0.25"), Ok(0.25));
        for text in ["0", "-1", "101", "NaN", "inf", "much"] {
            assert!(parse_load(text).is_err(), "{text}");
        }
    }

    #[test]
    fn command_line_defaults() {
        let options = Options::parse_from(["soak"]);
        assert_eq!(options.duration, Duration::from_secs(300));
        assert_eq!(options.workload, Selection::All);
        let options = Options::parse_from(["soak", "--seed", "7", "--workload", "re-entrancy"]);
        assert_eq!(options.seed(), 7);
        assert_eq!(options.workload.workloads(), &[Workload::ReEntrancy]);
        assert!(Options::try_parse_from(["soak", "--clients", "0"]).is_err());
    }
}
