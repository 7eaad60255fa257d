//! Destructors of wakers that come back to the batch they are in, and to what its bound left
//! behind.
//!
//! A waker's last clone lies in the queue, so its destructor runs when the timer fires or is
//! dropped, whichever is first. It must run once, and at that moment the timers must be open to it.

use crate::batch::{Batch, armed, run_in_both_stages};
use crate::common::hooks;
use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, ms, until};

/// More than one pass fires.
const CROWD: usize = 600;

/// Arms `count` timers; `on_drop` is told whose waker goes.
fn arm(count: usize, on_drop: impl Fn(&Batch, usize) + 'static) -> Batch {
    let batch = Batch::default();
    let call = Rc::new(on_drop);
    for n in 0..count {
        let (call, owner) = (Rc::clone(&call), Rc::downgrade(&batch.0));
        let timer = armed(&hooks::on_drop(move || {
            if let Some(timers) = owner.upgrade() {
                call(&Batch(timers), n);
            }
        }));
        batch.0.borrow_mut().push(Some(timer));
    }
    batch
}

fn sorted(log: &Log<usize>) -> Vec<usize> {
    let mut entries = log.entries();
    entries.sort_unstable();
    entries
}

/// One that the batch holds already, one that waits for the next pass, and itself.
#[run_test(run_in_both_stages)]
async fn a_drop_that_drops_others_of_its_batch() {
    let log = Log::default();
    let batch = arm(CROWD, {
        let log = log.clone();
        move |batch, n| {
            log.push(n);
            for other in [n + 1, n + CROWD / 2, n] {
                if n % 3 == 0 && other < CROWD {
                    let timer = batch.take(other);
                    drop(timer);
                }
            }
        }
    });
    batch.make_due();
    until(|| log.len() == CROWD).await;
    sleep(ms(1)).await;
    assert_eq!(sorted(&log), (0..CROWD).collect::<Vec<_>>());
    let left = batch.0.borrow().iter().flatten().count();
    // Of three, the first and the one behind it went; `CROWD / 2` is a multiple of three.
    assert_eq!(left, CROWD / 3);
}

/// All are dropped inside the first destructor, and a crowd is armed in their place.
#[run_test(run_in_both_stages)]
async fn a_drop_that_drops_all_and_arms_a_crowd() {
    let log = Log::default();
    let (fresh, woken) = hooks::counting();
    let kept = Rc::new(RefCell::new(Vec::new()));
    let batch = arm(CROWD, {
        let (log, kept) = (log.clone(), Rc::clone(&kept));
        move |batch, n| {
            log.push(n);
            let all = std::mem::take(&mut *batch.0.borrow_mut());
            let is_first = !all.is_empty();
            drop(all);
            if is_first {
                for _ in 0..CROWD {
                    let mut timer = armed(&fresh);
                    timer.reset(Duration::ZERO);
                    kept.borrow_mut().push(timer);
                }
            }
        }
    });
    batch.make_due();
    until(|| woken.get() == CROWD).await;
    assert_eq!(log.entries()[0], 0);
    assert_eq!(sorted(&log), (0..CROWD).collect::<Vec<_>>());
}

/// The destructor of one timer's waker drops the last timer of a task, and with it the task.
#[run_test(run_in_both_stages)]
async fn a_drop_that_drops_the_last_timer_of_a_task() {
    for fires in [false, true] {
        let log = Log::default();
        let slot = Rc::new(RefCell::new(Some(Timer::new(HOUR))));
        let guard = OnDrop(log.clone(), "task dropped");
        let mut timer = armed(&hooks::on_drop({
            let (log, slot) = (log.clone(), Rc::clone(&slot));
            move || {
                drop(slot.borrow_mut().take());
                log.push("timer dropped");
            }
        }));
        spawn_local(async move {
            let _guard = guard;
            poll_fn(|cx| match &mut *slot.borrow_mut() {
                Some(timer) => Pin::new(timer).poll(cx),
                None => unreachable!("the task is not woken"),
            })
            .await;
        })
        .detach();
        // The task has to have polled its timer.
        sleep(ms(1)).await;
        if fires {
            timer.reset(Duration::ZERO);
        } else {
            drop(timer);
        }
        until(|| log.len() == 2).await;
        assert_eq!(log.entries(), ["timer dropped", "task dropped"]);
    }
}

/// Half of the destructors panic, in the middle of the batch; none of the others is passed over.
#[run_test(run_in_both_stages)]
async fn a_drop_that_panics_in_the_middle_of_a_batch() {
    let log = Log::default();
    let batch = arm(CROWD, {
        let log = log.clone();
        move |batch, n| {
            log.push(n);
            batch.reset((n + 1) % CROWD, Duration::ZERO);
            assert!(n % 2 == 0, "on purpose");
        }
    });
    batch.make_due();
    until(|| log.len() == CROWD).await;
    assert_eq!(sorted(&log), (0..CROWD).collect::<Vec<_>>());
    let mut another = armed(Waker::noop());
    another.reset(Duration::ZERO);
    another.await;
}
