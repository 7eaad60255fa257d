//! How writes are admitted and taken in.

use std::sync::Arc;

use super::{Appended, MemLog, maintain};
use crate::config::Busy;
use crate::tombstones::Piece;
use crate::version::Sealed;
use crate::write::order_near;
use crate::{Seq, Ts, WriteErrorKind};

impl<V: Clone + 'static> MemLog<V> {
    pub(super) fn next_seq(&self) -> Seq {
        Seq(self.seq.0 + 1)
    }

    pub(super) fn admit(&mut self, ts: &[Ts]) -> Result<(), WriteErrorKind> {
        self.admit_batch(ts.len(), ts.iter().copied())
    }

    /// Whether rows may be written. Under `Flush`, makes space first.
    pub(super) fn admit_batch(
        &mut self,
        rows: usize,
        timestamps: impl Iterator<Item = Ts>,
    ) -> Result<(), WriteErrorKind> {
        if let Some(floor) = self.floor {
            let mut timestamps = timestamps.enumerate();
            if let Some((index, ts)) = timestamps.find(|(_, ts)| *ts < floor) {
                return Err(WriteErrorKind::BelowFloor { index, ts, floor });
            }
        }
        let Some(limit_bytes) = self.limits.memory_limit_bytes else {
            return Ok(());
        };
        let batch_bytes = rows.saturating_mul(self.limits.row_bytes);
        if self.limits.busy == Busy::Flush
            && batch_bytes <= limit_bytes
            && batch_bytes.saturating_add(self.unflushed_bytes()) > limit_bytes
        {
            self.flush();
        }
        let needed_bytes = batch_bytes.saturating_add(self.unflushed_bytes());
        if needed_bytes > limit_bytes {
            Err(WriteErrorKind::Full {
                needed_bytes,
                limit_bytes,
            })
        } else {
            Ok(())
        }
    }

    fn unflushed_bytes(&self) -> usize {
        let sealed: usize = self.version.sealed.iter().map(|sealed| sealed.rows).sum();
        (self.memtable.rows() + sealed) * self.limits.row_bytes
    }

    pub(super) fn insert_all(&mut self, mut batch: Vec<(Ts, V)>) -> Appended {
        let first = self.next_seq();
        let rows = batch.len();
        if rows == 0 {
            return Appended {
                first,
                rows: 0,
                pressure: false,
            };
        }
        self.cached = None;
        if order_near(&mut batch) {
            self.memtable.insert_sorted(batch, &self.limits, self.seq);
        } else {
            for (ts, value) in batch {
                self.memtable.insert(ts, value, &self.limits, self.seq);
            }
        }
        self.seq = Seq(self.seq.0 + rows as u64);
        Appended {
            first,
            rows: rows as u64,
            pressure: self.after_write(),
        }
    }

    /// Tidies up once the rows of a write are in, and tells whether there is pressure to report.
    /// Values may be cloned and dropped here: if one panics, the write stays accepted.
    pub(super) fn after_write(&mut self) -> bool {
        self.memtable.settle(&self.limits, &self.skyline, self.seq);
        if self.memtable.rows() >= self.limits.memtable_rows {
            self.seal();
        }
        if self.version.sealed.len() < self.limits.sealed_runs {
            return false;
        }
        self.counters.pressure += 1;
        match self.limits.busy {
            Busy::Signal => true,
            Busy::Silent => false,
            Busy::Flush => {
                while self.version.sealed.len() >= self.limits.sealed_runs {
                    self.step(usize::MAX);
                }
                true
            }
        }
    }

    /// Makes the memtable a sealed one: nothing is sorted but the late head, nothing copied.
    pub(super) fn seal(&mut self) {
        if self.memtable.rows() == 0 {
            return;
        }
        self.cached = None;
        self.is_settled = false;
        // Before anything changes: a value's drop may panic.
        self.memtable.forget_copies();
        let memtable = self.memtable.take();
        let rows = memtable.rows();
        let lists = memtable.seal(self.seq);
        Arc::make_mut(&mut self.version)
            .sealed
            .push(Arc::new(Sealed { lists, rows }));
        self.counters.sealed_runs_max =
            self.counters.sealed_runs_max.max(self.version.sealed.len());
    }

    /// Deletes from one timestamp to another, both inside.
    pub(super) fn hide(&mut self, first: Ts, last: Ts) -> Seq {
        self.cached = None;
        let seq = self.next_seq();
        self.seq = seq;
        // Dropped at the end: a value's drop may panic.
        let _removed = self.memtable.remove(first, last);
        let piece = Piece { first, last, seq };
        if maintain::hides_any(&piece, &self.version, &self.memtable) {
            Arc::make_mut(&mut self.skyline).insert(piece);
            self.is_settled = false;
        }
        seq
    }
}
