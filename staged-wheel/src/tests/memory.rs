//! Handles stay safe, payloads are dropped by the caller, and survivors leave the pages of a peak.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::classic::ClassicQueue;
use crate::wheel::{INLINE_MAX, PAGE, StagedWheel, TimerHandle};

/// From each stage, and from a queue that has used no record yet.
#[test]
fn a_queue_at_its_end_hands_out_what_is_armed() {
    let start = Instant::now();
    for count in [0, 100, 3 * PAGE] {
        let (mut classic, mut staged) = (ClassicQueue::new(start), StagedWheel::new(start));
        let mut handles = Vec::new();
        for n in 0..count {
            // Some for never.
            let deadline = match n % 5 {
                0 => start + Duration::from_nanos(u64::MAX),
                n => start + Duration::from_millis(n as u64),
            };
            handles.push((classic.insert(deadline, n), staged.insert(deadline, n)));
        }
        for &(in_classic, in_staged) in handles.iter().step_by(3) {
            classic.cancel(in_classic);
            staged.cancel(in_staged);
        }
        let armed: Vec<_> = (0..count).filter(|n| n % 3 != 0).collect();
        for mut payloads in [classic.disarm_all(), staged.disarm_all()] {
            payloads.sort_unstable();
            assert_eq!(payloads, armed);
        }
        // The old handles name nothing, though as many timers are armed in their place.
        for n in 0..count {
            classic.insert(start, n);
            staged.insert(start, n);
        }
        for (in_classic, in_staged) in handles {
            assert_eq!(classic.cancel(in_classic), None);
            assert_eq!(staged.cancel(in_staged), None);
        }
        assert_eq!((classic.len(), staged.len()), (count, count));
        classic.check_invariants();
        staged.check_invariants();
    }
}

/// A timer that is re-armed in place stays on its page, and so the page stays.
#[test]
fn survivors_that_are_rearmed_for_hours_end_on_few_pages() {
    const PAGES: usize = 200;
    for inline_max in [0, INLINE_MAX] {
        let epoch = Instant::now();
        let at = |secs| epoch + Duration::from_secs(secs);
        let mut queue: StagedWheel<usize> = StagedWheel::with_inline_max(epoch, inline_max);
        let mut survivors: Vec<(TimerHandle, usize)> = (0..PAGES * PAGE)
            .map(|n| (queue.insert(at(3600), n), n))
            .collect();
        survivors.retain(|&(handle, n)| {
            let stays = n.is_multiple_of(PAGE);
            if !stays {
                assert_eq!(queue.cancel(handle), Some(n));
            }
            stays
        });
        assert_eq!(queue.resident_pages(), PAGES);
        let mut fired = Vec::new();
        for second in 0..100 {
            assert!(!queue.expire(at(second), usize::MAX, &mut fired));
            for (handle, n) in &mut survivors {
                assert!(queue.rearm(*handle, at(second + 30)));
                if let Some(moved) = queue.compact(*handle) {
                    assert_eq!(queue.get_mut(*handle), None);
                    *handle = moved;
                }
                assert_eq!(queue.get_mut(*handle), Some(n));
            }
        }
        queue.check_invariants();
        assert!(queue.resident_pages() <= 2, "{}", queue.resident_pages());
        while queue.expire(at(200), 7, &mut fired) {}
        let numbers: Vec<usize> = survivors.iter().map(|&(_, n)| n).collect();
        assert_eq!(fired, numbers);
    }
}

/// Moved away and back with its arming count, a timer found the key standing that it had left in
/// the heap.
#[test]
fn a_timer_that_has_a_key_does_not_move() {
    let epoch = Instant::now();
    let at = |secs| epoch + Duration::from_secs(secs);
    let mut queue: StagedWheel<usize> = StagedWheel::with_inline_max(epoch, 0);
    let handles: Vec<TimerHandle> = (0..20 * PAGE).map(|n| queue.insert(at(3600), n)).collect();
    for (n, &handle) in handles.iter().enumerate() {
        if !n.is_multiple_of(PAGE) {
            assert_eq!(queue.cancel(handle), Some(n));
        }
    }
    for second in 0..30 {
        assert!(!queue.expire(at(second), usize::MAX, &mut Vec::new()));
    }
    let mut moved = 0;
    for &handle in handles.iter().step_by(PAGE) {
        assert!(queue.rearm(handle, at(1)));
        assert_eq!(queue.compact(handle), None);
        queue.check_invariants();
        // In a list it has none.
        assert!(queue.rearm(handle, at(100)));
        moved += usize::from(queue.compact(handle).is_some());
        queue.check_invariants();
    }
    assert!(moved >= 18);
}

