//! Searches in sorted timestamps.
//!
//! A binary search must have loaded one timestamp to know which is the next, so in rows that are
//! not in the cache its last steps wait for one line after the other. The searches here end with
//! loads that do not depend on each other, and with no branch on what they find.

use std::hint::select_unpredictable;

use crate::Ts;

/// Timestamps of a cache line.
const LINE: usize = 8;
/// Of so many, a look at one of each line tells the line, and a look at that line the place.
const FEW: usize = 64;

/// How many of the first timestamps hold. None holds after one that does not.
#[inline]
pub(crate) fn count_while(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    let (mut found, mut rest) = (0, ts);
    while rest.len() > FEW {
        let half = rest.len() / 2;
        let passed = select_unpredictable(holds(rest[half - 1]), half, 0);
        found += passed;
        rest = &rest[passed..passed + (rest.len() - half)];
    }
    let lines = rest
        .chunks_exact(LINE)
        .filter(|line| holds(line[LINE - 1]))
        .count();
    let line = &rest[lines * LINE..rest.len().min((lines + 1) * LINE)];
    found + lines * LINE + line.iter().filter(|ts| holds(**ts)).count()
}

/// As `count_while`, where few are likely to hold: by doubling steps first.
#[inline]
pub(crate) fn gallop(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    let (mut known, mut step) = (0, LINE);
    while step < ts.len() && holds(ts[step]) {
        known = step;
        step *= 2;
    }
    known + count_while(&ts[known..ts.len().min(step)], holds)
}

/// How many of the last timestamps hold, by doubling steps first. None holds before one that does
/// not.
#[inline]
pub(crate) fn gallop_back(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    let (mut known, mut step) = (0, LINE);
    while step < ts.len() && holds(ts[ts.len() - 1 - step]) {
        known = step;
        step *= 2;
    }
    let (start, end) = (ts.len().saturating_sub(step), ts.len() - known);
    ts.len() - start - count_while(&ts[start..end], |ts| !holds(ts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found() {
        for len in (0..100).chain([127, 128, 129, 500, 4_096]) {
            let ts: Vec<Ts> = (0..len).collect();
            for end in (-1..=len.min(140)).chain(len - 70..=len) {
                let expected = ts.iter().filter(|ts| **ts <= end).count();
                assert_eq!(count_while(&ts, |ts| ts <= end), expected);
                assert_eq!(gallop(&ts, |ts| ts <= end), expected);
                assert_eq!(gallop_back(&ts, |ts| ts > end), ts.len() - expected);
            }
        }
    }

    #[test]
    fn equals_are_counted_to_the_last() {
        let ts: Vec<Ts> = (0..300).map(|row| row / 100).collect();
        assert_eq!(count_while(&ts, |ts| ts < 1), 100);
        assert_eq!(count_while(&ts, |ts| ts <= 1), 200);
        assert_eq!(gallop(&ts, |ts| ts <= 1), 200);
        assert_eq!(gallop_back(&ts, |ts| ts >= 1), 200);
    }
}
