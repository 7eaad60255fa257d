//! The cases of the published Timelog, another project, and some more.
//!
//! ```text
//! cargo bench -p timelog --bench cases                               all of them
//! cargo bench -p timelog --bench cases -- 'A*' B4 --rounds 20
//! ```
//!
//! A case checks its results in each round. `--check` runs each of them once, for that alone.

#![forbid(unsafe_code)]

mod analytics;
mod dataset;
mod fixture;
mod latency;
mod mixed;
mod reads;
mod writes;

use clap::Parser;
use fixture::{Fixture, Form, Sample};
use support::machine;
use support::numbers::{COUNTS, nanoseconds, scaled};
use support::quantiles::{Samples, Spread};
use support::tables::Table;

/// The case, its forms and what it does; then rows or operations a second of version 0.4.5, with
/// another machine, language and timing, and of its Python package 1.3.0 on a machine like ours,
/// the better end where it is a range. K1 and K1B have p50 and p99 in nanoseconds there.
const CASES: &str = "
A0       | engine | load 50,000 parsed rows by 10,000                              | 8.08e6  | 3.8e6
A0       | e2e    | parse; load; both: rows over the sum                           | 16.6e3  | 229e3
A0-parse | e2e    | parse 50,000 rows alone                                        | 38e3    | 216e3
A1       | both   | `append` each of 10,000 rows, bulk                             | 39e3    | 186e3
A2       | both   | `extend` by 10,000, bulk, 5 % late                             | 37.4e3  | 164e3
A2_less  | both   | same, 20 % late                                                | 38.7e3  | 166e3
A2B      | both   | same, streaming, steps between, 5 % late                       | 36e3    | 132e3
A2B_less | both   | same, 20 % late                                                | 37.5e3  | 157e3
A3       | both   | `append` each of 50,000, streaming, steps between              | 42.1e3  | 177e3
A4       | both   | 20,000 rows shuffled, by 5,000                                 | 37.3e3  | 168e3
A5       | both   | `append` each of 20,000 under pressure                         | 40.6e3  | 198e3
A6       | both   | 20,000 rows of each file by 10,000                             | 41.2e3  | 197e3
D1       | both   | load 50,000, delete five seconds                               | 38.8e3  | 189e3
D2       | both   | load 50,000, delete the first 30 s                             | 35.7e3  | 192e3
D3       | both   | load 10,000, delete at one timestamp                           | 36.5e3  | 185e3
D4       | both   | load 50,000, delete two ranges, read                           | 35.9e3  | 148e3
E1       | both   | load 50,000, flush                                             | 37.3e3  | 190e3
E2       | both   | five times 10,000 rows and a flush, then compact               | 28.4e3  | 194e3
E3       | both   | `append` each of 50,000, steps between                         | 34.2e3  | 164e3
E4       | both   | 20,000 rows, maintenance stopped and started, 20,000           | 38.6e3  | 187e3
B1       | engine | iterate the first second                                       | 976e3   | 13e6
B2       | engine | iterate from the 1,000th on                                    | 681e3   | 9.3e6
B3       | engine | iterate up to 60 s                                             | 776e3   | 10.3e6
B4       | engine | iterate all                                                    | 1.07e6  | 10.9e6
B5       | both   | `at` every 100th timestamp; e2e: with the scan that picks them | 9.1e3   | 66e3
B6       | engine | 1,000 adjacent windows of 1 µs                                 | 158e3   | 839e3
B7       | engine | `count(..)`, a row appended between calls                      | -       | 249e3
B8       | engine | `remaining()` of a fresh range of 1 s                          | -       | 123e3
C1       | engine | ten windows of 1 s, a query each, iterated                     | 1.63e6  | 10.3e6
C1-count | engine | same windows, counted                                          | -       | -
C1B      | engine | same in one pass, a bucket for each row                        | 276e3   | 4.6e6
C2       | engine | BUY and SELL counts, 60 s                                      | 836e3   | 6.2e6
C3       | engine | mean price of FILLED by amount, 300 s                          | 636e3   | 5e6
C4       | engine | counts by status, 60 s                                         | 802e3   | 5.7e6
C5       | engine | count by ticker, the first five                                | 473e3   | 3.9e6
C6       | engine | ask − bid where present: mean, least, greatest                 | 489e3   | 4.4e6
C7       | engine | sum of the commissions                                         | 729e3   | 6.3e6
C8       | engine | gaps over 10 s by size                                         | 418e3   | 3.1e6
F1       | engine | spans of 60 s: lengths                                         | 103.9e6 | 2.1e9
F1-summed| engine | same, every timestamp summed                                   | 103.9e6 | 2.1e9
F2       | engine | spans of 10 s: first and last                                  | 302.5e6 | 2.2e9
F2-summed| engine | same, every timestamp summed                                   | 302.5e6 | 2.2e9
F3       | engine | each row's value in spans of 10 s: set of tickers              | 8.73e6  | 8.8e6
F4       | engine | first span: gaps and their mean                                | 12.9e6  | 88.5e6
F5       | engine | least, greatest, mean, deviation of timestamps                 | 28.6e6  | 134e6
G1       | engine | `next_batch(1000)`                                             | 792e3   | 10.2e6
G2       | engine | open, iterate, drop                                            | 912e3   | 8.9e6
G3       | engine | stop after 10,000                                              | 938e3   | 8.7e6
G4       | engine | five open iterators of 10 s, in turn                           | 1.62e6  | 8.9e6
H1       | engine | rows from order 1's OPEN to its FILLED                         | 415e3   | 344e3
H2       | engine | replay 60 s, time never goes back                              | 871e3   | 8e6
H3       | engine | sixty windows of 1 s, those above twice the mean               | 1.55e6  | 8.4e6
H3B      | engine | same in one pass                                               | 302e3   | 3.4e6
H4       | both   | `at` every 1,000th timestamp, rows copied; e2e: with the scan  | 974     | 6e3
I1       | engine | write 10,000 rows, read them; memtable of 32 MiB               | 118e3   | 505e3
I2       | engine | 1 s from segments, resident                                    | 660e3   | 11.9e6
I3       | engine | 1,000 rows from the future in the memtable, iterate all        | 552e3   | 9.7e6
J1       | engine | windows of 100, 1k, 5k, 10k rows: passed = returned            | 158e3   | 1.1e6
J2       | engine | load and scan of 1k to 16k rows                                | 114e3   | 792e3
J3       | engine | same from 2k to 16k, then delete and compact                   | 67.9e3  | 408e3
K1       | times  | `append` each, steps between, memtable 64 KiB, two runs        | 1300 2800 | 267 524
K1B      | times  | same, a flush each 10,000, a compaction each five flushes      | 1300 2900 | 267 399
K2       | engine | 20 × (write 1,000, read them), unflushed                       | 147e3   | 755e3
K3       | engine | 15 × (write 1,000, flush, read those of three rounds ago)      | 146e3   | 776e3
K4       | engine | two logs: read, delete, read, flush, compact, read             | -       | 362e3
K5       | engine | sixteen configurations, the last second read after each batch  | -       | 121e3
L1       | engine | iterate all; overlap, deletes, memtable                        | -       | -
L2       | engine | `at` every 100th timestamp, same                               | -       | -
L3       | engine | count of 1,000 ranges of 1 s, same                             | -       | -
L4       | engine | windows of 100 ms: count, sum, least, greatest, last           | -       | -";

