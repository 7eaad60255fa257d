//! Sets of page numbers, as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers of which neighbours are often in it together. No two ranges touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// The end of each range by its start.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl Ranges {
    /// How many numbers there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back();
        before.is_some_and(|(_, end)| number < *end)
    }

    /// How many of the numbers of `range` there are.
    pub(super) fn count_within(&self, range: Range<u64>) -> u64 {
        let before = self.ranges.range(..=range.start).next_back();
        let first = before.map_or(range.start, |(start, _)| *start);
        let overlaps = self.ranges.range(first..range.end.max(first));
        overlaps
            .map(|(start, end)| {
                (*end)
                    .min(range.end)
                    .saturating_sub((*start).max(range.start))
            })
            .sum()
    }

    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Those that overlap or touch become one with it. The last begins at its end or before.
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back()
            && other_end >= start
        {
            self.ranges.remove(&other);
            self.count -= other_end - other;
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ranges.insert(start, end);
        self.count += end - start;
    }

    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&other, &other_end)) = self.ranges.range(..range.end).next_back()
            && other_end > range.start
        {
            self.ranges.remove(&other);
            self.count -= other_end - other;
            for kept in [other..range.start, range.end..other_end] {
                if !kept.is_empty() {
                    self.ranges.insert(kept.start, kept.end);
                    self.count += kept.end - kept.start;
                }
            }
        }
    }
}
