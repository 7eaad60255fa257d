//! `timelog dump` and `timelog query`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::RangeBounds;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Number, Value, json};
use timelog::{Layout, Scalar};

use super::common::{Place, Range, Rows, progress, range, rows};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A header `timestamp,value`, then a line for each row.
    Csv,
    /// An object for each row, on a line of its own.
    Json,
    /// A stream of Arrow IPC.
    #[cfg(feature = "arrow")]
    Arrow,
}

#[derive(Args)]
pub struct Dump {
    #[command(flatten)]
    place: Place,
    /// The form of the rows. `--json` is the same as `--format json`.
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
    /// The file to write, instead of stdout.
    #[arg(short, long)]
    output: Option<PathBuf>,
}

#[derive(Args)]
pub struct Query {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    /// How many there are, and the first and the last, instead of the rows.
    #[arg(long)]
    count: bool,
    /// No more rows than these.
    #[arg(long, default_value_t = u64::MAX)]
    limit: u64,
}

pub async fn dump(options: &Dump, quiet: bool) -> io::Result<()> {
    let rows = rows(&options.place.log).await?;
    let output: Box<dyn Write> = match &options.output {
        Some(path) => Box::new(File::create(path)?),
        None => Box::new(io::stdout().lock()),
    };
    let format = match options.place.json {
        true => Format::Json,
        false => options.format,
    };
    let is_quiet = quiet || options.output.is_none();
    write(
        &rows,
        ..,
        u64::MAX,
        format,
        BufWriter::new(output),
        is_quiet,
    )
}

pub async fn query(options: &Query, quiet: bool) -> io::Result<()> {
    let rows = rows(&options.place.log).await?;
    let range = range(&options.range);
    if !options.count {
        let format = match options.place.json {
            true => Format::Json,
            false => Format::Csv,
        };
        let output = BufWriter::new(io::stdout().lock());
        return write(
            &rows,
            range,
            options.limit,
            format,
            output,
            quiet || options.limit < 1000,
        );
    }
    let mut found = rows.snapshots.range(range);
    let first = found.next().map(|row| row.0);
    let last = found.next_back().map(|row| row.0).or(first);
    let count = rows.snapshots.count(range);
    if options.place.json {
        println!("{}", json!({"count": count, "first": first, "last": last}));
    } else if let Some((first, last)) = first.zip(last) {
        println!("{count} rows from {first} to {last}");
    } else {
        println!("no rows");
    }
    Ok(())
}

/// A value as JSON: numbers, but those of 128 bits, and what is no number.
fn json_of(layout: &Layout, value: &[u8]) -> Value {
    let columns = layout.columns().iter().map(|column| {
        let text = column.text(value);
        match column.scalar() {
            Scalar::Bytes | Scalar::U128 | Scalar::I128 => Value::from(text),
            Scalar::F32 | Scalar::F64 => match text.parse().ok().and_then(Number::from_f64) {
                Some(number) => Value::from(number),
                None => Value::from(text),
            },
            _ => serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text)),
        }
    });
    let mut columns: Vec<_> = columns.collect();
    match columns.len() {
        1 => columns.remove(0),
        _ => Value::from(columns),
    }
}

fn write(
    rows: &Rows,
    range: impl RangeBounds<i64> + Clone,
    limit: u64,
    format: Format,
    mut output: impl Write,
    quiet: bool,
) -> io::Result<()> {
    let count = rows.snapshots.count(range.clone()).min(limit);
    let bar = progress(count, quiet);
    let found = rows.snapshots.range(range).take(count as usize);
    let found = found.inspect(|_| bar.inc(1));
    let layout = &rows.layout;
    match format {
        Format::Csv => {
            let mut output = csv::Writer::from_writer(&mut output);
            output.write_field("timestamp")?;
            output.write_record(layout.names())?;
            for (ts, value) in found {
                output.write_field(ts.to_string())?;
                output.write_record(layout.columns().iter().map(|it| it.text(&value.0)))?;
            }
            output.flush()?;
        }
        Format::Json => {
            for (ts, value) in found {
                let row = json!({"timestamp": ts, "value": json_of(layout, &value.0)});
                writeln!(output, "{row}")?;
            }
        }
        #[cfg(feature = "arrow")]
        Format::Arrow => {
            timelog::dump::dump_arrow(found, layout, rows.unit, &mut output)?;
        }
    }
    bar.finish_and_clear();
    output.flush()
}
