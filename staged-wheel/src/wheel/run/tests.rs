//! What tests ask of a run.

use super::*;

impl Run {
    pub(in crate::wheel) fn dead_keys(&self) -> usize {
        let waiting: usize = self.chunks.iter().map(|it| it.keys.len() - it.next).sum();
        // A chunk that has no other keys is as good as one.
        let is_empty = |at: u32| self.live > 0 && self.chunks[at as usize].live == 0;
        let empty = self.heads.iter().filter(|head| is_empty(head.0.1));
        waiting - self.live + empty.count()
    }

    /// Asserts the invariants and returns the live keys.
    pub(in crate::wheel) fn check_invariants<T>(&self, slab: &Slab<T>) -> usize {
        let mut live = Vec::new();
        let mut has_head = vec![false; self.chunks.len()];
        for &Reverse((head, at)) in &self.heads {
            let is_second = std::mem::replace(&mut has_head[at as usize], true);
            assert!(!is_second, "two heads for a chunk");
            let chunk = &self.chunks[at as usize];
            match chunk.bucket_ns {
                Some(_) => assert_eq!(chunk.next, 0),
                None => assert!(chunk.keys.is_sorted()),
            }
            let keys = &chunk.keys[chunk.next..];
            assert!(keys.iter().all(|&key| head <= key));
            let held = live.len();
            for key in keys.iter().filter(|key| is_current(slab, key)) {
                let link = slab.link(key.index);
                assert_eq!((link.deadline_ns, link.next), (key.deadline_ns, at));
                live.push(key.index);
            }
            assert_eq!(live.len() - held, chunk.live);
        }
        for &at in &self.free {
            let chunk = &self.chunks[at as usize];
            assert!(chunk.keys.is_empty() && chunk.next == 0 && chunk.live == 0);
            assert_eq!(chunk.bucket_ns, None);
        }
        assert_eq!(self.heads.len() + self.free.len(), self.chunks.len());
        let held = self.chunks.iter().filter(|it| it.keys.capacity() > 0);
        assert_eq!(held.count(), self.held);
        assert_eq!(live.len(), self.live);
        live.sort_unstable();
        assert!(
            live.windows(2).all(|pair| pair[0] != pair[1]),
            "two keys for a record"
        );
        live.len()
    }
}
