//! Orders of a made-up exchange, row by row, by integers alone: the same on every machine.

use std::io::Write;

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use timelog::Ts;

/// The first line of the CSV.
pub const HEADER: &str =
    "timestamp,ticker,isin,direction,status,amount,ask_price,bid_price,order_id,commission\n";

/// When the clock starts: 2021-01-01, in nanoseconds since the Unix epoch.
pub const START: Ts = 1_609_459_200_000_000_000;
const TICKERS: usize = 100;
/// One, in the unit of prices.
pub const PRICE: i64 = 1_000_000;

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

/// A row's value: 40 bytes, integers only. Prices and commission in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: u64,
    pub ask: i64,
    /// None while the order is open; kept as zero, which no price is.
    bid: i64,
    pub commission: u32,
    pub amount: u32,
    pub ticker: u8,
    pub direction: Direction,
    pub status: Status,
}

const _: () = assert!(size_of::<Order>() == 40, "a row of the log takes 48 bytes");

impl Order {
    pub fn new(
        id: u64,
        ticker: u8,
        direction: Direction,
        status: Status,
        amount: u32,
        (ask, bid): (i64, Option<i64>),
        commission: u32,
    ) -> Self {
        Self {
            id,
            ask,
            bid: bid.unwrap_or(0),
            commission,
            amount,
            ticker,
            direction,
            status,
        }
    }

    pub fn bid(&self) -> Option<i64> {
        (self.bid != 0).then_some(self.bid)
    }
}

/// A row of the data set, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub ts: Ts,
    pub order: Order,
}

impl Row {
    /// Adds the row as a line.
    pub fn write_csv(&self, line: &mut Vec<u8>) {
        let Order {
            id,
            ask,
            commission,
            amount,
            ticker,
            direction,
            status,
            ..
        } = self.order;
        let direction = match direction {
            Direction::Buy => "BUY",
            Direction::Sell => "SELL",
        };
        let status = match status {
            Status::Open => "OPEN",
            Status::Partial => "PARTIAL",
            Status::Filled => "FILLED",
        };
        let whole = |price: i64| (price / PRICE, price % PRICE);
        let (ask, ask_rest) = whole(ask);
        let (fee, fee_rest) = whole(commission.into());
        let result = match self.order.bid().map(whole) {
            Some((bid, bid_rest)) => writeln!(
                line,
                "{},T{ticker:03},ZZ{ticker:010},{direction},{status},{amount},{ask}.{ask_rest:06},{bid}.{bid_rest:06},{id},{fee}.{fee_rest:06}",
                self.ts,
            ),
            None => writeln!(
                line,
                "{},T{ticker:03},ZZ{ticker:010},{direction},{status},{amount},{ask}.{ask_rest:06},,{id},{fee}.{fee_rest:06}",
                self.ts,
            ),
        };
        result.expect("a vector takes all bytes");
    }
}

/// How late a late row is at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// This many nanoseconds.
    UpTo(i64),
    /// Any time since the start.
    All,
}

impl Lateness {
    /// Half a millisecond.
    pub const DEFAULT: Self = Self::UpTo(500_000);
}

struct Random(Xoshiro256StarStar);

impl Random {
    /// One of `first` to `last`, both inside.
    fn uniform(&mut self, first: i64, last: i64) -> i64 {
        let count = (last - first + 1) as u128;
        first + ((u128::from(self.0.next_u64()) * count) >> 64) as i64
    }

    fn chance(&mut self, ppm: u64) -> bool {
        self.uniform(0, 999_999) < ppm as i64
    }
}

struct OpenOrder {
    id: u64,
    ticker: u8,
    direction: Direction,
    rest: i64,
}

