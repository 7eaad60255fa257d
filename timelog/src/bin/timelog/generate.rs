//! `timelog gen`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sha2::{Digest, Sha256};

use crate::dataset::{Dataset, HEADER, Lateness};

#[derive(Args)]
pub struct Options {
    /// How many rows to write.
    #[arg(long)]
    rows: u64,
    /// The share of late rows, 0 to 1.
    #[arg(long, value_parser = share_ppm)]
    late: u64,
    /// The most that a row is late, such as `10s`, or `all` for any time since the start.
    #[arg(long, default_value = "500us")]
    late_by: LateBy,
    /// The seed of all random choices.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// The file to write, instead of stdout.
    #[arg(short, long)]
    output: Option<PathBuf>,
}

/// A share in millionths.
fn share_ppm(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok((share * 1e6).round() as u64),
        _ => Err(format!("found {text}, expected a share from 0 to 1")),
    }
}

#[derive(Clone)]
struct LateBy(Lateness);

impl FromStr for LateBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(Lateness::All));
        }
        let duration: Duration =
            humantime::parse_duration(text).map_err(|error| error.to_string())?;
        match i64::try_from(duration.as_nanos()) {
            Ok(ns) if ns > 0 => Ok(Self(Lateness::UpTo(ns))),
            _ => Err(format!("found {text}, expected 1 ns to 292 years")),
        }
    }
}

/// Rows between two looks at the progress bar.
const PROGRESS_ROWS: u64 = 10_000;

pub fn run(options: &Options, is_quiet: bool) -> io::Result<()> {
    let progress = progress(options.rows, "rows", is_quiet);
    let summary = match &options.output {
        Some(path) => {
            let file = File::create(path).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
            write(options, file, &progress)?
        }
        None => write(options, io::stdout().lock(), &progress)?,
    };
    progress.finish_and_clear();
    // Beside the rows on stdout, where the file is the output.
    if options.output.is_some() {
        writeln!(io::stdout(), "{summary}")
    } else {
        writeln!(io::stderr(), "{summary}")
    }
}

/// A bar on stderr, if that is a terminal.
pub fn progress(count: u64, unit: &str, is_quiet: bool) -> ProgressBar {
    if is_quiet || !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
    }
    let template =
        format!("{{bar:40}} {{human_pos}}/{{human_len}} {unit}, {{per_sec}}, {{eta}} left");
    let style = ProgressStyle::with_template(&template).expect("the template is well-formed");
    ProgressBar::new(count).with_style(style)
}

fn write(options: &Options, output: impl Write, progress: &ProgressBar) -> io::Result<String> {
    let mut output = BufWriter::with_capacity(1 << 20, output);
    let mut digest = Sha256::new();
    let mut line = Vec::with_capacity(256);
    line.extend_from_slice(HEADER.as_bytes());
    let (mut late, mut first, mut last) = (0, i64::MAX, i64::MIN);
    let dataset = Dataset::new(options.rows, options.late, options.late_by.0, options.seed);
    for (number, row) in (1..).zip(dataset) {
        late += u64::from(row.ts < last);
        first = first.min(row.ts);
        last = last.max(row.ts);
        row.write_csv(&mut line);
        digest.update(&line);
        output.write_all(&line)?;
        line.clear();
        if number % PROGRESS_ROWS == 0 {
            progress.set_position(number);
        }
    }
    // The header alone.
    digest.update(&line);
    output.write_all(&line)?;
    output.flush()?;
    let span_ns = if options.rows == 0 { 0 } else { last - first };
    let share = if options.rows == 0 {
        0.0
    } else {
        late as f64 / options.rows as f64
    };
    Ok(format!(
        "rows {}\nspan {:.3} s\nlate {:.4}\nsha256 {}",
        options.rows,
        span_ns as f64 / 1e9,
        share,
        hex(&digest.finalize())
    ))
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(late: u64, late_by: Lateness) -> String {
        let options = Options {
            rows: 100_000,
            late,
            late_by: LateBy(late_by),
            seed: 42,
            output: None,
        };
        let mut bytes = Vec::new();
        let summary = write(&options, &mut bytes, &ProgressBar::hidden()).unwrap();
        let digest = hex(&Sha256::digest(&bytes));
        assert!(summary.ends_with(&digest), "{summary}");
        digest
    }

    #[test]
    fn the_same_bytes_everywhere() {
        let late_10s = Lateness::UpTo(10_000_000_000);
        let found = [
            digest(50_000, Lateness::DEFAULT),
            digest(200_000, Lateness::DEFAULT),
            digest(50_000, late_10s),
            digest(50_000, Lateness::All),
        ];
        let expected = [
            "9aa7eda9dfe6c975afa038a6dbfc4d71c29bb4fa4009e2bac5c90825dd2abfe7",
            "7cbb513a2d104a929cbd4b1289c68eb2833b864ffc73d852f19249566250d32d",
            "92cfb9392b1e800573e392e66af5df004322994a38fd29e5091c4dd006a64ab0",
            "1b9ce263f64ac97cac7ccfc75d057779756d52e723241ecc257721c71e53e68d",
        ];
        assert_eq!(found, expected);
    }
}