/// The cases that were published.
const PUBLISHED: &str = "A0 A1 A2 A2_less A2B A2B_less A3 A4 A5 A6 B1 B2 B3 B4 B5 B6 C1 C1B C2 C3 C4 \
    C5 C6 C7 C8 D1 D2 D3 D4 E1 E2 E3 E4 F1 F2 F3 F4 F5 G1 G2 G3 G4 H1 H2 H3 H3B H4 I1 I2 I3 J1 J2 J3 \
    K1 K1B K2 K3";

#[derive(Parser)]
struct Options {
    /// Cases to run; `A*` names all that begin with A. All by default.
    cases: Vec<String>,
    /// Measured rounds, after three that are not.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Each case runs once, and nothing is measured.
    #[arg(long)]
    check: bool,
    /// What cargo passes to a bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A case in one form.
struct Case {
    id: &'static str,
    what: &'static str,
    /// None if single appends are timed.
    form: Option<Form>,
    /// Of the two versions, p50 and p99 if single appends are timed.
    others: [Vec<f64>; 2],
}

fn cases() -> impl Iterator<Item = Case> {
    CASES.trim().lines().flat_map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [id, forms, what, published, newer] = cells[..] else {
            unreachable!("five columns: {line}");
        };
        let numbers = |cell: &str| cell.split(' ').filter_map(|it| it.parse().ok()).collect();
        let forms = match forms {
            "engine" => vec![Some(Form::Engine)],
            "e2e" => vec![Some(Form::E2e)],
            "both" => vec![Some(Form::Engine), Some(Form::E2e)],
            "times" => vec![None],
            _ => unreachable!("a form: {line}"),
        };
        forms.into_iter().map(move |form| Case {
            id,
            what,
            form,
            others: [numbers(published), numbers(newer)],
        })
    })
}

