//! What tests ask of the records.

use super::*;
#[cfg(all(test, not(small_wheel)))]
use crate::wheel::entry::{Link, RecordState, TimerHandle};

impl<T> ReclaimingSlab<T> {
    /// Brings the free records up to `generation`, and those to come on their pages.
    pub(in crate::wheel) fn age(&mut self, generation: u32) {
        for page in 0..self.slab.table_len() {
            self.slab.age(page, generation);
        }
    }
}

// For tests of pages of the usual size.
#[cfg(all(test, not(small_wheel)))]
impl<T> ReclaimingSlab<T> {
    pub(in crate::wheel) fn resident_pages(&self) -> usize {
        self.slab.resident_pages()
    }

    pub(in crate::wheel) fn insert(
        &mut self,
        deadline_ns: u64,
        seq: u64,
        payload: T,
    ) -> TimerHandle {
        self.slab.take(
            seq,
            payload,
            0,
            RecordState::Parked,
            Link::alone(deadline_ns),
        )
    }

    pub(in crate::wheel) fn release(&mut self, index: u32) -> T {
        self.slab.release(index)
    }

    pub(in crate::wheel) fn payload_mut(&mut self, handle: TimerHandle) -> Option<&mut T> {
        let index = self.slab.find(handle)?;
        self.slab.at_mut(index).payload.as_mut()
    }

    pub(in crate::wheel) fn check_invariants(&self) {
        self.slab.check_invariants();
    }
}
