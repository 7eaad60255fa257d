//! What tests ask of the heap.

use super::*;

impl NearHeap {
    pub(in crate::wheel) fn dead_keys(&self) -> usize {
        self.stale
    }

    /// Asserts the invariant and returns the live keys.
    pub(in crate::wheel) fn check_invariants<T>(&self, slab: &Slab<T>) -> usize {
        let mut live = Vec::new();
        for Reverse(key) in &self.keys {
            if slab.is_current(key.index, key.seq, RecordState::InHeap) {
                assert_eq!(slab.link(key.index).deadline_ns, key.deadline_ns);
                live.push(key.index);
            }
        }
        assert_eq!(live.len(), self.live());
        live.sort_unstable();
        assert!(
            live.windows(2).all(|pair| pair[0] != pair[1]),
            "two keys for a record"
        );
        live.len()
    }
}
