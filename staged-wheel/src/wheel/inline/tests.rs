//! What tests ask of the inline stage.

use super::*;
use crate::wheel::entry::RecordState;

impl Dense {
    pub(in crate::wheel) fn check_invariants<T>(&self, slab: &Slab<T>) {
        assert_eq!(self.len, slab.live());
        for position in 0..self.len {
            let record = slab.at(self.indices[position]);
            assert_eq!(record.state, RecordState::Dense);
            assert_eq!(record.place as usize, position);
            let link = slab.link(self.indices[position]);
            assert_eq!(link.deadline_ns, self.deadline_ns[position]);
        }
        assert!(
            self.deadline_ns[self.len..]
                .iter()
                .all(|&ns| ns == u64::MAX)
        );
        let min_ns = self.find_min();
        assert!(self.min_ns == min_ns || self.is_stale && self.min_ns < min_ns);
    }
}