/// The rows. Memory grows with the orders that are open at once, which are about as many as chance
/// allows to fill: fewer than 500.
pub struct Dataset {
    random: Random,
    rows: u64,
    late_ppm: u64,
    late_by: Lateness,
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
    pub fn new(rows: u64, late_ppm: u64, late_by: Lateness, seed: u64) -> Self {
        let mut random = Random(Xoshiro256StarStar::seed_from_u64(seed));
        let mids = (0..TICKERS)
            .map(|_| random.uniform(1, 1500) * PRICE)
            .collect();
        let filled_at = random.uniform(20, 100) as u64;
        let weights = (1..=TICKERS as i64).scan(0, |sum, rank| {
            *sum += (1i64 << 32) / rank;
            Some(*sum)
        });
        Self {
            random,
            rows,
            late_ppm,
            late_by,
            next_row: 0,
            clock: START,
            latest: Ts::MIN,
            mids,
            weights: weights.collect(),
            first: None,
            filled_at,
            open: Vec::new(),
            next_id: 1,
        }
    }

    fn timestamp(&mut self) -> Ts {
        let random = &mut self.random;
        let gap = match random.uniform(0, 99) {
            0..60 => random.uniform(1, 1_000),
            60..90 => random.uniform(1_000, 200_000),
            _ => random.uniform(200_000, 4_765_000),
        };
        self.clock += gap;
        if self.next_row > 0 && random.chance(self.late_ppm) {
            let most = match self.late_by {
                Lateness::UpTo(most) => most,
                Lateness::All => self.latest - START,
            };
            return self.latest - random.uniform(1, most);
        }
        self.latest = self.clock;
        self.clock
    }

