//! The memory of a queue, which no method tells.

use super::items::BATCH;
use super::*;
use crate::executor::LocalExecutor;

/// A peak leaves nothing behind when its last item has left.
#[test]
fn a_peak_gives_its_memory_back() {
    const PEAK: usize = 1000;
    LocalExecutor::default().run(async {
        let queue = DelayQueue::new();
        for is_removed in [false, true] {
            let keys: Vec<_> = (0..PEAK).map(|n| queue.insert(n, Duration::ZERO)).collect();
            for n in 0..PEAK - 1 {
                assert_eq!(queue.next_expired().await.into_inner(), n);
            }
            assert!(queue.items.borrow().due.capacity() > 0);
            assert!(queue.items.borrow().most == PEAK);
            if is_removed {
                assert_eq!(queue.remove(keys[PEAK - 1]), Some(PEAK - 1));
            } else {
                queue.next_expired().await;
            }
            let items = queue.items.borrow();
            assert_eq!((items.most, items.due.capacity()), (0, 0));
        }
    });
}

/// Items that are found to be due and wait again, over and over, make no list longer.
#[test]
fn resetting_due_items_takes_no_memory() {
    LocalExecutor::default().run(async {
        let queue = DelayQueue::new();
        let keys: Vec<_> = (0..1000).map(|n| queue.insert(n, Duration::ZERO)).collect();
        for _ in 0..100 {
            queue.next_expired().await;
            for &key in &keys {
                queue.reset(key, Duration::ZERO);
            }
            let items = queue.items.borrow();
            assert!(items.due.capacity() <= 2 * BATCH);
            // All but those that came out.
            assert!(items.moved.len() <= items.len());
        }
    });
}
