//! What tests ask of a queue.

use crate::wheel::{Stage, StagedWheel};

impl<T> StagedWheel<T> {
    #[cfg(all(test, not(small_wheel)))]
    pub(crate) fn resident_pages(&self) -> usize {
        self.memory.resident_pages()
    }

    pub(crate) fn set_moves_per_poll(&mut self, moves: usize) {
        if let Stage::Wheel(wheel) = &mut self.stage {
            wheel.set_moves_per_poll(moves);
        }
    }

    pub(crate) fn dead_keys(&self) -> usize {
        match &self.stage {
            Stage::Wheel(wheel) => wheel.dead_keys(),
            _ => 0,
        }
    }

    /// Brings the free records up to `generation`, and those to come on their pages.
    pub(crate) fn age(&mut self, generation: u32) {
        self.memory.age(generation);
    }

    /// Counts so many timers that were armed and are gone.
    pub(crate) fn skip_arms(&mut self, arms: u64) {
        self.seq += arms;
    }

    /// Timers that have left the levels for the run.
    #[cfg(test)]
    pub(crate) fn gathered(&self) -> usize {
        match &self.stage {
            Stage::Wheel(wheel) => wheel.gathered(),
            _ => 0,
        }
    }

    /// Records that the latest poll of the wheel has moved or gathered.
    #[cfg(test)]
    pub(crate) fn moves_of_last_poll(&self) -> usize {
        match &self.stage {
            Stage::Wheel(wheel) => wheel.moves_of_last_poll(),
            _ => 0,
        }
    }

    pub(crate) fn check_invariants(&self) {
        self.memory.slab.check_invariants();
        match &self.stage {
            Stage::Unused => assert!(self.is_empty()),
            Stage::Inline(dense) => dense.check_invariants(&self.memory.slab),
            Stage::Wheel(wheel) => wheel.check_invariants(&self.memory.slab),
        }
    }
}