    /// What the row opens or fills: the order, how much, and its new status.
    fn event(&mut self) -> (u64, u8, Direction, u32, Status) {
        let row = self.next_row;
        if (row == self.filled_at / 2 || row == self.filled_at)
            && let Some(first) = &mut self.first
        {
            let is_last = row == self.filled_at;
            let amount = if is_last { first.rest } else { first.rest / 2 };
            first.rest -= amount;
            let status = if is_last {
                Status::Filled
            } else {
                Status::Partial
            };
            return (
                first.id,
                first.ticker,
                first.direction,
                amount as u32,
                status,
            );
        }
        let count = self.open.len() as u64;
        if count > 0 && self.random.chance((400_000 + count * 2_000).min(950_000)) {
            let index = self.random.uniform(0, count as i64 - 1) as usize;
            let order = &mut self.open[index];
            let (id, ticker, direction) = (order.id, order.ticker, order.direction);
            if order.rest > 1 && self.random.chance(600_000) {
                let amount = self.random.uniform(1, order.rest - 1);
                order.rest -= amount;
                return (id, ticker, direction, amount as u32, Status::Partial);
            }
            let amount = order.rest;
            self.open.swap_remove(index);
            return (id, ticker, direction, amount as u32, Status::Filled);
        }
        let weight = self.random.uniform(0, self.weights[TICKERS - 1] - 1);
        let ticker = self.weights.partition_point(|sum| *sum <= weight) as u8;
        let direction = if self.random.uniform(0, 1) == 0 {
            Direction::Buy
        } else {
            Direction::Sell
        };
        let amount = self.random.uniform(10, 15_000);
        let order = OpenOrder {
            id: self.next_id,
            ticker,
            direction,
            rest: amount,
        };
        let opened = (order.id, ticker, direction, amount as u32, Status::Open);
        self.next_id += 1;
        if order.id == 1 {
            self.first = Some(order);
        } else {
            self.open.push(order);
        }
        opened
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
        let mid = &mut self.mids[usize::from(ticker)];
        *mid = (*mid + *mid * self.random.uniform(-500, 500) / PRICE).max(1);
        let spread = *mid * self.random.uniform(50, 1_500) / PRICE;
        let ask = *mid + spread / 2;
        let (bid, commission) = match status {
            Status::Open => (0, 0),
            _ => (ask - spread, self.random.uniform(0, PRICE) as u32),
        };
        self.next_row += 1;
        Some(Row {
            ts,
            order: Order {
                id,
                ask,
                bid,
                commission,
                amount,
                ticker,
                direction,
                status,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late05() -> Dataset {
        Dataset::new(100_000, 50_000, Lateness::DEFAULT, 42)
    }

    /// The digests hold only as long as the crate seeds as its authors describe it.
    #[test]
    fn the_generator_is_seeded_through_split_mix() {
        let mut state = 42u64;
        let seed: Vec<u8> = (0..4)
            .flat_map(|_| {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut bits = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                (bits ^ (bits >> 31)).to_le_bytes()
            })
            .collect();
        let mut expected = Xoshiro256StarStar::from_seed(seed.try_into().unwrap());
        let mut seeded = Xoshiro256StarStar::seed_from_u64(42);
        assert!((0..100).all(|_| seeded.next_u64() == expected.next_u64()));
    }

    #[test]
    fn row_counts() {
        let rows: Vec<Row> = late05().collect();
        let mut sorted: Vec<Ts> = rows.iter().map(|row| row.ts).collect();
        sorted.sort_unstable();
        let within =
            |seconds: i64| sorted.partition_point(|ts| *ts < sorted[0] + seconds * 1_000_000_000);
        let is_last = |row: &&Row| row.order.id == 1 && row.order.status == Status::Filled;
        let first_order = rows[0].ts..=rows.iter().find(is_last).unwrap().ts;
        let first_order = sorted.iter().filter(|ts| first_order.contains(*ts)).count();
        assert_eq!(
            (within(1), within(10), within(60), first_order),
            (3_409, 35_264, 100_000, 26)
        );
    }

    #[test]
    fn late_rows_are_late_by_at_most_what_was_asked() {
        for (late_by, most) in [
            (Lateness::DEFAULT, 500_000),
            (Lateness::UpTo(10_000_000_000), 10_000_000_000),
        ] {
            let (mut latest, mut late) = (Ts::MIN, 0);
            for row in Dataset::new(20_000, 200_000, late_by, 7) {
                late += u64::from(row.ts < latest);
                assert!(latest == Ts::MIN || row.ts >= latest - most);
                latest = latest.max(row.ts);
            }
            assert!(
                (3_800..4_200).contains(&late),
                "{late} of 20,000 rows are late"
            );
        }
        assert!(Dataset::new(5_000, 200_000, Lateness::All, 7).all(|row| row.ts >= START));
        assert!(
            Dataset::new(10_000, 0, Lateness::All, 7)
                .map(|row| row.ts)
                .is_sorted()
        );
    }

    /// Each order is filled by exactly what it opened.
    #[test]
    fn fills_add_up() {
        let mut rests = std::collections::BTreeMap::new();
        let mut dataset = late05();
        let mut most_open = 0;
        while let Some(Row { order, .. }) = dataset.next() {
            most_open = most_open.max(dataset.open.len());
            match order.status {
                Status::Open => {
                    assert!(rests.insert(order.id, order.amount).is_none());
                    assert_eq!((order.bid(), order.commission), (None, 0));
                }
                Status::Partial | Status::Filled => {
                    let rest = rests.get_mut(&order.id).expect("opened before");
                    *rest -= order.amount;
                    assert_eq!(
                        *rest == 0,
                        order.status == Status::Filled,
                        "order {}",
                        order.id
                    );
                    assert!(order.bid().unwrap() <= order.ask);
                }
            }
        }
        assert!(most_open < 500, "{most_open} orders were open at once");
        assert_eq!(rests[&1], 0);
    }

    #[test]
    fn lines_of_csv() {
        let mut lines = HEADER.as_bytes().to_vec();
        late05().take(3).for_each(|row| row.write_csv(&mut lines));
        let lines = String::from_utf8(lines).unwrap();
        for line in lines.lines() {
            assert_eq!(line.split(',').count(), 10, "{line}");
        }
        let first: Vec<_> = lines.lines().nth(1).unwrap().split(',').collect();
        assert_eq!(
            (first[4], first[7], first[8], first[9]),
            ("OPEN", "", "1", "0.000000")
        );
        assert!(
            first[6]
                .split_once('.')
                .is_some_and(|(_, digits)| digits.len() == 6)
        );
    }
}
