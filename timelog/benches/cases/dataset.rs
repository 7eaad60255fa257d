//! The data set: orders of a made-up exchange, by integers alone, so that they are the same on every machine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use csv::{ByteRecord, Reader, ReaderBuilder};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use timelog::Ts;

const HEADER: &str =
    "timestamp,ticker,isin,direction,status,amount,ask_price,bid_price,order_id,commission\n";
/// 2021-01-01, in nanoseconds since the Unix epoch.
const START: Ts = 1_609_459_200_000_000_000;
const TICKERS: usize = 100;
/// One, in the unit of prices.
const PRICE: i64 = 1_000_000;
/// How late a row is at most: half a millisecond.
const MOST_LATE: i64 = 500_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Buy,
    Sell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Open,
    Partial,
    Filled,
}

/// A row's value. Prices and commission in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: u64,
    pub ask: i64,
    /// Zero, which no price is, while the order is open.
    bid: i64,
    pub commission: u32,
    pub amount: u32,
    pub ticker: u8,
    pub direction: Direction,
    pub status: Status,
}

const _: () = assert!(size_of::<Order>() == 40, "a row of the log takes 48 bytes");

impl Order {
    pub fn bid(&self) -> Option<i64> {
        (self.bid != 0).then_some(self.bid)
    }
}

/// A row, as the log takes it.
pub type Row = (Ts, Order);

/// Writes rows as CSV.
pub fn write_csv(to: impl Write, rows: impl IntoIterator<Item = Row>) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    to.write_all(HEADER.as_bytes())?;
    for (ts, order) in rows {
        let direction = match order.direction {
            Direction::Buy => "BUY",
            Direction::Sell => "SELL",
        };
        let status = match order.status {
            Status::Open => "OPEN",
            Status::Partial => "PARTIAL",
            Status::Filled => "FILLED",
        };
        let Order {
            ticker, amount, id, ..
        } = order;
        write!(
            to,
            "{ts},T{ticker:03},ZZ{ticker:010},{direction},{status},{amount},"
        )?;
        let price = |price: i64| (price / PRICE, price % PRICE);
        let (units, rest) = price(order.ask);
        write!(to, "{units}.{rest:06},")?;
        if let Some((units, rest)) = order.bid().map(price) {
            write!(to, "{units}.{rest:06}")?;
        }
        let (units, rest) = price(order.commission.into());
        writeln!(to, ",{id},{units}.{rest:06}")?;
    }
    to.flush()
}

/// Reads rows back.
pub struct CsvRows {
    reader: Reader<File>,
    record: ByteRecord,
}

impl CsvRows {
    pub fn open(path: &Path) -> Self {
        let mut reader = ReaderBuilder::new()
            .quoting(false)
            .buffer_capacity(64 << 10)
            .from_path(path)
            .expect("the file was written before");
        let header = reader.byte_headers().expect("it has a header").iter();
        assert!(header.eq(HEADER.trim_end().split(',').map(str::as_bytes)));
        Self {
            reader,
            record: ByteRecord::with_capacity(256, 10),
        }
    }
}

impl Iterator for CsvRows {
    type Item = Row;

    #[inline]
    fn next(&mut self) -> Option<Row> {
        let is_row = self.reader.read_byte_record(&mut self.record);
        let row = || row(&self.record).unwrap_or_else(|| panic!("no row: {:?}", self.record));
        is_row.expect("the file is ours").then(row)
    }
}

#[inline]
fn row(record: &ByteRecord) -> Option<Row> {
    let number = |at: usize, prefix: &[u8], digits| {
        let found = record.get(at)?.strip_prefix(prefix)?;
        whole(found).filter(|_| found.len() == digits)
    };
    let ticker = number(1, b"T", 3).filter(|ticker| *ticker < TICKERS as u64)?;
    number(2, b"ZZ", 10).filter(|isin| *isin == ticker)?;
    let direction = match &record[3] {
        b"BUY" => Direction::Buy,
        b"SELL" => Direction::Sell,
        _ => return None,
    };
    let status = match &record[4] {
        b"OPEN" => Status::Open,
        b"PARTIAL" => Status::Partial,
        b"FILLED" => Status::Filled,
        _ => return None,
    };
    let bid = match (&record[7], status) {
        (b"", Status::Open) => 0,
        (b"", _) | (_, Status::Open) => return None,
        (bid, _) => price(bid)?,
    };
    let order = Order {
        id: whole(&record[8])?,
        ask: price(&record[6])?,
        bid,
        commission: price(&record[9])?.try_into().ok()?,
        amount: whole(&record[5])?.try_into().ok()?,
        ticker: ticker as u8,
        direction,
        status,
    };
    Some((whole(&record[0])?.try_into().ok()?, order))
}

/// Digits alone, at most nineteen, which fit.
#[inline]
fn whole(digits: &[u8]) -> Option<u64> {
    let add = |number: u64, digit: &u8| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        (digit <= 9).then_some(number * 10 + digit)
    };
    let is_number = (1..=19).contains(&digits.len());
    is_number.then(|| digits.iter().try_fold(0, add))?
}

