//! Operations that wait to be pushed to a ring.

#![allow(unsafe_code)]

use std::collections::VecDeque;

use slab::Slab;

use super::super::user_data::OpKey;
use super::record::{Phase, Record, lookup};
use crate::ring::{QueueFull, Ring};

/// What waits to be pushed to the ring.
#[derive(Default)]
pub(super) struct Backlog {
    /// In order. Unbounded: `ring_depth` bounds only what the kernel's queue holds at once. May
    /// name records that are gone.
    pub(super) keys: VecDeque<OpKey>,
    /// Records in the phases `Queued` and `QueuedDetached`: those that the keys are for.
    pub(super) queued: usize,
}

impl Backlog {
    pub(super) fn add(&mut self, key: OpKey) {
        self.keys.push_back(key);
        self.queued += 1;
    }

    /// One that waited was given up. Its key is left behind, as it may be anywhere in the line; but
    /// a line in which none waits any more is no reason to enter the kernel, and does not grow.
    pub(super) fn forget(&mut self) {
        self.queued -= 1;
        if self.queued == 0 {
            self.keys.clear();
        }
    }

    /// Pushes the operations, until all are pushed or the ring is full.
    pub(super) fn flush(
        &mut self,
        records: &mut Slab<Record>,
        ring: &Ring,
    ) -> Result<(), QueueFull> {
        while let Some(&key) = self.keys.front() {
            if let Some(record) = lookup(records, key)
                && let Some(next) = match record.phase {
                    Phase::Queued => Some(Phase::Submitted),
                    Phase::QueuedDetached => Some(Phase::Detached),
                    Phase::Submitted | Phase::Detached | Phase::Completed => None,
                }
            {
                let submission = record.op.submission().with_user_data(key.user_data());
                // SAFETY: what the submission borrows from `record.op` stays borrowed: the record
                // leaves the table only when the last completion for `key` has been
                // reaped (module head), and until then the operation is neither
                // moved nor looked at (`StoredOp`).
                unsafe { ring.push(&submission) }?;
                record.phase = next;
                if let Some(counter) = &mut record.counter {
                    counter.handed_over();
                }
                self.queued -= 1;
            }
            self.keys.pop_front();
        }
        Ok(())
    }
}
