//! Panics in code that timers run on behalf of others: no other timer is lost.
//!
//! Each test runs with few timers and beside four hundred, which are two different queues.

use std::panic::panic_any;

use crate::batch::{Batch, armed, run_in_both_stages};
use crate::common::hooks::on_drop;
use crate::common::loud_clone::{ON_CLONE, waker_with_a_loud_clone};
use crate::common::prelude::*;
use crate::harness::{poll, until};

/// Also one that carries what panics when it is dropped.
#[test]
fn a_panic_in_a_wake_loses_no_other_timer() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose, again");
        }
    }
    run_in_both_stages(async || {
        let log = Log::default();
        let batch = Batch::arm(60, {
            let log = log.clone();
            move |_, n| {
                log.push(n);
                match n % 4 {
                    0 => panic_any(Bomb),
                    1 => panic!("on purpose"),
                    _ => {}
                }
            }
        });
        batch.make_due();
        until(|| log.len() == 60).await;
        assert_eq!(log.entries(), (0..60).collect::<Vec<_>>());
        for timer in batch.0.borrow_mut().iter_mut().flatten() {
            assert!(poll(timer, Waker::noop()).is_ready());
        }
    });
}

/// The panic goes to the code that drops the timer, and no further.
#[run_test(run_in_both_stages)]
async fn a_panic_in_the_drop_of_a_cancelled_waker_is_the_canceller_s() {
    let log = Log::default();
    let mut kept: Vec<_> = (0..20)
        .map(|n| {
            let log = log.clone();
            armed(&on_wake(move || log.push(n)))
        })
        .collect();
    for _ in 0..20 {
        let bad = armed(&on_drop(|| panic!("on purpose")));
        assert!(catch_unwind(AssertUnwindSafe(|| drop(bad))).is_err());
    }
    for timer in &mut kept {
        timer.reset(Duration::ZERO);
    }
    until(|| log.len() == 20).await;
    assert_eq!(log.entries(), (0..20).collect::<Vec<_>>());
}

/// The same for the code that polls: the timer has the new waker by then.
#[run_test(run_in_both_stages)]
async fn a_panic_in_the_drop_of_a_replaced_waker_is_the_poller_s() {
    let (waker, woken) = counting();
    let mut timer = armed(&on_drop(|| panic!("on purpose")));
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut timer, &waker)));
    assert!(polled.is_err());
    timer.reset(Duration::ZERO);
    until(|| woken.get() == 1).await;
    assert!(poll(&mut timer, &waker).is_ready());

    let mut timer = armed(&on_drop(|| panic!("on purpose")));
    timer.reset(Duration::ZERO);
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut timer, &waker)));
    assert!(polled.is_err(), "it was over and dropped its waker");
    assert!(poll(&mut timer, &waker).is_ready());
}

/// A panic in a clone leaves the timer as it was.
#[run_test(run_in_both_stages)]
async fn a_clone_that_panics() {
    let (waker, woken) = counting();
    let mut timer = armed(&waker);
    ON_CLONE.set(Some(Box::new(|| panic!("on purpose"))));
    let loud = waker_with_a_loud_clone();
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut timer, &loud)));
    assert!(polled.is_err());
    ON_CLONE.set(None);
    timer.reset(Duration::ZERO);
    until(|| woken.get() == 1).await;
    assert!(matches!(poll(&mut timer, &waker), Poll::Ready(it) if it <= Instant::now()));
}
