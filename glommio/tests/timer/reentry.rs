//! Wakers that come back to the timers while these call or drop them.
//!
//! Each test runs with few timers and beside four hundred, which are two different queues.

use crate::batch::{Batch, armed, run_in_both_stages};
use crate::common::hooks::on_drop;
use crate::common::loud_clone::{ON_CLONE, waker_with_a_loud_clone};
use crate::common::prelude::*;
use crate::harness::{HOUR, ms, poll, until};

/// Each wake arms more than one pass takes.
#[run_test(run_in_both_stages)]
async fn a_wake_that_arms_a_crowd() {
    let (waker, woken) = counting();
    let kept = Rc::new(RefCell::new(Vec::new()));
    let batch = Batch::arm(5, {
        let (waker, kept) = (waker.clone(), Rc::clone(&kept));
        move |_, _| {
            for _ in 0..300 {
                let mut timer = armed(&waker);
                timer.reset(Duration::ZERO);
                kept.borrow_mut().push(timer);
            }
        }
    });
    batch.make_due();
    until(|| woken.get() == 1500).await;
    sleep(ms(1)).await;
    assert_eq!(woken.get(), 1500);
}

/// Whether a timer that is dropped while its batch fires is still woken is left open; all that are
/// not dropped must be.
#[run_test(run_in_both_stages)]
async fn a_wake_that_drops_later_ones_of_its_batch() {
    let log = Log::default();
    let batch = Batch::arm(60, {
        let log = log.clone();
        move |batch, n| {
            log.push(n);
            if n % 3 == 0 {
                drop(batch.take(n + 1));
            }
        }
    });
    batch.make_due();
    let kept =
        |log: &Log<usize>| -> Vec<_> { log.entries().into_iter().filter(|n| n % 3 != 1).collect() };
    until(|| kept(&log).len() == 40).await;
    sleep(ms(1)).await;
    let expected: Vec<_> = (0..60).filter(|n| n % 3 != 1).collect();
    assert_eq!(kept(&log), expected);
}

#[run_test(run_in_both_stages)]
async fn a_wake_that_drops_all_of_its_batch() {
    let log = Log::default();
    let batch = Batch::arm(100, {
        let log = log.clone();
        move |batch, n| {
            log.push(n);
            let all = std::mem::take(&mut *batch.0.borrow_mut());
            drop(all);
        }
    });
    batch.make_due();
    until(|| log.len() > 0).await;
    assert_eq!(log.entries()[0], 0);
    // The queue has been empty in the middle of it, and goes on.
    sleep(ms(1)).await;
}

#[run_test(run_in_both_stages)]
async fn a_wake_that_arms_its_own_timer_again() {
    let log = Log::default();
    let (again, count) = counting();
    let batch = Batch::arm(20, {
        let log = log.clone();
        move |batch, n| {
            log.push(n);
            let mut timer = batch.take(n).expect("it is put back");
            timer.reset(HOUR);
            assert!(poll(&mut timer, &again).is_pending());
            timer.reset(Duration::ZERO);
            batch.0.borrow_mut()[n] = Some(timer);
        }
    });
    batch.make_due();
    until(|| count.get() == 20).await;
    sleep(ms(1)).await;
    assert_eq!((log.len(), count.get()), (20, 20));
    for timer in batch.0.borrow_mut().iter_mut().flatten() {
        assert!(poll(timer, Waker::noop()).is_ready());
    }
}

/// A later one of the batch is moved away while the batch fires: woken or not, it is not over.
#[run_test(run_in_both_stages)]
async fn a_wake_that_moves_a_later_one_of_its_batch() {
    let log = Log::default();
    let batch = Batch::arm(40, {
        let log = log.clone();
        move |batch, n| {
            log.push(n);
            if n % 2 == 0 {
                batch.reset(n + 1, HOUR);
            }
        }
    });
    batch.make_due();
    until(|| log.entries().iter().filter(|n| *n % 2 == 0).count() == 20).await;
    let (waker, woken) = counting();
    for (n, timer) in batch.0.borrow_mut().iter_mut().flatten().enumerate() {
        assert_eq!(poll(timer, &waker).is_ready(), n % 2 == 0);
        timer.reset(Duration::ZERO);
    }
    until(|| woken.get() == 20).await;
}

