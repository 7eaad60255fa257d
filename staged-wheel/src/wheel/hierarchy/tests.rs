//! What tests ask of a wheel.

use super::*;

impl Wheel {
    pub(in crate::wheel) fn set_moves_per_poll(&mut self, moves: usize) {
        self.moves_per_poll = moves;
    }

    #[cfg(test)]
    pub(in crate::wheel) fn gathered(&self) -> usize {
        self.tick.run.live()
    }

    #[cfg(test)]
    pub(in crate::wheel) fn moves_of_last_poll(&self) -> usize {
        self.moves_of_last_poll
    }

    pub(in crate::wheel) fn dead_keys(&self) -> usize {
        self.tick.dead_keys()
    }

    pub(in crate::wheel) fn check_invariants<T>(&self, slab: &Slab<T>) {
        let listed = self.levels.check_invariants(slab, self.cursor);
        if self.next_ns != UNKNOWN && self.levels.active & 1 == 1 {
            let first = self.levels.first_slot(0, self.cursor);
            assert!(Levels::start(first) >= Tick::of(self.next_ns));
        }
        let near = self.tick.check_invariants(slab);
        assert_eq!(listed + near + slab.count(RecordState::Parked), slab.live());
    }
}
