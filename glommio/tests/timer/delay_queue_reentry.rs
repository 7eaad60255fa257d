//! `DelayQueue` where destructors and wakers come back to it, panic, or outlive the executor.

use glommio::timer::DelayQueue;

use crate::batch::run_in_both_stages;
use crate::common::hooks::hooked;
use crate::common::loud_clone::{LOUD_WAKES, ON_CLONE, waker_with_a_loud_clone};
use crate::common::prelude::*;
use crate::delay_queue::{next, poll};
use crate::harness::{HOUR, hog, ms, until};

/// The destructor of an item inserts into the queue, removes from it, and reads its length.
#[run_test]
async fn destructors_may_use_the_queue() {
    struct Comes<'a>(&'a Cell<u32>, Option<std::rc::Weak<DelayQueue<Comes<'a>>>>);
    impl Drop for Comes<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            if let Some(queue) = self.1.take().and_then(|queue| queue.upgrade()) {
                let before = queue.len();
                let key = queue.insert(Comes(self.0, None), HOUR);
                drop(queue.remove(key));
                queue.insert(Comes(self.0, None), Duration::ZERO);
                assert_eq!(queue.len(), before + 1);
                assert!(queue.reset(key, ms(1)) == queue.deadline(key).is_some());
                let _ = poll(&queue, Waker::noop());
            }
        }
    }
    let drops = Cell::new(0);
    let queue = Rc::new(DelayQueue::new());
    let comes = || Comes(&drops, Some(Rc::downgrade(&queue)));
    for _ in 0..100 {
        queue.insert(comes(), HOUR);
    }
    queue.clear();
    // Two were made by each, some of which came out of a poll in a destructor.
    assert_eq!(drops.get() as usize + queue.len(), 300);
    let key = queue.insert(comes(), HOUR);
    drop(queue.remove(key));
    queue.insert(comes(), Duration::ZERO);
    while !queue.is_empty() {
        drop(queue.next_expired().await);
    }
    assert_eq!(drops.get(), 2 * 100 + 100 + 2 * 3);
    // Inside the drop of the queue it is gone.
    queue.insert(comes(), HOUR);
    drop(queue);
    assert_eq!(drops.get(), 307);
}

/// The waker of the task that waits comes back to the queue, when it is woken, cloned and dropped.
#[run_test(run_in_both_stages)]
async fn wakers_may_use_the_queue() {
    let queue = Rc::new(DelayQueue::new());
    let taken = Rc::new(RefCell::new(Vec::new()));
    let hook = {
        let (queue, taken) = (Rc::clone(&queue), Rc::clone(&taken));
        move || {
            let weak = Rc::downgrade(&queue);
            let taken = Rc::clone(&taken);
            move || {
                let Some(queue) = weak.upgrade() else { return };
                if let Poll::Ready(item) = poll(&queue, Waker::noop()) {
                    taken.borrow_mut().push(item.into_inner());
                }
                let key = queue.insert(usize::MAX, HOUR);
                queue.remove(key);
            }
        }
    };
    for n in 0..10 {
        queue.insert(n, ms(1));
        let waker = hooked(hook(), hook());
        // The machine may have stood still meanwhile.
        if let Poll::Ready(item) = poll(&queue, &waker) {
            taken.borrow_mut().push(item.into_inner());
        }
        drop(waker);
        until(|| taken.borrow().len() == n + 1).await;
    }
    assert_eq!(*taken.borrow(), (0..10).collect::<Vec<_>>());
}

/// A waker that is called among those of a batch removes an item of the same batch and inserts
/// another in its place: the wake of the first is still to come.
#[run_test(run_in_both_stages)]
async fn a_wake_that_is_under_way_does_not_make_the_next_item_expire() {
    let queue = Rc::new(DelayQueue::new());
    let due = Instant::now() + ms(50);
    let swapped = Rc::new(Cell::new(false));
    let later = Rc::new(Cell::new(None));
    let key = Rc::new(Cell::new(None));
    let waker = crate::common::hooks::on_wake({
        let (queue, swapped) = (Rc::downgrade(&queue), Rc::clone(&swapped));
        let (later, key) = (Rc::clone(&later), Rc::clone(&key));
        move || {
            let (Some(queue), Some(key)) = (queue.upgrade(), key.take()) else {
                return;
            };
            assert_eq!(queue.remove(key), Some("first"));
            later.set(Some(queue.insert("second", ms(30))));
            swapped.set(true);
        }
    });
    let mut timer = Timer::at(due - ms(1));
    assert!(crate::harness::poll(&mut timer, &waker).is_pending());
    key.set(Some(queue.insert_at("first", due)));
    // Both are due in one pass, the timer first.
    hog(ms(60));
    until(|| swapped.get()).await;
    sleep(ms(1)).await;
    let deadline = queue.deadline(later.get().expect("it was swapped"));
    let came = poll(&queue, Waker::noop());
    assert!(came.is_pending() || deadline.is_some_and(|it| it <= Instant::now()));
    if came.is_pending() {
        assert_eq!(next(&queue).await, "second");
    }
}

/// A wake comes for an item that has left in the same pass, and the executor ends before the queue
/// looks: what is inserted in that place then has not expired.
#[test]
fn a_wake_from_before_the_end_of_the_executor_expires_nothing_new() {
    for is_inserted_before in [false, true] {
        late_wake_at_the_end_of_the_executor(is_inserted_before);
    }
}

