//! Reads the data set back from CSV.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use csv::{ByteRecord, Reader, ReaderBuilder};
use timelog::Ts;

use crate::dataset::{Direction, HEADER, Order, PRICE, Row, Status};

/// The rows of a file, in its order.
pub struct Rows {
    reader: Reader<File>,
    record: ByteRecord,
    path: PathBuf,
}

/// What is wrong in a file, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct BadInput {
    path: PathBuf,
    /// From 1, the header's.
    line: u64,
    column: &'static str,
    found: String,
    expected: &'static str,
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            found,
            expected,
            ..
        } = self;
        let path = self.path.display();
        write!(
            f,
            "{path}:{line}: column {column}: found {found:?}, expected {expected}"
        )
    }
}

impl std::error::Error for BadInput {}

const COLUMNS: usize = 10;
const TICKERS: u64 = 100;

impl Rows {
    /// Opens a file and reads its header.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .quoting(false)
            .buffer_capacity(64 << 10)
            .from_path(path)?;
        let mut record = ByteRecord::with_capacity(256, COLUMNS);
        reader.read_byte_record(&mut record)?;
        let found = record.iter().collect::<Vec<_>>().join(&b',');
        if found != HEADER.trim_end().as_bytes() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                BadInput {
                    path: path.to_owned(),
                    line: 1,
                    column: "header",
                    found: String::from_utf8_lossy(&found).into_owned(),
                    expected: HEADER.trim_end(),
                },
            ));
        }
        Ok(Self {
            reader,
            record,
            path: path.to_owned(),
        })
    }

    fn read(&mut self) -> io::Result<Option<Row>> {
        if !self.reader.read_byte_record(&mut self.record)? {
            return Ok(None);
        }
        row(&self.record).map(Some).map_err(|bad| {
            let bad = BadInput {
                path: self.path.clone(),
                line: self.record.position().map_or(0, |place| place.line()),
                column: bad.column,
                found: String::from_utf8_lossy(bad.found).into_owned(),
                expected: bad.expected,
            };
            io::Error::new(io::ErrorKind::InvalidData, bad)
        })
    }
}

impl Iterator for Rows {
    type Item = io::Result<Row>;

    #[inline]
    fn next(&mut self) -> Option<io::Result<Row>> {
        self.read().transpose()
    }
}

struct BadField<'r> {
    column: &'static str,
    found: &'r [u8],
    expected: &'static str,
}

#[inline]
fn row(record: &ByteRecord) -> Result<Row, BadField<'_>> {
    if record.len() != COLUMNS {
        return Err(BadField {
            column: "count",
            found: record.as_slice(),
            expected: "ten columns",
        });
    }
    let field = |index: usize, column, expected| {
        let found = &record[index];
        (
            found,
            BadField {
                column,
                found,
                expected,
            },
        )
    };
    let (found, bad) = field(0, "timestamp", "a whole number of nanoseconds");
    let ts = signed(found).ok_or(bad)?;

    let (found, bad) = field(1, "ticker", "T000 to T099");
    let ticker = found
        .strip_prefix(b"T")
        .filter(|digits| digits.len() == 3)
        .and_then(whole)
        .filter(|ticker| *ticker < TICKERS)
        .ok_or(bad)? as u8;
    let (found, bad) = field(2, "isin", "ZZ and the ten digits of the ticker");
    found
        .strip_prefix(b"ZZ")
        .filter(|digits| digits.len() == 10)
        .and_then(whole)
        .filter(|number| *number == u64::from(ticker))
        .ok_or(bad)?;

    let (found, bad) = field(3, "direction", "BUY or SELL");
    let direction = match found {
        b"BUY" => Direction::Buy,
        b"SELL" => Direction::Sell,
        _ => return Err(bad),
    };
    let (found, bad) = field(4, "status", "OPEN, PARTIAL or FILLED");
    let status = match found {
        b"OPEN" => Status::Open,
        b"PARTIAL" => Status::Partial,
        b"FILLED" => Status::Filled,
        _ => return Err(bad),
    };
    let (found, bad) = field(5, "amount", "a whole number below 2^32");
    let amount = whole(found)
        .and_then(|amount| u32::try_from(amount).ok())
        .ok_or(bad)?;
    const EXPECTED: &str = "a number with six decimals";
    let (found, bad) = field(6, "ask_price", EXPECTED);
    let ask = price(found).ok_or(bad)?;
    let (found, bad) = field(
        7,
        "bid_price",
        "a number with six decimals, none while open",
    );
    let bid = match (found.is_empty(), status) {
        (true, Status::Open) => None,
        (false, Status::Partial | Status::Filled) => Some(price(found).ok_or(bad)?),
        _ => return Err(bad),
    };
    let (found, bad) = field(8, "order_id", "a whole number");
    let id = whole(found).ok_or(bad)?;
    let (found, bad) = field(9, "commission", EXPECTED);
    let commission = price(found)
        .and_then(|commission| u32::try_from(commission).ok())
        .ok_or(bad)?;
    Ok(Row {
        ts,
        order: Order::new(
            id,
            ticker,
            direction,
            status,
            amount,
            (ask, bid),
            commission,
        ),
    })
}

