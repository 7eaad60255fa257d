//! Which maintenance is due, and what a finished job changes.
//!
//! In this order: a flush; what is no longer needed is dropped; delete intervals over what was
//! written are counted again; compaction. Each in steps, so that a call does no more than its
//! budget. A compaction that a flush overtakes is parked.

use std::sync::Arc;

use super::Progress;
use super::core::Core;
use crate::config::Busy;
use crate::tombstones::{Piece, Skyline};
use crate::version::Version;
use crate::write::{Goal, Job, Memtable, Survey, Target, Urgency, flush_job, pick, rewrite};
use crate::{Seq, Ts};

/// As many idle steps start the compaction of overlap that has not reached a trigger.
const IDLE_STEPS: u32 = 10;
/// Delete intervals start a compaction when there is one for so many rows, and at least the second
/// number of them. Then as many are removed as leave half of the limit: each delete of one row then
/// costs at most twice as many rows written again.
const ROWS_A_DELETE: usize = 32;
const DELETE_INTERVALS: usize = 1024;
/// Rows that a write moves, under `Busy::Flush`, for each of its own: for a flush, so that it is
/// done when the memtable is half full again, and for a compaction at the limit of overlapping
/// segments; in proportion more beyond it, up to so many times.
const FLUSHED_A_ROW: usize = 2;
const COMPACTED_A_ROW: usize = 8;
const COMPACTION_HURRY: usize = 8;
/// Writes move rows in portions of at least so many, or a page: each portion searches its inputs.
const PORTION_ROWS: usize = 1024;

