//! Searches in sorted timestamps.
//!
//! A binary search must have loaded one timestamp to know which is the next, so in rows that are
//! not in the cache its last steps wait for one line after the other. The searches here end with
//! loads that do not depend on each other, and with no branch on what they find.

use std::hint::select_unpredictable;
use std::ops::Range;

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
    let (lines, last) = rest.as_chunks::<LINE>();
    let passed = lines.iter().map(|line| usize::from(holds(line[LINE - 1])));
    let passed: usize = passed.sum();
    let in_line: usize = match lines.get(passed) {
        // Of a known length, without a loop.
        Some(line) => line.iter().map(|ts| usize::from(holds(*ts))).sum(),
        None => last.iter().map(|ts| usize::from(holds(*ts))).sum(),
    };
    found + passed * LINE + in_line
}

/// Two searches at once, level by level: neither waits for what the other loads.
#[inline]
pub(crate) fn count_both(
    (a, a_holds): (&[Ts], impl Fn(Ts) -> bool),
    (b, b_holds): (&[Ts], impl Fn(Ts) -> bool),
) -> (usize, usize) {
    let (mut a_found, mut a) = (0, a);
    let (mut b_found, mut b) = (0, b);
    while a.len() > FEW && b.len() > FEW {
        let (a_half, b_half) = (a.len() / 2, b.len() / 2);
        let a_passed = select_unpredictable(a_holds(a[a_half - 1]), a_half, 0);
        let b_passed = select_unpredictable(b_holds(b[b_half - 1]), b_half, 0);
        a_found += a_passed;
        b_found += b_passed;
        a = &a[a_passed..a_passed + (a.len() - a_half)];
        b = &b[b_passed..b_passed + (b.len() - b_half)];
    }
    (
        a_found + count_while(a, a_holds),
        b_found + count_while(b, b_holds),
    )
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

/// Rows from one mark to the next.
pub(crate) const MARK_ROWS: usize = 64;

/// Sorted timestamps of a page with its marks: the first of every `MARK_ROWS`, side by side, or
/// none. A search by marks ends in one block of rows that may not be in the cache; without them it
/// meets several, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marked<'a> {
    pub ts: &'a [Ts],
    pub marks: &'a [Ts],
}

impl Marked<'_> {
    /// The end of those rows that hold for the first, and of those that hold for the second: they are
    /// as many or more. Neither search in rows waits for the other.
    #[inline]
    pub fn ends_of(
        self,
        rows: Range<usize>,
        first: impl Fn(Ts) -> bool,
        second: impl Fn(Ts) -> bool,
    ) -> (usize, usize) {
        if self.marks.is_empty() || rows.is_empty() {
            let end = rows.start + gallop(&self.ts[rows.clone()], first);
            return (end, end + gallop(&self.ts[end..rows.end], second));
        }
        // The blocks that begin after the first of the rows.
        let next = rows.start / MARK_ROWS + 1;
        let marks = &self.marks[next..rows.end.div_ceil(MARK_ROWS)];
        let passed = gallop(marks, &first);
        let also_passed = passed + gallop(&marks[passed..], &second);
        let in_block = |passed: usize| {
            let block = next - 1 + passed;
            rows.start.max(block * MARK_ROWS)..rows.end.min((block + 1) * MARK_ROWS)
        };
        let (a, b) = (in_block(passed), in_block(also_passed));
        (
            a.start + count_while(&self.ts[a], first),
            b.start + count_while(&self.ts[b], second),
        )
    }

    /// The start of those rows that hold. None holds before one that does not.
    pub fn start_of(self, rows: Range<usize>, holds: impl Fn(Ts) -> bool) -> usize {
        if self.marks.is_empty() || rows.is_empty() {
            return rows.end - gallop_back(&self.ts[rows], holds);
        }
        // The blocks that begin in the rows.
        let (first, last) = (rows.start.div_ceil(MARK_ROWS), rows.end.div_ceil(MARK_ROWS));
        let block = last - gallop_back(&self.marks[first..last], &holds);
        let start = rows.start.max(block.saturating_sub(1) * MARK_ROWS);
        let end = rows.end.min(block * MARK_ROWS);
        start + count_while(&self.ts[start..end], |ts| !holds(ts))
    }
}