/// Millionths.
#[inline]
fn price(text: &[u8]) -> Option<i64> {
    let (units, rest) = text.split_at_checked(text.len().checked_sub(7)?)?;
    let millionths = whole(rest.strip_prefix(b".")?)?;
    i64::try_from(whole(units)?)
        .ok()?
        .checked_mul(PRICE)?
        .checked_add(millionths as i64)
}

struct OpenOrder {
    id: u64,
    ticker: u8,
    direction: Direction,
    rest: i64,
}

/// Makes rows in the order of arrival.
pub struct Dataset {
    random: Xoshiro256StarStar,
    rows: u64,
    late_ppm: i64,
    next_row: u64,
    clock: Ts,
    latest: Ts,
    mids: Vec<i64>,
    /// Running sums of the weights of the tickers.
    weights: Vec<i64>,
    /// The first order, which is filled at two certain rows.
    first: Option<OpenOrder>,
    filled_at: u64,
    open: Vec<OpenOrder>,
    next_id: u64,
}

impl Dataset {
    pub fn new(rows: usize, late_ppm: i64) -> Self {
        let weights = (1..=TICKERS as i64).scan(0, |sum, rank| {
            *sum += (1i64 << 32) / rank;
            Some(*sum)
        });
        let mut dataset = Self {
            random: Xoshiro256StarStar::seed_from_u64(42),
            rows: rows as u64,
            late_ppm,
            next_row: 0,
            clock: START,
            latest: Ts::MIN,
            mids: Vec::new(),
            weights: weights.collect(),
            first: None,
            filled_at: 0,
            open: Vec::new(),
            next_id: 1,
        };
        dataset.mids = (0..TICKERS)
            .map(|_| dataset.uniform(1, 1500) * PRICE)
            .collect();
        dataset.filled_at = dataset.uniform(20, 100) as u64;
        dataset
    }

    /// One of `first` to `last`, both inside.
    fn uniform(&mut self, first: i64, last: i64) -> i64 {
        let count = (last - first + 1) as u128;
        first + ((u128::from(self.random.next_u64()) * count) >> 64) as i64
    }

    fn chance(&mut self, ppm: i64) -> bool {
        self.uniform(0, 999_999) < ppm
    }

    fn timestamp(&mut self) -> Ts {
        self.clock += match self.uniform(0, 99) {
            0..60 => self.uniform(1, 1_000),
            60..90 => self.uniform(1_000, 200_000),
            _ => self.uniform(200_000, 4_765_000),
        };
        if self.next_row > 0 && self.chance(self.late_ppm) {
            return self.latest - self.uniform(1, MOST_LATE);
        }
        self.latest = self.clock;
        self.clock
    }

    /// What the row opens or fills: the order, how much, and its new status.
    fn event(&mut self) -> (u64, u8, Direction, i64, Status) {
        let row = self.next_row;
        if (row == self.filled_at / 2 || row == self.filled_at)
            && let Some(first) = &mut self.first
        {
            let (amount, status) = if row == self.filled_at {
                (first.rest, Status::Filled)
            } else {
                (first.rest / 2, Status::Partial)
            };
            first.rest -= amount;
            return (first.id, first.ticker, first.direction, amount, status);
        }
        let count = self.open.len() as i64;
        if count > 0 && self.chance((400_000 + count * 2_000).min(950_000)) {
            let index = self.uniform(0, count - 1) as usize;
            let OpenOrder {
                id,
                ticker,
                direction,
                rest,
            } = self.open[index];
            if rest > 1 && self.chance(600_000) {
                let amount = self.uniform(1, rest - 1);
                self.open[index].rest -= amount;
                return (id, ticker, direction, amount, Status::Partial);
            }
            self.open.swap_remove(index);
            return (id, ticker, direction, rest, Status::Filled);
        }
        let weight = self.uniform(0, self.weights[TICKERS - 1] - 1);
        let ticker = self.weights.partition_point(|sum| *sum <= weight) as u8;
        let direction = if self.uniform(0, 1) == 0 {
            Direction::Buy
        } else {
            Direction::Sell
        };
        let (id, rest) = (self.next_id, self.uniform(10, 15_000));
        self.next_id += 1;
        let order = OpenOrder {
            id,
            ticker,
            direction,
            rest,
        };
        if id == 1 {
            self.first = Some(order);
        } else {
            self.open.push(order);
        }
        (id, ticker, direction, rest, Status::Open)
    }
}

impl Iterator for Dataset {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        if self.next_row == self.rows {
            return None;
        }
        let ts = self.timestamp();
        let (id, ticker, direction, amount, status) = self.event();
        let mid = self.mids[usize::from(ticker)];
        let mid = (mid + mid * self.uniform(-500, 500) / PRICE).max(1);
        self.mids[usize::from(ticker)] = mid;
        let spread = mid * self.uniform(50, 1_500) / PRICE;
        let ask = mid + spread / 2;
        let (bid, commission) = match status {
            Status::Open => (0, 0),
            _ => (ask - spread, self.uniform(0, PRICE) as u32),
        };
        self.next_row += 1;
        let order = Order {
            id,
            ask,
            bid,
            commission,
            amount: amount as u32,
            ticker,
            direction,
            status,
        };
        Some((ts, order))
    }
}