fn late_wake_at_the_end_of_the_executor(is_inserted_before: bool) {
    with_watchdog(move || {
        let local = LocalExecutor::default();
        let queue = local.run(async move {
            let queue = Rc::new(DelayQueue::new());
            let (key, removed) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(None)));
            let waker = crate::common::hooks::on_wake({
                let (queue, key) = (Rc::downgrade(&queue), Rc::clone(&key));
                let removed = Rc::clone(&removed);
                move || {
                    if let (Some(queue), Some(key)) = (queue.upgrade(), key.take()) {
                        removed.set(queue.remove(key));
                    }
                }
            });
            let mut timer = Timer::new(ms(50));
            assert!(crate::harness::poll(&mut timer, &waker).is_pending());
            key.set(Some(queue.insert("first", ms(51))));
            // Both are due in one pass, the timer first.
            hog(ms(60));
            until(|| removed.get() == Some("first")).await;
            sleep(ms(1)).await;
            if is_inserted_before {
                queue.insert("second", HOUR);
            }
            queue
        });
        drop(local);
        if !is_inserted_before {
            queue.insert("second", HOUR);
        }
        assert!(poll(&queue, Waker::noop()).is_pending());
        assert_eq!(queue.len(), 1);
    });
}

/// Cloning a waker is code of others: here it runs the executor, in which an item expires
/// meanwhile.
#[run_test]
fn an_item_that_expires_while_the_waker_is_cloned_is_not_missed() {
    let local = Rc::new(LocalExecutor::default());
    let queue = local.run(async { DelayQueue::new() });
    // The machine may stand still before the poll.
    loop {
        queue.insert("item", ms(1));
        let runs = Rc::clone(&local);
        ON_CLONE.set(Some(Box::new(move || runs.run(sleep(ms(3))))));
        let polled = poll(&queue, &waker_with_a_loud_clone());
        ON_CLONE.set(None);
        if polled.is_pending() {
            break;
        }
    }
    local.run(until(|| LOUD_WAKES.get() > 0));
    assert!(poll(&queue, Waker::noop()).is_ready());
}

#[run_test]
async fn panics_of_destructors() {
    let drops = Rc::new(Cell::new(0));
    let bomb = |n: u32| {
        let drops = Rc::clone(&drops);
        on_drop(move || {
            drops.set(drops.get() + 1);
            assert!(!n.is_multiple_of(3), "number {n}");
        })
    };
    let filled = || {
        let queue = DelayQueue::new();
        (0..30).for_each(|n| _ = queue.insert(bomb(n), HOUR));
        queue
    };
    let queue = filled();
    assert_eq!(panic_of(|| queue.clear()), "number 0");
    assert_eq!((drops.get(), queue.len()), (30, 0));
    assert_eq!(panic_of(|| drop(filled())), "number 0");
    assert_eq!(drops.get(), 60);
    // During another panic they end in silence.
    let message = panic_of(|| {
        let _queue = filled();
        panic!("the first");
    });
    assert_eq!((message.as_str(), drops.get()), ("the first", 90));
    let key = queue.insert(bomb(3), HOUR);
    assert_eq!(panic_of(|| drop(queue.remove(key))), "number 3");
    assert!(queue.is_empty());
}

#[run_test]
fn the_executor_ends_before_the_queue() {
    let local = LocalExecutor::default();
    let (queue, keys) = local.run(async {
        let queue = DelayQueue::new();
        let keys = [
            queue.insert("expired", ms(1)),
            queue.insert("moved", ms(1)),
            queue.insert("armed", HOUR),
            queue.insert("removed", HOUR),
        ];
        sleep(ms(3)).await;
        (queue, keys)
    });
    drop(local);
    // What is due comes out, but for one that is moved.
    assert!(queue.reset(keys[1], HOUR));
    let due = |queue: &DelayQueue<_>| match poll(queue, Waker::noop()) {
        Poll::Ready(expired) => Some(expired.into_inner()),
        Poll::Pending => None,
    };
    assert_eq!(due(&queue), Some("expired"));
    let (waker, wakes) = counting();
    assert!(poll(&queue, &waker).is_pending());
    queue.insert("new", Duration::ZERO);
    assert!(queue.reset(keys[2], Duration::ZERO));
    assert_eq!(queue.remove(keys[3]), Some("removed"));
    LocalExecutor::default().run(sleep(ms(1)));
    assert_eq!(wakes.get(), 0, "no executor wakes");
    assert_eq!([due(&queue), due(&queue)], [Some("new"), Some("armed")]);
    assert!(poll(&queue, Waker::noop()).is_pending());
    queue.insert("left", Duration::ZERO);
    assert_eq!(queue.len(), 2);
    queue.clear();
    assert!(queue.is_empty());
}

/// The executor in which it was made wakes who waits, also under another one.
#[run_test]
fn another_executor_of_the_thread() {
    let (own, other) = (LocalExecutor::default(), LocalExecutor::default());
    let queue = own.run(async { Rc::new(DelayQueue::new()) });
    let (waker, wakes) = counting();
    other.run(async {
        // The machine may stand still before the poll.
        loop {
            queue.insert("item", ms(1));
            if poll(&queue, &waker).is_pending() {
                break;
            }
        }
        sleep(ms(3)).await;
        assert_eq!(wakes.get(), 0, "its executor does not run");
    });
    own.run(until(|| wakes.get() == 1));
    assert_eq!(other.run(next(&queue)), "item");
}

#[run_test]
fn a_task_that_waits_is_dropped_with_its_executor() {
    let drops = Rc::new(Cell::new(0));
    let local = LocalExecutor::default();
    local.run(async {
        let queue = DelayQueue::new();
        let count = Rc::clone(&drops);
        queue.insert(on_drop(move || count.set(count.get() + 1)), HOUR);
        spawn_local(async move {
            queue.next_expired().await;
            pending::<()>().await;
        })
        .detach();
        executor().yield_now().await;
    });
    drop(local);
    assert_eq!(drops.get(), 1);
}