impl<V: Clone + 'static> Core<V> {
    /// Whether as much waits as the configuration allows.
    pub fn is_under_pressure(&self) -> bool {
        self.version.sealed.len() >= self.limits.sealed_runs
            || (self.version.l0.len() >= 2 * self.limits.l0_segments && !self.is_quiet)
    }

    /// Takes a part of what is due, for a write of so many rows.
    pub fn pay(&mut self, written: usize) {
        if self.limits.busy != Busy::Flush {
            return;
        }
        let limit = self.limits.l0_segments;
        let hurry = (self.version.l0.len() / limit).clamp(1, COMPACTION_HURRY);
        let rate = if self.version.sealed.is_empty() {
            COMPACTED_A_ROW * hurry
        } else {
            FLUSHED_A_ROW + COMPACTED_A_ROW * (hurry - 1)
        };
        self.owed_rows = self.owed_rows.saturating_add(written.saturating_mul(rate));
        let portion = PORTION_ROWS.min(self.limits.page_rows);
        while self.owed_rows >= portion {
            let done = self.advance(self.owed_rows, false);
            self.owed_rows = match done {
                0 => 0,
                done => self.owed_rows.saturating_sub(done),
            };
        }
    }

    /// Does a part of what is due, and tells how much, 0 if nothing is: at most `rows` rows and one
    /// page are moved, or as many other things done. `is_idle` if there is time for what no
    /// trigger has asked for.
    pub fn advance(&mut self, rows: usize, is_idle: bool) -> usize {
        let is_done = if is_idle {
            self.is_settled
        } else {
            self.is_quiet
        };
        if is_done {
            return 0;
        }
        let mut done = self.advance_flush(rows);
        if done == 0 {
            done = self.tidy(rows);
        }
        if done == 0 {
            done = self.advance_compaction(rows, is_idle);
        }
        if done == 0 {
            self.is_quiet = true;
            self.is_settled = is_idle;
        }
        done
    }

    /// Something changed: there may be something to do.
    pub fn wake(&mut self) {
        self.is_quiet = false;
        self.is_settled = false;
    }

    /// Moves rows of the oldest sealed memtable.
    pub fn advance_flush(&mut self, rows: usize) -> usize {
        // Out of the log while it runs: if a clone panics the job is dropped, and the next one
        // starts anew.
        let job = self.flush.take().or_else(|| {
            let reserved = self.compaction.as_ref().map(|job| job.span());
            flush_job(&self.version, reserved, self.windows, self.cut()).map(Box::new)
        });
        let Some(job) = job else { return 0 };
        let (moved, job) = self.run(job, rows);
        self.flush = job;
        moved
    }

    /// Drops what is no longer needed, and counts again what deletes hide.
    pub fn tidy(&mut self, rows: usize) -> usize {
        let mut done = self.trash.drop_rows(rows);
        while done < rows
            && let Some((from, last)) = self.recount
        {
            let count = count_hidden(&self.version, &self.memtable);
            let skyline = Arc::make_mut(&mut self.skyline);
            let (next, visited) = skyline.recount(from, last, count);
            done += visited.max(1);
            self.recount = next.map(|next| (next, last));
        }
        done
    }

    fn advance_compaction(&mut self, rows: usize, is_idle: bool) -> usize {
        if let Some(mut survey) = self.survey.take() {
            if survey.step(rows) {
                self.crowded = survey.finish();
            } else {
                self.survey = Some(survey);
            }
            return rows;
        }
        let job = self.compaction.take();
        let Some(job) = job.or_else(|| self.next_compaction(is_idle).map(Box::new)) else {
            // What is hidden is looked for first.
            return usize::from(self.survey.is_some());
        };
        let (moved, job) = self.run(job, rows);
        self.compaction = job;
        moved
    }

    /// Gives the number of rows moved, at least one, and the job if there is more to do.
    fn run(&mut self, mut job: Box<Job<V>>, rows: usize) -> (usize, Option<Box<Job<V>>>) {
        let (moved, is_done) = job.step(rows, &self.limits);
        self.counters.rows_moved += moved as u64;
        if is_done {
            self.publish(*job);
            return (moved.max(1), None);
        }
        (moved.max(1), Some(job))
    }

    fn next_compaction(&mut self, is_idle: bool) -> Option<Job<V>> {
        while let Some(segment) = self.crowded.pop() {
            let job = rewrite(&self.version, segment, self.windows, self.cut());
            if job.is_some() {
                return job;
            }
        }
        if self.is_compaction_requested {
            if let Some(job) = self.pick(Urgency::Full) {
                return Some(job);
            }
            if self.skyline.hidden() > 0 {
                self.start_survey(Goal {
                    rows: 0,
                    intervals: 0,
                });
                return None;
            }
            self.is_compaction_requested = false;
        }
        if (is_idle || self.version.l0.len() >= self.limits.l0_segments)
            && let Some(job) = self.pick(Urgency::Overlap)
        {
            return Some(job);
        }
        if let Some(goal) = self.due_goal() {
            self.start_survey(goal);
        }
        None
    }

    fn pick(&self, urgency: Urgency) -> Option<Job<V>> {
        pick(
            &self.version,
            urgency,
            &self.limits,
            self.windows,
            self.cut(),
        )
    }

    /// The deletes that a job applies, and the last of them.
    fn cut(&self) -> (Arc<Skyline>, Seq) {
        (Arc::clone(&self.skyline), self.seq)
    }

    fn start_survey(&mut self, goal: Goal) {
        let survey = Survey::new(Arc::clone(&self.version), Arc::clone(&self.skyline), goal);
        self.survey = Some(Box::new(survey));
    }

    /// What is to be left of hidden rows and delete intervals, if there are too many.
    fn due_goal(&self) -> Option<Goal> {
        let rows = self.version.segment_rows();
        let hidden = self.skyline.hidden();
        if hidden == 0 {
            return None;
        }
        let limit = (rows / ROWS_A_DELETE).max(DELETE_INTERVALS);
        if self.skyline.hiding() >= limit {
            return Some(Goal {
                rows: usize::MAX,
                intervals: limit / 2,
            });
        }
        let debt = self.limits.delete_debt;
        let most = debt * rows as f64;
        (debt > 0.0 && hidden as f64 >= most).then_some(Goal {
            rows: (most / 2.0) as usize,
            intervals: usize::MAX,
        })
    }

    /// Puts the outputs of a job in the place of its inputs.
    fn publish(&mut self, job: Job<V>) {
        // Before anything changes, and before the version does: a value's drop may panic, and the
        // snapshot would have it copied.
        self.cached = None;
        let (first, last) = job.span();
        let reserved = self.compaction.as_ref().map(|job| job.span());
        let (target, segments) = job.finish();
        let rows: usize = segments.iter().map(|segment| segment.rows()).sum();
        let version = Arc::make_mut(&mut self.version);
        match target {
            Target::Flush => {
                let sealed = version.sealed.remove(0);
                self.sealed_rows -= sealed.rows;
                if let Some(main) = segments.first() {
                    self.windows
                        .adapt(&self.limits, main.rows(), main.min(), main.max());
                }
                for segment in segments {
                    self.counters.promotions += u64::from(version.add(segment, reserved));
                }
                self.counters.rows_flushed += rows as u64;
                self.trash.add_sealed(sealed);
            }
            Target::Compact { l1, l0, to_l0 } => {
                let (kept, moved) = if to_l0 {
                    (segments, Vec::new())
                } else {
                    (Vec::new(), segments)
                };
                if let Some((newest, others)) = l0.split_last() {
                    others.iter().for_each(|it| version.l0.swap(it, []));
                    version.l0.swap(newest, kept);
                }
                let place = match (l1.first(), moved.first()) {
                    (Some(left), _) => version.l1.find(left),
                    (None, Some(first)) => {
                        Some(version.l1.partition_point(|other| other <= first.min()))
                    }
                    (None, None) => None,
                };
                if let Some(start) = place {
                    let end = (0..l1.len()).fold(start, |slot, _| version.l1.after(slot));
                    version.l1.replace(start..end, moved);
                }
                self.counters.promotions += version.promote((first, last));
                self.counters.rows_rewritten += rows as u64;
                self.trash.segments.extend(l1.into_iter().chain(l0));
            }
        }
        self.recount_within(first, last);
        self.wake();
    }

    /// Notes that deletes over a stretch of time may hide other rows than before.
    pub fn recount_within(&mut self, first: Ts, last: Ts) {
        if !self.skyline.is_empty() {
            let (from, to) = self.recount.unwrap_or((first, last));
            self.recount = Some((from.min(first), to.max(last)));
            self.wake();
        }
    }

    pub fn request_compaction(&mut self) {
        self.is_compaction_requested = true;
        self.wake();
    }

    /// One call of `step`.
    pub fn step(&mut self, rows: usize) -> Progress {
        self.memtable.prepare(&self.limits);
        if self.advance(rows.max(1), self.idle_steps >= IDLE_STEPS) > 0 {
            self.idle_steps = 0;
            return Progress::More;
        }
        self.idle_steps = self.idle_steps.saturating_add(1);
        Progress::Idle
    }
}

/// How many rows a delete hides in segments; `None` if it hides none anywhere.
pub(super) fn count_hidden<V>(
    version: &Version<V>,
    memtable: &Memtable<V>,
) -> impl Fn(&Piece) -> Option<usize> {
    move |piece| {
        let hidden = version.rows_under(piece);
        let hides = hidden > 0 || version.hides_sealed(piece) || memtable.hides_any(piece);
        hides.then_some(hidden)
    }
}
