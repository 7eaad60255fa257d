use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A future that waits.
#[derive(Default)]
struct Waiter {
    key: Option<WaitKey>,
    wakes: Arc<Wakes>,
}

impl Waiter {
    fn wait(&mut self, queue: &mut WaitQueue<usize>, id: usize) {
        let waker = Waker::from(Arc::clone(&self.wakes));
        let polled = poll_waiting(&Context::from_waker(&waker), |waker| {
            queue.wait(&mut self.key, waker, id);
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(usize),
    Notify,
    Leave(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..8usize).prop_map(Step::Wait),
        2 => Just(Step::Notify),
        2 => (0..8usize).prop_map(Step::Leave),
    ]
}

proptest! {
    /// Notifications go out in the order in which futures came, also to those that had to wait again,
    /// and a future that leaves learns whether one was meant for it.
    #[test]
    fn agrees_with_a_sorted_map(steps in prop::collection::vec(step(), 0..200)) {
        let mut queue = WaitQueue::new();
        let mut waiters: [Waiter; 8] = Default::default();
        let mut tickets = [None; 8];
        let mut waiting = BTreeMap::new();
        for (now, step) in steps.into_iter().enumerate() {
            match step {
                Step::Wait(id) => {
                    waiters[id].wait(&mut queue, id);
                    waiting.insert(*tickets[id].get_or_insert(now), id);
                }
                Step::Notify => {
                    let expected = waiting.pop_first().map(|(_, id)| id);
                    prop_assert_eq!(queue.oldest().copied(), expected.filter(|_| queue.waiting() > 0));
                    let notified = queue.notify_oldest();
                    prop_assert_eq!(notified.is_some(), expected.is_some());
                    if let (Some(waker), Some(id)) = (notified, expected) {
                        let before = waiters[id].wakes.count();
                        waker.wake();
                        prop_assert_eq!(waiters[id].wakes.count(), before + 1);
                        prop_assert!(queue.is_notified(waiters[id].key.as_ref().unwrap()));
                    }
                }
                Step::Leave(id) => {
                    let ticket = tickets[id].take();
                    let was_waiting = ticket.and_then(|ticket| waiting.remove(&ticket)).is_some();
                    match queue.leave(&mut waiters[id].key) {
                        None => prop_assert!(ticket.is_none()),
                        Some(Removed::Waiting(_)) => prop_assert!(was_waiting),
                        Some(Removed::Notified(wants)) => {
                            prop_assert!(!was_waiting);
                            prop_assert_eq!(wants, id);
                        }
                    }
                }
            }
            prop_assert_eq!(queue.waiting(), waiting.len());
            prop_assert_eq!(queue.is_empty(), tickets.iter().all(Option::is_none));
        }
    }
}

/// Futures that are notified, find nothing, and wait again: each looked through all before it.
#[test]
fn many_that_find_nothing_wait_again_in_linear_time() {
    const WAITERS: usize = 400_000;
    // A second or two, also without optimisation. It took minutes.
    let factor =
        std::env::var("GLOMMIO_TEST_PATIENCE").map_or(1, |it| it.parse().expect("a factor"));
    let limit = Duration::from_secs(60) * factor;
    let begin = Instant::now();
    let in_time = || assert!(begin.elapsed() < limit, "it is quadratic");
    let mut queue = WaitQueue::new();
    let mut waiters: Vec<_> = (0..WAITERS).map(|_| Waiter::default()).collect();
    for (id, waiter) in waiters.iter_mut().enumerate() {
        waiter.wait(&mut queue, id);
    }
    while let Some(waker) = queue.notify_oldest() {
        drop(waker);
    }
    // The first half in the order in which they came, the other the other way round.
    let (first, last) = waiters.split_at_mut(WAITERS / 2);
    for (id, waiter) in first.iter_mut().enumerate() {
        waiter.wait(&mut queue, id);
        in_time();
    }
    for (id, waiter) in last.iter_mut().enumerate().rev() {
        waiter.wait(&mut queue, id + WAITERS / 2);
        in_time();
    }
    for id in 0..WAITERS {
        assert_eq!(queue.oldest(), Some(&mut id.clone()));
        drop(queue.notify_oldest());
    }
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn a_peak_of_waiters_gives_its_memory_back() {
    const PEAK: usize = 1000;
    let mut queue = WaitQueue::new();
    for waits_again in [false, true] {
        let mut waiters: Vec<_> = (0..PEAK).map(|_| Waiter::default()).collect();
        for (id, waiter) in waiters.iter_mut().enumerate() {
            waiter.wait(&mut queue, id);
        }
        if waits_again {
            (0..PEAK).for_each(|_| drop(queue.notify_oldest()));
            for (id, waiter) in waiters.iter_mut().enumerate() {
                waiter.wait(&mut queue, id);
            }
        }
        assert!(queue.capacity() >= PEAK);
        for waiter in &mut waiters {
            drop(queue.leave(&mut waiter.key));
        }
        assert!(queue.is_empty());
        assert!(queue.capacity() <= KEPT_WHEN_EMPTY, "{}", queue.capacity());
    }
}

/// What has waited again and left must not pile up in the heap.
#[test]
fn waiting_again_and_leaving_takes_no_memory() {
    let mut queue = WaitQueue::new();
    let mut waiter = Waiter::default();
    for _ in 0..10_000 {
        assert!(queue.enter_alone(&mut waiter.key, 0));
        waiter.wait(&mut queue, 0);
        drop(queue.leave(&mut waiter.key));
    }
    assert!(queue.capacity() <= KEPT_WHEN_EMPTY, "{}", queue.capacity());
}
