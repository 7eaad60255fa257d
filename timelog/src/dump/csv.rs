//! The form for people and other programs.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::ops::RangeBounds;
use std::str::FromStr;

use csv::{ErrorKind, Reader, StringRecord, Writer};

use super::{LoadError, LoadErrorKind, Position};
use crate::{MemLog, Snapshot, Ts, WriteErrorKind};

const HEADER: [&str; 2] = ["timestamp", "value"];
const BATCH_ROWS: usize = 4_096;

impl<V: Display> Snapshot<V> {
    /// Writes the rows of a range as CSV, and gives their number: a header `timestamp,value`, then
    /// a line each. Values that have commas, quotes or line breaks are quoted (RFC 4180).
    ///
    /// Needs the feature `csv`.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::new(timelog::Config::default())?;
    /// log.extend([(2, "b, c"), (1, "a")])?;
    /// let mut file = Vec::new();
    /// assert_eq!(log.snapshot().dump_csv(.., &mut file)?, 2);
    /// assert_eq!(file, b"timestamp,value\n1,a\n2,\"b, c\"\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dump_csv(&self, range: impl RangeBounds<Ts>, out: impl Write) -> io::Result<u64> {
        let mut out = Writer::from_writer(out);
        out.write_record(HEADER)?;
        let mut count = 0;
        for (ts, value) in self.range(range) {
            out.write_record([ts.to_string(), value.to_string()])?;
            count += 1;
        }
        out.flush()?;
        Ok(count)
    }
}

impl<V> MemLog<V>
where
    V: FromStr + Clone + 'static,
    V::Err: Display,
{
    /// Appends the rows of a CSV file, as [`dump_csv`](Snapshot::dump_csv) writes it, in batches,
    /// and gives their number.
    ///
    /// Needs the feature `csv`.
    ///
    /// # Errors
    /// [`LoadError`], with the line; the rows of earlier batches are in.
    ///
    /// # Examples
    ///
    /// ```
    /// # let mut log = timelog::MemLog::<u64>::new(timelog::Config::default())?;
    /// assert_eq!(log.load_csv(&b"timestamp,value\n1,10\n2,20\n"[..])?, 2);
    /// let error = log.load_csv(&b"timestamp,value\n1,ten\n"[..]).unwrap_err();
    /// assert!(error.to_string().starts_with("line 2: value is \"ten\""), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_csv(&mut self, input: impl Read) -> Result<u64, LoadError> {
        let mut input = Reader::from_reader(input);
        let mut rows = 0;
        let header = input.headers().cloned();
        let header = header.map_err(|error| error_of(error, rows))?;
        if header.iter().ne(HEADER) {
            let header: Vec<_> = header.iter().collect();
            let (found, wanted) = (format!("{:?}", header.join(",")), HEADER.join(","));
            let at = Position::Line(1);
            return Err(LoadError::format(rows, at, "the header", found, wanted));
        }
        let mut record = StringRecord::new();
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        let mut lines = Vec::with_capacity(BATCH_ROWS);
        loop {
            let is_read = input.read_record(&mut record);
            let is_read = is_read.map_err(|error| error_of(error, rows))?;
            let line = record.position().map_or(1, |position| position.line());
            if is_read {
                batch.push(parse(&record, line, rows)?);
                lines.push(line);
            }
            if batch.len() == BATCH_ROWS || !is_read {
                let count = batch.len() as u64;
                self.extend(batch.drain(..)).map_err(|refused| {
                    // Of the row that was refused, or of the first one if it is about all of them.
                    let row = match refused.kind {
                        WriteErrorKind::BelowFloor { index, .. } => index,
                        _ => 0,
                    };
                    LoadError {
                        rows,
                        at: Position::Line(lines[row]),
                        kind: LoadErrorKind::Refused(refused.kind),
                    }
                })?;
                lines.clear();
                rows += count;
            }
            if !is_read {
                return Ok(rows);
            }
        }
    }
}

fn parse<V>(record: &StringRecord, line: u64, rows: u64) -> Result<(Ts, V), LoadError>
where
    V: FromStr,
    V::Err: Display,
{
    let error = |field, text: &str, wanted: String| {
        LoadError::format(
            rows,
            Position::Line(line),
            field,
            format!("{text:?}"),
            wanted,
        )
    };
    let (ts, value) = (&record[0], &record[1]);
    let number = ts.parse();
    let number = number.map_err(|_| error("timestamp", ts, "an integer of 64 bits".into()))?;
    let parsed = value.parse();
    let parsed = parsed.map_err(|why: V::Err| error("value", value, format!("a value ({why})")))?;
    Ok((number, parsed))
}

fn error_of(error: csv::Error, rows: u64) -> LoadError {
    let at = Position::Line(error.position().map_or(1, |position| position.line()));
    let format = |field, found, wanted| LoadError::format(rows, at, field, found, wanted);
    let error = match error.into_kind() {
        ErrorKind::UnequalLengths { len, .. } => {
            let wanted = HEADER.len().to_string();
            return format("the number of columns", len.to_string(), wanted);
        }
        ErrorKind::Utf8 { err, .. } => {
            return format("the text", err.to_string(), "UTF-8".to_owned());
        }
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    };
    let kind = LoadErrorKind::Read(error);
    LoadError { rows, at, kind }
}
