//! Which segments hide so much that they are to be written again.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::Ts;
use crate::segment::Segment;
use crate::segments::{Segments, Slot};
use crate::tombstones::Skyline;
use crate::version::Version;

/// What may be left when a survey's segments are written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goal {
    /// Hidden rows.
    pub rows: usize,
    /// Delete intervals.
    pub intervals: usize,
}

/// What deletes hide in each segment, counted in steps.
#[derive(Debug)]
pub(crate) struct Survey<V> {
    version: Arc<Version<V>>,
    skyline: Arc<Skyline>,
    goal: Goal,
    /// Where it goes on: whether in L0, the segment, and the timestamp there.
    is_l0: bool,
    slot: Slot,
    from: Ts,
    /// Of the segment where it is.
    so_far: Hidden,
    found: Vec<(Hidden, Arc<Segment<V>>)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Hidden {
    rows: usize,
    intervals: usize,
}

impl<V> Survey<V> {
    pub fn new(version: Arc<Version<V>>, skyline: Arc<Skyline>, goal: Goal) -> Self {
        Self {
            version,
            skyline,
            goal,
            is_l0: false,
            slot: 0,
            from: Ts::MIN,
            so_far: Hidden::default(),
            found: Vec::new(),
        }
    }

    fn level(&self) -> &Segments<V> {
        if self.is_l0 {
            &self.version.l0
        } else {
            &self.version.l1
        }
    }

    /// Looks at so many segments and delete intervals, and tells whether it is at the end.
    pub fn step(&mut self, mut budget: usize) -> bool {
        while budget > 0 {
            let Some(segment) = self.level().get(self.slot).map(Arc::clone) else {
                if self.is_l0 {
                    return true;
                }
                (self.is_l0, self.slot) = (true, 0);
                continue;
            };
            budget -= 1;
            let mut next = None;
            for piece in self.skyline.between(self.from, segment.max()) {
                if budget == 0 {
                    next = Some(piece.first.max(self.from));
                    break;
                }
                budget -= 1;
                if piece.seq > segment.watermark() {
                    let rows = segment.rows_within(piece.first, piece.last);
                    self.so_far.rows += rows;
                    self.so_far.intervals += usize::from(rows > 0);
                }
            }
            if let Some(next) = next {
                self.from = next;
                break;
            }
            let hidden = std::mem::take(&mut self.so_far);
            self.slot = self.level().after(self.slot);
            self.from = self
                .level()
                .get(self.slot)
                .map_or(Ts::MIN, |next| next.min());
            if hidden.rows > 0 {
                self.found.push((hidden, segment));
            }
        }
        false
    }

    /// The segments to write again, the fullest last: those that hide most for their rows, as many
    /// as the goal takes.
    pub fn finish(mut self) -> Vec<Arc<Segment<V>>> {
        let by_intervals = self.goal.intervals < usize::MAX;
        self.found.sort_by_cached_key(|(hidden, segment)| {
            let hides = if by_intervals {
                hidden.intervals
            } else {
                hidden.rows
            };
            // In millionths.
            Reverse(hides as u128 * 1_000_000 / segment.rows() as u128)
        });
        let mut left = Hidden::default();
        for (hidden, _) in &self.found {
            left.rows += hidden.rows;
            left.intervals += hidden.intervals;
        }
        let goal = self.goal;
        let mut chosen: Vec<_> = self
            .found
            .into_iter()
            .take_while(|(hidden, _)| {
                let is_over = left.rows > goal.rows || left.intervals > goal.intervals;
                left.rows -= hidden.rows;
                left.intervals -= hidden.intervals;
                is_over
            })
            .map(|(_, segment)| segment)
            .collect();
        chosen.reverse();
        chosen
    }
}