/// Through the queue itself: cancelled and fired to the last generation, with all handles kept.
#[test]
fn a_spent_handle_of_a_queue_never_fits_again() {
    macro_rules! law {
        ($inline_max:expr, $burst:expr) => {{
            let epoch = Instant::now();
            let at = |ms| epoch + Duration::from_millis(ms);
            let mut queue: StagedWheel<usize> = StagedWheel::with_inline_max(epoch, $inline_max);
            let burst: Vec<TimerHandle> = (0..$burst)
                .map(|n| queue.insert(at(1_000_000), n))
                .collect();
            let first = queue.insert(at(0), 0);
            assert_eq!(queue.cancel(first), Some(0));
            queue.age(u32::MAX - 3);
            let mut spent = vec![first];
            let mut expired = Vec::new();
            for n in 1..20 {
                let handle = queue.insert(at(n), n as usize);
                assert_eq!(handle.index == first.index, n <= 4);
                for &old in &spent {
                    assert_ne!(old, handle);
                    assert_eq!(queue.cancel(old), None);
                    assert!(!queue.rearm(old, at(0)));
                    assert_eq!(queue.get_mut(old), None);
                }
                if n % 2 == 0 {
                    assert_eq!(queue.cancel(handle), Some(n as usize));
                } else {
                    assert!(!queue.expire(at(n), usize::MAX, &mut expired));
                    assert_eq!(expired.pop(), Some(n as usize));
                }
                spent.push(handle);
                queue.check_invariants();
            }
            assert_eq!(spent[4].generation.get(), u32::MAX);
            assert_eq!(queue.len(), burst.len());
            for (n, &handle) in burst.iter().enumerate() {
                assert_eq!(queue.cancel(handle), Some(n));
            }
        }};
    }
    law!(0, 0);
    law!(INLINE_MAX, 0);
    law!(INLINE_MAX, 300);
}

/// Tells when it is dropped.
struct Payload(Rc<Cell<usize>>);

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn payloads_are_dropped_by_the_caller_only() {
    let dropped = Rc::new(Cell::new(0));
    let epoch = Instant::now();
    let mut queue = StagedWheel::new(epoch);
    let mut expired = Vec::new();
    let mut handles: Vec<TimerHandle> = (0..2000)
        .map(|ms| queue.insert(epoch + Duration::from_millis(ms), Payload(dropped.clone())))
        .collect();
    for (n, handle) in handles.drain(..500).enumerate() {
        assert!(queue.rearm(handle, epoch + Duration::from_secs(n as u64)));
    }
    let cancelled: Vec<Payload> = handles
        .drain(1000..)
        .filter_map(|handle| queue.cancel(handle))
        .collect();
    assert_eq!(cancelled.len(), 500);
    let now = epoch + Duration::from_millis(1000);
    while queue.expire(now, usize::MAX, &mut expired) {}
    assert_eq!(expired.len(), 503);
    assert_eq!(dropped.get(), 0);
    drop(cancelled);
    assert_eq!(dropped.get(), 500);
    drop(expired);
    assert_eq!(dropped.get(), 1003);
    drop(queue);
    assert_eq!(dropped.get(), 2000);
}

#[test]
fn payloads_may_be_nothing_or_large() {
    let epoch = Instant::now();
    let at = |ms| epoch + Duration::from_millis(ms);
    let mut units = StagedWheel::<()>::new(epoch);
    let handles: Vec<_> = (0..3000).map(|ms| units.insert(at(ms), ())).collect();
    assert_eq!(units.cancel(handles[7]), Some(()));
    assert_eq!(units.cancel(handles[7]), None);
    let mut expired = Vec::new();
    while units.expire(at(1000), usize::MAX, &mut expired) {}
    assert_eq!((expired.len(), units.len()), (1000, 1999));

    let mut arrays = StagedWheel::<[u64; 100]>::new(epoch);
    let handles: Vec<_> = (0..300)
        .map(|ms| arrays.insert(at(ms), [ms; 100]))
        .collect();
    assert_eq!(arrays.get_mut(handles[299]), Some(&mut [299; 100]));
    let mut expired = Vec::new();
    while arrays.expire(at(299), usize::MAX, &mut expired) {}
    assert!(
        expired
            .iter()
            .zip(0..300)
            .all(|(array, ms)| array[99] == ms)
    );
}

#[test]
fn a_handle_of_a_larger_queue_names_nothing_in_a_small_one() {
    let epoch = Instant::now();
    let mut large = StagedWheel::new(epoch);
    let handle = (0..5000)
        .map(|n| large.insert(epoch, n))
        .last()
        .expect("5000 handles");
    let mut small = StagedWheel::<usize>::new(epoch);
    assert_eq!(small.cancel(handle), None);
    assert!(!small.rearm(handle, epoch));
    assert_eq!(small.get_mut(handle), None);
}