#[run_test(run_in_both_stages)]
async fn a_wake_that_spawns_and_orders_actions_about() {
    let log = Log::default();
    let moved = TimerActionOnce::do_in(HOUR, async { "moved" });
    let destroyed = TimerActionOnce::do_in(HOUR, async { "destroyed" });
    executor().yield_now().await;
    let orders = Rc::new(Cell::new(Some((moved, destroyed))));
    let mut timer = armed(&on_wake({
        let (log, orders) = (log.clone(), Rc::clone(&orders));
        move || {
            let (moved, destroyed) = orders.take().expect("woken once");
            moved.rearm_in(Duration::ZERO);
            destroyed.destroy();
            let log = log.clone();
            spawn_local(async move {
                assert_eq!(moved.join().await, Some("moved"));
                assert_eq!(destroyed.join().await, None);
                TimerActionOnce::do_in(ms(1), async {}).join().await;
                log.push("done");
            })
            .detach();
        }
    }));
    timer.reset(Duration::ZERO);
    until(|| log.len() == 1).await;
}

/// The destructors of wakers come back to the timers when they are cancelled, replaced, woken.
#[run_test(run_in_both_stages)]
async fn destructors_of_wakers_that_use_timers() {
    for ending in 0..3 {
        let log = Log::default();
        let spare = Rc::new(RefCell::new(Vec::new()));
        for _ in 0..30 {
            spare.borrow_mut().push(armed(Waker::noop()));
        }
        let (fresh_waker, fresh_woken) = counting();
        let fresh = Rc::new(RefCell::new(Vec::new()));
        let mut timers: Vec<_> = (0..10)
            .map(|n| {
                let (log, spare, fresh) = (log.clone(), Rc::clone(&spare), Rc::clone(&fresh));
                let fresh_waker = fresh_waker.clone();
                armed(&on_drop(move || {
                    let cancelled = spare.borrow_mut().pop();
                    drop(cancelled);
                    if let Some(moved) = spare.borrow_mut().last_mut() {
                        moved.reset(2 * HOUR);
                    }
                    let mut timer = armed(&fresh_waker);
                    timer.reset(Duration::ZERO);
                    fresh.borrow_mut().push(timer);
                    log.push(n);
                }))
            })
            .collect();
        match ending {
            0 => timers.clear(),
            1 => {
                for timer in &mut timers {
                    assert!(poll(timer, Waker::noop()).is_pending());
                }
            }
            _ => {
                for timer in &mut timers {
                    timer.reset(Duration::ZERO);
                }
            }
        }
        until(|| fresh_woken.get() == 10).await;
        assert_eq!(log.entries(), (0..10).collect::<Vec<_>>());
        assert_eq!(spare.borrow().len(), 20);
    }
}

/// Cloning a waker is code of others, too.
#[run_test(run_in_both_stages)]
async fn a_clone_that_uses_timers() {
    let clones = Rc::new(Cell::new(0));
    let count = Rc::clone(&clones);
    ON_CLONE.set(Some(Box::new(move || {
        count.update(|it| it + 1);
        let mut timer = armed(Waker::noop());
        timer.reset(2 * HOUR);
        drop(timer);
    })));
    let mut timer = Timer::new(HOUR);
    assert!(poll(&mut timer, Waker::noop()).is_pending());
    let loud = waker_with_a_loud_clone();
    assert!(poll(&mut timer, &loud).is_pending());
    assert!(poll(&mut Timer::new(HOUR), &loud).is_pending());
    assert_eq!(clones.get(), 2);
    ON_CLONE.set(None);
}