#[inline]
fn signed(digits: &[u8]) -> Option<Ts> {
    match digits.strip_prefix(b"-") {
        Some(digits) => 0i64.checked_sub_unsigned(whole(digits)?),
        None => whole(digits)?.try_into().ok(),
    }
}

/// Digits alone, one or more.
#[inline]
fn whole(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    // Nineteen digits fit.
    let is_short = digits.len() <= 19;
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        if digit > 9 {
            None
        } else if is_short {
            Some(number * 10 + digit)
        } else {
            number.checked_mul(10)?.checked_add(digit)
        }
    })
}

/// Millionths.
#[inline]
fn price(text: &[u8]) -> Option<i64> {
    let point = text.len().checked_sub(7)?;
    let (units, rest) = text.split_at(point);
    let millionths = whole(rest.strip_prefix(b".")?)? as i64;
    i64::try_from(whole(units)?)
        .ok()?
        .checked_mul(PRICE)?
        .checked_add(millionths)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::dataset::{Dataset, Lateness};

    fn file(text: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        file
    }

    fn lines(count: u64) -> Vec<u8> {
        let mut text = HEADER.as_bytes().to_vec();
        Dataset::new(count, 50_000, Lateness::DEFAULT, 42).for_each(|row| row.write_csv(&mut text));
        text
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut text = lines(5_000);
        // A missing last newline is fine.
        text.pop();
        let file = file(&text);
        let read: Vec<Row> = Rows::open(file.path())
            .unwrap()
            .collect::<io::Result<_>>()
            .unwrap();
        let expected: Vec<Row> = Dataset::new(5_000, 50_000, Lateness::DEFAULT, 42).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let text = String::from_utf8(lines(2)).unwrap();
        let good: Vec<&str> = text.lines().nth(2).unwrap().split(',').collect();
        for (column, bad, name) in [
            (0, "12x", "timestamp"),
            (0, "99999999999999999999", "timestamp"),
            (1, "T100", "ticker"),
            (2, "ZZ1", "isin"),
            (3, "buy", "direction"),
            (4, "", "status"),
            (5, "4294967296", "amount"),
            (6, "1.00000", "ask_price"),
            (6, ".000000", "ask_price"),
            (8, "-1", "order_id"),
            (9, "1", "commission"),
        ] {
            let mut fields = good.clone();
            fields[column] = bad;
            let file = file(format!("{HEADER}{}\n", fields.join(",")).as_bytes());
            let error = Rows::open(file.path())
                .unwrap()
                .next()
                .unwrap()
                .unwrap_err();
            let told = error.to_string();
            assert!(
                told.contains(&format!(":2: column {name}: found {bad:?}, expected ")),
                "{told}"
            );
        }
        let file = file(format!("{HEADER}1,2\n").as_bytes());
        let error = Rows::open(file.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap_err();
        assert!(error.to_string().contains("expected ten columns"));
    }

    #[test]
    fn another_header_is_refused() {
        let error = Rows::open(file(b"a,b\n").path()).err().unwrap();
        assert!(
            error
                .to_string()
                .contains(":1: column header: found \"a,b\"")
        );
    }

    #[test]
    fn the_ends_of_numbers() {
        assert_eq!(signed(b"-9223372036854775808"), Some(Ts::MIN));
        assert_eq!(signed(b"9223372036854775807"), Some(Ts::MAX));
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!(price(b"0.000001"), Some(1));
    }
}
