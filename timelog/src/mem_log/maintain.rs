//! Which maintenance is due, and what a finished job changes.

use std::sync::Arc;

use super::MemLog;
use crate::tombstones::Piece;
use crate::version::Version;
use crate::write::{Job, Memtable, Target, Urgency, flush_job, pick};

/// As many idle steps start the compaction of overlap that has not reached a trigger.
const IDLE_STEPS: u32 = 10;
/// As many delete intervals start a compaction of what they hide.
const DELETE_INTERVALS: usize = 1024;

impl<V: Clone + 'static> MemLog<V> {
    pub(super) fn hidden_rows(&self) -> usize {
        self.version
            .segments()
            .map(|segment| segment.hidden_rows(&self.skyline))
            .sum()
    }

    /// What is to be done next, the most urgent first.
    pub(super) fn next_job(&mut self) -> Option<Job<V>> {
        let cut = || (Arc::clone(&self.skyline), self.seq);
        if let Some(job) = flush_job(&self.version, self.windows, cut()) {
            return Some(job);
        }
        let pick = |urgency| pick(&self.version, urgency, &self.limits, self.windows, cut());
        if self.is_compaction_requested {
            if let Some(job) = pick(Urgency::Full) {
                return Some(job);
            }
            self.is_compaction_requested = false;
        }
        let is_overlap_due =
            self.version.l0.len() >= self.limits.l0_segments || self.idle_steps >= IDLE_STEPS;
        let overlap = if is_overlap_due {
            pick(Urgency::Overlap)
        } else {
            None
        };
        let job = overlap.or_else(|| {
            if self.is_debt_due() {
                pick(Urgency::Hidden)
            } else {
                None
            }
        });
        self.is_settled = job.is_none() && is_overlap_due;
        job
    }

    fn is_debt_due(&self) -> bool {
        if self.skyline.len() == 0 {
            return false;
        }
        let rows: usize = self.version.segments().map(|segment| segment.rows()).sum();
        let debt = self.limits.delete_debt;
        self.skyline.len() >= DELETE_INTERVALS
            || (debt > 0.0 && rows > 0 && self.hidden_rows() as f64 >= debt * rows as f64)
    }

    /// Puts the outputs of a job in the place of its inputs.
    pub(super) fn publish(&mut self, job: Job<V>) {
        let (target, segments) = job.finish();
        let rows: usize = segments.iter().map(|segment| segment.rows()).sum();
        let mut version = Version::clone(&self.version);
        match target {
            Target::Flush => {
                version.sealed.remove(0);
                if let Some(main) = segments.first() {
                    self.windows
                        .adapt(&self.limits, main.rows(), main.min(), main.max());
                }
                version.l0.extend(segments);
                self.counters.rows_flushed += rows as u64;
            }
            Target::Compact { l1, l0, to_l0 } => {
                for index in l0.iter().rev() {
                    version.l0.remove(*index);
                }
                if to_l0 {
                    let place = l0.last().expect("outputs in L0 have inputs there") + 1 - l0.len();
                    version.l0.splice(place..place, segments);
                } else if let Some(first) = segments.first().filter(|_| l1.is_empty()) {
                    let place = version
                        .l1
                        .partition_point(|other| other.max() <= first.min());
                    version.l1.splice(place..place, segments);
                } else {
                    version.l1.splice(l1, segments);
                }
                self.counters.rows_rewritten += rows as u64;
            }
        }
        self.counters.promotions += version.promote();
        // Dropped at the end, when everything is in place: a value's drop may panic.
        let _replaced = std::mem::replace(&mut self.version, Arc::new(version));
        let _cached = self.cached.take();
        self.forget_deletes();
    }

    /// Drops the delete intervals that hide nothing any more.
    fn forget_deletes(&mut self) {
        if self.skyline.len() > 0 {
            let (version, memtable) = (&self.version, &self.memtable);
            Arc::make_mut(&mut self.skyline).retain(|piece| hides_any(piece, version, memtable));
        }
    }
}

/// Whether a delete still hides a row that is frozen.
pub(super) fn hides_any<V>(piece: &Piece, version: &Version<V>, memtable: &Memtable<V>) -> bool {
    let mut parts = version
        .parts_within(piece.first, piece.last)
        .chain(memtable.frozen_within(piece.first, piece.last));
    parts.any(|part| part.watermark() < piece.seq && part.rows_within(piece.first, piece.last) > 0)
}