/// As `gallop`, after a look at the second and the last.
#[inline]
pub fn all_or_gallop(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    // Sources that interleave give one row at a time.
    if ts.get(1).is_some_and(|second| !holds(*second)) {
        return ts.first().map_or(0, |first| usize::from(holds(*first)));
    }
    if ts.last().is_none_or(|last| holds(*last)) {
        ts.len()
    } else {
        gallop(ts, holds)
    }
}

/// As `gallop_back`, after a look at the last but one and the first.
#[inline]
pub fn all_or_gallop_back(ts: &[Ts], holds: impl Fn(Ts) -> bool) -> usize {
    if let [.., before, last] = ts
        && !holds(*before)
    {
        return usize::from(holds(*last));
    }
    if ts.first().is_none_or(|first| holds(*first)) {
        ts.len()
    } else {
        gallop_back(ts, holds)
    }
}

/// Whether a row comes before the first of another source, which wins among equals unless this is
/// inclusive.
#[inline]
pub fn is_before(ts: Ts, other: Ts, is_inclusive: bool) -> bool {
    ts < other || (is_inclusive && ts == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With marks and without, from any row to any.
    #[test]
    fn stretches_of_a_page_end_where_they_should() {
        for len in [1, 63, 64, 65, 200] {
            let ts: Vec<Ts> = (0..len).map(|row| row / 3).collect();
            let marks: Vec<Ts> = ts.iter().copied().step_by(MARK_ROWS).collect();
            let rows = ts.len();
            for (start, end) in [0, 1, 62, 63, 64, 65, 127, 128, 129, 199, 200]
                .into_iter()
                .flat_map(|start| [start, start + 1, rows].map(|end| (start, end)))
                .filter(|(start, end)| start <= end && *end <= rows)
            {
                for wanted in -1..=len / 3 + 1 {
                    let count = ts[start..end].iter().filter(|ts| **ts <= wanted).count();
                    for marks in [&marks[..], &[]] {
                        let page = Marked { ts: &ts, marks };
                        for width in [0, 1, 30] {
                            let hidden = wanted + width;
                            let count_hidden = ts[start..end].iter().filter(|ts| **ts <= hidden);
                            let ends =
                                page.ends_of(start..end, |ts| ts <= wanted, |ts| ts <= hidden);
                            assert_eq!(ends, (start + count, start + count_hidden.count()));
                        }
                        assert_eq!(page.start_of(start..end, |ts| ts > wanted), start + count);
                    }
                }
            }
        }
    }

    /// Each timestamp is there three times.
    #[test]
    fn every_place_is_found() {
        let all: Vec<Ts> = (0..4_096).map(|row| row / 3).collect();
        for len in (0..100).chain([127, 128, 129, 500, 4_096]) {
            let ts = &all[..len];
            let last = len as Ts / 3;
            for end in (-1..=last.min(50)).chain(last - 25..=last) {
                let expected = ts.iter().filter(|ts| **ts <= end).count();
                assert_eq!(count_while(ts, |ts| ts <= end), expected);
                assert_eq!(gallop(ts, |ts| ts <= end), expected);
                assert_eq!(all_or_gallop(ts, |ts| ts <= end), expected);
                let after = len - expected;
                assert_eq!(gallop_back(ts, |ts| ts > end), after);
                assert_eq!(all_or_gallop_back(ts, |ts| ts > end), after);
                for other in [&all[..5], &all[..64], &all[..200]] {
                    let passed = other.iter().filter(|ts| **ts < 7).count();
                    let found = count_both((ts, |ts| ts <= end), (other, |ts| ts < 7));
                    assert_eq!(found, (expected, passed));
                }
            }
        }
    }
}
