//! How much memory an empty queue keeps.

#![forbid(unsafe_code)]

use std::collections::VecDeque;

/// A queue that has taken more gives it back when it becomes empty. What it keeps spares a queue that
/// is filled and emptied all the time most of the growing.
const KEPT_BYTES: usize = 4096;

/// So many items, at most, does an empty queue have memory for.
const fn kept<T>() -> usize {
    match size_of::<T>() {
        0 => usize::MAX,
        size if size > KEPT_BYTES / 4 => 4,
        size => KEPT_BYTES / size,
    }
}

/// Gives memory back that an empty queue does not need. To be called when items have left.
#[inline]
pub(super) fn trim<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > kept::<T>() && queue.is_empty() {
        shrink(queue);
    }
}

#[cold]
fn shrink<T>(queue: &mut VecDeque<T>) {
    queue.shrink_to(kept::<T>());
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_peak_of_items_gives_its_memory_back() {
        fn check<T: Clone>(item: T) {
            let mut queue: VecDeque<_> = std::iter::repeat_n(item, 10_000).collect();
            while queue.pop_front().is_some() {
                trim(&mut queue);
                assert!(
                    queue.is_empty() || queue.capacity() >= 10_000,
                    "not while it is in use"
                );
            }
            assert!(queue.capacity() <= kept::<T>());
        }
        check(7u8);
        check([7u64; 100]);
        check([7u8; 5000]);
        check(());
    }
}
