//! How writes are admitted and taken in.

use std::sync::Arc;

use super::Appended;
use super::core::Core;
use super::maintain::count_hidden;
use crate::config::Busy;
use crate::tombstones::Piece;
use crate::version::Sealed;
use crate::write::order_near;
use crate::{Seq, Ts, WriteError, WriteErrorKind};

impl<V: Clone + 'static> Core<V> {
    pub fn next_seq(&self) -> Seq {
        Seq(self.seq.0 + 1)
    }

    /// Whether rows may be written. Under `Flush`, makes space first.
    pub fn admit_batch(
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
            // As many rows as the limit allows, whatever the call writes: no other way would make
            // space.
            self.seal();
            while self.advance_flush(usize::MAX) > 0 {}
        }
        let needed_bytes = batch_bytes.saturating_add(self.unflushed_bytes());
        if needed_bytes > limit_bytes {
            if batch_bytes <= limit_bytes {
                // For the next step to flush: a memtable that the limit keeps from getting full would
                // never be.
                self.seal();
            }
            Err(WriteErrorKind::Full {
                needed_bytes,
                limit_bytes,
            })
        } else {
            Ok(())
        }
    }

    fn unflushed_bytes(&self) -> usize {
        self.unflushed_rows() * self.limits.row_bytes
    }

    pub fn insert_all(&mut self, mut batch: Vec<(Ts, V)>) -> Appended {
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
            pressure: self.after_write(rows),
        }
    }

    /// Tidies up once the rows of a write are in, and tells whether there is pressure to report.
    /// Values may be cloned and dropped here: if one panics, the write stays accepted.
    #[inline]
    pub fn after_write(&mut self, rows: usize) -> bool {
        if self.memtable.is_unsettled(&self.limits) {
            self.settle(rows);
        }
        if self.is_quiet {
            return false;
        }
        self.pay(rows);
        if !self.is_under_pressure() {
            return false;
        }
        self.counters.pressure += 1;
        self.limits.busy != Busy::Silent
    }

    #[cold]
    fn settle(&mut self, rows: usize) {
        let (limits, cut) = (&self.limits, &self.skyline);
        let settled = self.memtable.settle(rows, limits, cut, self.seq);
        if let Some((first, last)) = settled.dropped {
            self.recount_within(first, last);
        }
        if settled.is_full {
            self.seal();
        }
    }

    /// Makes the memtable a sealed one: nothing is sorted but the late head, nothing copied.
    pub fn seal(&mut self) {
        let rows = self.memtable.rows();
        if rows == 0 {
            return;
        }
        // Before anything changes: a value's drop may panic.
        self.cached = None;
        self.wake();
        let lists = self.memtable.seal(&self.limits, self.seq);
        let version = Arc::make_mut(&mut self.version);
        version.sealed.push(Arc::new(Sealed { lists, rows }));
        self.sealed_rows += rows;
        let runs = version.sealed.len();
        self.counters.sealed_runs_max = self.counters.sealed_runs_max.max(runs);
        drop(self.memtable.take_stale());
    }

    /// Deletes from one timestamp to another, both inside.
    pub fn hide(&mut self, first: Ts, last: Ts) -> Seq {
        self.cached = None;
        let seq = self.next_seq();
        self.seq = seq;
        // Dropped at the end: a value's drop may panic.
        let _removed = self.memtable.remove(first, last);
        let _stale = self.memtable.take_stale();
        let piece = Piece {
            first,
            last,
            seq,
            hidden: 0,
        };
        let count = count_hidden(&self.version, &self.memtable);
        if let Some(hidden) = count(&piece) {
            let piece = Piece { hidden, ..piece };
            Arc::make_mut(&mut self.skyline).insert(piece, count);
            self.wake();
        }
        seq
    }

    /// Deletes before a timestamp. Before the least there is none.
    pub fn hide_before(&mut self, ts: Ts) -> Seq {
        if let Some(last) = ts.checked_sub(1) {
            return self.hide(Ts::MIN, last);
        }
        self.cached = None;
        self.seq = self.next_seq();
        self.seq
    }

    pub fn raise_floor(&mut self, ts: Ts) -> Option<Seq> {
        if self.floor.is_some_and(|floor| floor >= ts) {
            return None;
        }
        self.cached = None;
        self.floor = Some(ts);
        Some(self.hide_before(ts))
    }

    pub fn append(&mut self, ts: Ts, value: V) -> Result<Appended, WriteError<V>> {
        if let Err(kind) = self.admit_batch(1, [ts].into_iter()) {
            return Err(WriteError {
                kind,
                rejected: value,
            });
        }
        self.cached = None;
        let first = self.next_seq();
        self.memtable.insert(ts, value, &self.limits, self.seq);
        self.seq = first;
        let pressure = self.after_write(1);
        self.plain_appends = self.count_plain_appends();
        Ok(Appended {
            first,
            rows: 1,
            pressure,
        })
    }

    /// Appends a row that is one of `plain_appends`, or gives its value back.
    #[inline]
    pub fn append_plain(&mut self, ts: Ts, value: V) -> Result<Appended, V> {
        if self.plain_appends == 0 {
            return Err(value);
        }
        self.memtable.push_plain(ts, value)?;
        self.plain_appends -= 1;
        self.seq = self.next_seq();
        Ok(Appended {
            first: self.seq,
            rows: 1,
            pressure: false,
        })
    }

    /// How many rows in order would find nothing due and nothing to report, after a write.
    fn count_plain_appends(&self) -> usize {
        let limits = &*self.limits;
        // What `after_write` would do for each of them.
        let is_due = self.memtable.is_unsettled(limits)
            || (!self.is_quiet && (limits.busy == Busy::Flush || self.is_under_pressure()));
        let is_below = |floor| self.memtable.tail() < floor;
        if is_due || self.floor.is_some_and(is_below) {
            return 0;
        }
        let allowed = limits.memory_limit_bytes.map_or(usize::MAX, |bytes| {
            bytes.saturating_sub(self.unflushed_bytes()) / limits.row_bytes
        });
        self.memtable.plain_rows(limits).min(allowed)
    }
}