/// Operations and nanoseconds for each of them, or what is told of single appends.
fn round(fixture: &Fixture, case: &Case) -> (usize, Vec<f64>) {
    let Some(form) = case.form else {
        return (latency::APPENDS, latency::round(case.id).into());
    };
    let run = match case.id.as_bytes()[0] {
        b'A' | b'D' | b'E' => writes::run,
        b'C' | b'H' => analytics::run,
        b'I' | b'J' | b'K' => mixed::run,
        _ => reads::run,
    };
    let Sample {
        operations,
        elapsed,
    } = run(case.id, fixture, form);
    (
        operations,
        vec![elapsed.as_nanos() as f64 / operations as f64],
    )
}

/// A row of what is printed.
struct Line {
    case: String,
    form: &'static str,
    what: &'static str,
    operations: usize,
    ns: Spread,
    /// Nanoseconds, too.
    others: [Option<f64>; 2],
}

/// Each round runs every case once, so that noise meets all of them alike.
fn measure(fixture: &Fixture, cases: &[Case], rounds: u32) -> Vec<Line> {
    const WARM_UPS: u32 = 3;
    let mut measured = vec![(0, Vec::new()); cases.len()];
    for number in 0..WARM_UPS + rounds {
        for (case, (operations, rounds)) in cases.iter().zip(&mut measured) {
            let (done, figures) = round(fixture, case);
            if number >= WARM_UPS {
                *operations = done;
                rounds.push(figures);
            }
        }
    }
    let measured = cases.iter().zip(measured);
    let lines = measured.flat_map(|(case, (operations, rounds))| {
        (0..rounds[0].len()).map(move |figure| {
            let samples: Samples = rounds.iter().map(|round| round[figure]).collect();
            let of_others = case.others.each_ref();
            Line {
                case: match case.form {
                    Some(_) => case.id.to_owned(),
                    None => format!("{} {}", case.id, latency::FIGURES[figure]),
                },
                form: match case.form {
                    Some(Form::E2e) => "e2e",
                    _ => "engine",
                },
                what: case.what,
                operations,
                ns: samples.spread().expect("there is a round"),
                others: of_others.map(|others| match (case.form, others.get(figure)) {
                    (Some(_), rate) => rate.map(|rate| 1e9 / rate),
                    (None, ns) => ns.copied(),
                }),
            }
        })
    });
    lines.collect()
}

fn table(lines: &[Line]) -> String {
    let titles = [
        "case",
        "form",
        "what",
        "operations",
        "each",
        "least",
        "greatest",
        "a second",
        "0.4.5",
        "1.3.0",
    ];
    let mut table = Table::new(titles).left(1).left(2);
    for line in lines {
        let Spread { min, median, max } = line.ns;
        let is_rate = !line.case.contains(' ');
        let rate = |ns: f64| match is_rate {
            true => scaled(1e9 / ns, &COUNTS),
            false => nanoseconds(ns),
        };
        let other = |ns: Option<f64>| ns.map_or("–".to_owned(), rate);
        table.push([
            line.case.clone(),
            line.form.to_owned(),
            line.what.to_owned(),
            line.operations.to_string(),
            nanoseconds(median),
            nanoseconds(min),
            nanoseconds(max),
            other(Some(median).filter(|_| is_rate)),
            other(line.others[0]),
            other(line.others[1]),
        ]);
    }
    table.terminal()
}

/// Every case gives right results, which each asserts, and none is missing.
fn check(fixture: &Fixture) {
    let cases: Vec<_> = cases().collect();
    for case in &cases {
        let (operations, figures) = round(fixture, case);
        assert!(operations > 0 && !figures.is_empty(), "{}", case.id);
    }
    let published: Vec<_> = PUBLISHED.split_whitespace().collect();
    assert_eq!(published.len(), 57);
    for id in published {
        assert!(cases.iter().any(|case| case.id == id), "{id} is missing");
    }
}

fn main() {
    let options = Options::parse();
    let fixture = Fixture::new().expect("temporary files can be written");
    if options.check {
        return check(&fixture);
    }
    let is_chosen = |case: &Case| {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => case.id.starts_with(start),
            None => case.id == pattern,
        };
        options.cases.is_empty() || options.cases.iter().any(matches)
    };
    let chosen: Vec<_> = cases().filter(is_chosen).collect();
    assert!(!chosen.is_empty(), "no case has that name");
    let load = machine::load();
    let lines = measure(&fixture, &chosen, options.rounds);
    let (machine, after) = (machine::describe(), machine::load());
    println!("{machine}; load averages before {load}, after {after}\n");
    print!("{}", table(&lines));
}
