//! The memory of a queue, which no method tells.

use super::*;
use crate::executor::LocalExecutor;

/// A peak leaves nothing behind when its last item has left.
#[test]
fn a_peak_gives_its_memory_back() {
    const PEAK: usize = 1000;
    let memory = |queue: &DelayQueue<usize>| {
        let items = queue.items.borrow();
        let expired = items.expired.capacity();
        let places = [items.slab.capacity(), items.wakers.capacity(), expired];
        (places, queue.wakes.capacity())
    };
    LocalExecutor::default().run(async {
        let queue = DelayQueue::new();
        for is_removed in [false, true] {
            let keys: Vec<_> = (0..PEAK).map(|n| queue.insert(n, Duration::ZERO)).collect();
            for n in 0..PEAK - 1 {
                assert_eq!(queue.next_expired().await.into_inner(), n);
            }
            let (held, wakes) = memory(&queue);
            assert!(held.iter().all(|&places| places >= PEAK - 1), "{held:?}");
            assert!(wakes > 0);
            if is_removed {
                assert_eq!(queue.remove(keys[PEAK - 1]), Some(PEAK - 1));
            } else {
                queue.next_expired().await;
            }
            assert_eq!(memory(&queue), ([0; 3], 0));
        }
    });
}

/// A queue that is only filled and cleared kept the wakes of what had expired, for ever.
#[test]
fn clearing_expired_items_forgets_their_wakes() {
    LocalExecutor::default().run(async {
        let queue = DelayQueue::new();
        for _ in 0..20 {
            (0..1000).for_each(|n| _ = queue.insert(n, Duration::ZERO));
            crate::timer::sleep(Duration::from_millis(1)).await;
            queue.clear();
            assert_eq!(queue.wakes.capacity(), 0);
            assert_eq!(queue.items.borrow().wakers.capacity(), 0);
        }
        queue.insert(7, Duration::ZERO);
        assert_eq!(queue.next_expired().await.into_inner(), 7);
    });
}
