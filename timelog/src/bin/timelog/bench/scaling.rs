//! Cases J2 and J3: how the time of loading, reading and reclaiming grows with the number of rows.

use std::hint::black_box;
use std::iter;
use std::time::Duration;

use timelog::{Config, MemLog, Ts};

use super::case::{finish, new_log, write};
use super::sample::{Sample, timed};
use crate::dataset::{Dataset, Lateness, Order};

/// The published sizes of a case.
pub struct Series {
    sizes: &'static [usize],
    is_reclaimed: bool,
}

pub const J2: Series = Series {
    sizes: &[1_000, 2_000, 4_000, 8_000, 16_000],
    is_reclaimed: false,
};
/// Deletes and compacts too, which the published case does not.
pub const J3: Series = Series {
    sizes: &[2_000, 4_000, 8_000, 16_000],
    is_reclaimed: true,
};

/// One round of a published case: all its sizes.
pub fn published_sizes(series: &Series) -> Sample {
    let mut sum = Sample {
        operations: 0,
        elapsed: Duration::ZERO,
    };
    for size in series.sizes {
        let times = grow(*size);
        sum.operations += *size as u64;
        sum.elapsed += times.load + times.scan;
        if series.is_reclaimed {
            sum.elapsed += times.reclaim;
        }
    }
    sum
}

/// What was measured with so many rows.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub rows: usize,
    pub load: Duration,
    pub scan: Duration,
    /// A tenth in the middle is deleted, rows are added all over, and everything is merged.
    pub reclaim: Duration,
}

/// How long each of the three took, and its slope: 1 is proportional to the rows.
pub struct Growth {
    pub times: Vec<Times>,
    pub slopes: [f64; 3],
    /// The greatest ratio of the sums of two sizes of which one is twice the other.
    pub doubling: f64,
}

pub const PARTS: [&str; 3] = ["load, flush", "scan", "delete, write late, compact"];

impl Times {
    pub fn parts(&self) -> [Duration; 3] {
        [self.load, self.scan, self.reclaim]
    }

    fn sum(&self) -> f64 {
        self.parts().iter().sum::<Duration>().as_secs_f64()
    }
}

/// Doubles the rows from 1,000 to at most `most`, once a round; the median of each part counts.
pub fn measure(most: usize, rounds: u32, mut tick: impl FnMut()) -> Growth {
    let sizes: Vec<usize> = sizes(most).collect();
    let mut samples = vec![Vec::new(); sizes.len()];
    for _ in 0..rounds.max(1) {
        for (rows, samples) in sizes.iter().zip(&mut samples) {
            samples.push(grow(*rows));
            tick();
        }
    }
    let times: Vec<Times> = samples.iter().map(|samples| median(samples)).collect();
    let slope = |part: usize| {
        let points = times
            .iter()
            .map(|times| (times.rows as f64, times.parts()[part].as_secs_f64()));
        slope(&points.collect::<Vec<_>>())
    };
    let pairs = times.windows(2).filter(|pair| pair[0].rows >= 2_000);
    let doubling = pairs
        .map(|pair| pair[1].sum() / pair[0].sum())
        .fold(0.0, f64::max);
    Growth {
        slopes: [0, 1, 2].map(slope),
        doubling,
        times,
    }
}

/// 1,000 rows, twice as many, and so on.
pub fn sizes(most: usize) -> impl Iterator<Item = usize> {
    let doubled = iter::successors(Some(1_000), |rows| Some(2 * rows));
    doubled.take_while(move |rows| *rows <= most)
}

fn median(samples: &[Times]) -> Times {
    let part = |part: fn(&Times) -> Duration| {
        let mut times: Vec<Duration> = samples.iter().map(part).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    Times {
        rows: samples[0].rows,
        load: part(|times| times.load),
        scan: part(|times| times.scan),
        reclaim: part(|times| times.reclaim),
    }
}

/// The slope of a straight line through the logarithms, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.max(1e-9).ln()));
    let count = points.len() as f64;
    let mean_x = logs().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance
}

/// Rows of one batch.
const BATCH: usize = 10_000;

fn grow(rows: usize) -> Times {
    let mut log = new_log(Config::bulk_ingest());
    let mut dataset = Dataset::new(rows as u64, 50_000, Lateness::DEFAULT, 42);
    let mut load = Duration::ZERO;
    let (mut first, mut last) = (Ts::MAX, Ts::MIN);
    // Rows are made outside the clock, a batch at a time, so that memory holds them once.
    loop {
        let pairs = dataset.by_ref().take(BATCH).map(|row| (row.ts, row.order));
        let batch: Vec<(Ts, Order)> = pairs.collect();
        if batch.is_empty() {
            break;
        }
        for (ts, _) in &batch {
            first = first.min(*ts);
            last = last.max(*ts);
        }
        load += time(|| write(&mut log, batch));
    }
    load += time(|| log.flush());

    let snapshot = log.snapshot();
    let scan = timed(|| {
        let (mut read, mut amounts) = (0, 0u64);
        for (_, order) in snapshot.range(..) {
            amounts = amounts.wrapping_add(u64::from(order.amount));
            read += 1;
        }
        black_box(amounts);
        read
    });
    assert_eq!(scan.operations, rows as u64);
    let tenth = (last - first) / 10;
    let middle = first + 4 * tenth..first + 5 * tenth;
    let left = snapshot.count(..) - snapshot.count(middle.clone());
    drop(snapshot);

    let late = Dataset::new(rows as u64 / 20, 50_000, Lateness::DEFAULT, 43);
    let late: Vec<(Ts, Order)> = late
        .zip(0..)
        .map(|(row, number)| {
            (
                first + (last - first) / (rows as Ts / 20) * number,
                row.order,
            )
        })
        .collect();
    let added = late.len() as u64;
    let reclaim = time(|| reclaim(&mut log, middle, late));
    assert_eq!(log.stats().delete_intervals, 0);
    finish(log, (left + added) as usize);
    Times {
        rows,
        load,
        scan: scan.elapsed,
        reclaim,
    }
}

fn reclaim(log: &mut MemLog<Order>, range: std::ops::Range<Ts>, late: Vec<(Ts, Order)>) {
    log.delete(range).expect("the range is not empty");
    write(log, late);
    log.flush();
    log.compact();
}

fn time(work: impl FnOnce()) -> Duration {
    let sample = timed(|| {
        work();
        1
    });
    sample.elapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_exponents() {
        let points =
            |power: f64| [1e3, 2e3, 4e3, 8e3].map(|rows: f64| (rows, 3e-9 * rows.powf(power)));
        assert!((slope(&points(1.0)) - 1.0).abs() < 1e-9);
        assert!((slope(&points(1.5)) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn rows_double() {
        let growth = measure(4_000, 1, || {});
        let rows: Vec<_> = growth.times.iter().map(|times| times.rows).collect();
        assert_eq!(rows, [1_000, 2_000, 4_000]);
        assert!(growth.doubling > 0.0);
    }
}
