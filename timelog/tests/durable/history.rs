//! Operations that follow from their number, so that another process knows what must be there.

use timelog::Ts;
use timelog::durable::{Commit, Log};

pub type Value = [u64; 2];

fn row(number: u64) -> (Ts, Value) {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let late = if mixed.is_multiple_of(7) {
        mixed >> 54
    } else {
        0
    };
    (number as Ts * 10 - late as Ts, [number, !number])
}

fn deleted(number: u64) -> Option<std::ops::RangeInclusive<Ts>> {
    let start = number as Ts * 10 - 400;
    number.is_multiple_of(50).then_some(start..=start + 90)
}

/// Does the next operation.
pub fn act(log: &Log<Value>) -> Commit {
    let number = log.seq().0 + 1;
    match deleted(number) {
        Some(range) => log.delete(range).expect("it is open"),
        None => {
            let (ts, value) = row(number);
            log.append(ts, value).expect("it is open")
        }
    }
}

/// The rows after so many operations.
pub fn rows_at(seq: u64) -> Vec<(Ts, Value)> {
    let mut rows = Vec::new();
    for number in 1..=seq {
        match deleted(number) {
            // Those that it hides came not long before.
            Some(range) => {
                let start = rows.len().saturating_sub(2_000);
                let recent = rows.split_off(start);
                rows.extend(
                    recent
                        .into_iter()
                        .filter(|row: &(Ts, Value)| !range.contains(&row.0)),
                );
            }
            None => rows.push(row(number)),
        }
    }
    rows.sort_by_key(|row| row.0);
    rows
}

pub fn rows_of(log: &Log<Value>) -> Vec<(Ts, Value)> {
    let snapshot = log.snapshot();
    snapshot.range(..).map(|(ts, value)| (ts, *value)).collect()
}
