//! What tests ask of a run.

use super::*;

impl Run {
    pub(in crate::wheel) fn dead_keys(&self) -> usize {
        let waiting: usize = self.chunks.iter().map(|it| it.keys.len() - it.next).sum();
        waiting - self.live
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
        let capacity: usize = self.chunks.iter().map(|it| it.keys.capacity()).sum();
        assert_eq!(self.capacity, capacity);
        let free = self.free.iter().map(|&at| &self.chunks[at as usize].keys);
        let free: usize = free.map(Vec::capacity).sum();
        assert_eq!(self.in_use, capacity - free);
        assert_eq!(live.len(), self.live);
        live.sort_unstable();
        assert!(
            live.windows(2).all(|pair| pair[0] != pair[1]),
            "two keys for a record"
        );
        live.len()
    }
}
