//! Timers and the executors that they belong to: gone, resting, or not the one that runs.

use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, Shared, expiry, ms, poll, shared, until};

/// An armed timer, and the executor that it belongs to.
fn armed(waker: &Waker) -> (LocalExecutor, Timer) {
    let local = LocalExecutor::default();
    let timer = local.run(async {
        let mut timer = Timer::new(HOUR);
        assert!(poll(&mut timer, waker).is_pending());
        timer
    });
    (local, timer)
}

#[run_test]
fn after_the_end_of_its_executor_a_timer_is_inert() {
    let (waker, woken) = counting();
    let (local, mut timer) = armed(&waker);
    drop(local);
    assert!(poll(&mut timer, &waker).is_pending());
    timer.reset(ms(1));
    timer.reset(Duration::MAX);
    assert!(poll(&mut timer, Waker::noop()).is_pending());
    // The clock goes on.
    timer.reset(Duration::ZERO);
    assert!(poll(&mut timer, Waker::noop()).is_ready());
    drop(timer);
    assert_eq!(woken.get(), 0);
}

/// Not even an executor that comes later on the same thread makes it end or is disturbed by it.
#[run_test]
fn a_timer_of_a_dead_executor_is_no_timer_of_the_next() {
    let (local, mut orphan) = armed(Waker::noop());
    drop(local);
    LocalExecutor::default().run(async {
        let mut own = Timer::new(HOUR);
        assert!(poll_once(&mut own).await.is_none());
        orphan.reset(HOUR);
        assert!(poll_once(&mut orphan).await.is_none());
        drop(orphan);
        own.reset(ms(10));
        own.await;
    });
}

/// Handles repeat from queue to queue: these two are the first of theirs.
#[run_test]
fn what_is_done_to_a_timer_is_not_done_to_the_running_executor_s() {
    let (waker, woken) = counting();
    let (first, mut foreign) = armed(&waker);
    LocalExecutor::default().run(async {
        for _ in 0..3 {
            let timer = shared(Timer::new(ms(10)));
            let awaited = Rc::clone(&timer);
            let own = spawn_local(async move { expiry(&awaited).await });
            foreign.reset(2 * HOUR);
            let _ = poll(&mut foreign, &waker);
            let latest = Instant::now() + ms(10);
            assert!(own.await <= latest);
        }
        drop(foreign);
        Timer::new(ms(5)).await;
    });
    drop(first);
    assert_eq!(woken.get(), 0);
}

/// A timer of `first` is awaited by a task of `second`: `first` fires it, and `second` hears of it.
#[run_test]
fn awaited_elsewhere_it_is_fired_by_its_own_executor() {
    let first = LocalExecutor::default();
    let second = LocalExecutor::default();
    let timer = first.run(async { shared(Timer::new(ms(30))) });
    let ended = Rc::new(Cell::new(None));
    second.run(async {
        let (timer, ended) = (Rc::clone(&timer), Rc::clone(&ended));
        spawn_local(async move { ended.set(Some(expiry(&timer).await)) }).detach();
    });
    if ended.get().is_none() {
        // Only this run can wake the task.
        first.run(sleep(ms(50)));
    }
    second.run(until(|| ended.get().is_some()));
    assert!(ended.get().is_some_and(|it| it <= Instant::now()));
}

/// While only the wrong executor runs, nothing wakes the task; the clock still decides when it is
/// polled.
#[run_test]
fn polled_elsewhere_the_clock_decides() {
    let first = LocalExecutor::default();
    let mut timer = first.run(async { Timer::new(ms(20)) });
    let latest = Instant::now() + ms(20);
    LocalExecutor::default().run(async {
        let polled = poll_once(&mut timer).await;
        assert!(polled.is_none_or(|it| it <= Instant::now()));
        // A rest of this executor's own.
        sleep(ms(25)).await;
        assert!(timer.await <= latest);
    });
}

/// Reset elsewhere, an armed timer stays armed where it belongs.
#[run_test]
fn reset_elsewhere_it_moves_in_its_own_executor() {
    let first = LocalExecutor::default();
    let (timer, waiter): (Shared, _) = first.run(async {
        let timer = shared(Timer::new(HOUR));
        let awaited = Rc::clone(&timer);
        (timer, spawn_local(async move { expiry(&awaited).await }))
    });
    let earliest = LocalExecutor::default().run(async {
        timer.borrow_mut().reset(ms(10));
        let earliest = Instant::now();
        sleep(ms(1)).await;
        earliest
    });
    let deadline = first.run(waiter);
    assert!(deadline >= earliest && deadline <= Instant::now());
}

/// An executor is dropped while another one runs on its thread: its futures see their own executor.
#[run_test]
fn an_executor_dropped_inside_another() {
    let log = Log::default();
    let inner = LocalExecutor::default();
    let inner_id = inner.id();
    inner.run(async {
        struct Probe(Log<usize>, Timer);
        impl Drop for Probe {
            fn drop(&mut self) {
                self.0.push(executor().id());
                self.1.reset(ms(1));
                drop(Timer::new(ms(1)));
            }
        }
        let probe = Probe(log.clone(), Timer::new(HOUR));
        spawn_local(async move {
            sleep(HOUR).await;
            drop(probe);
        })
        .detach();
    });
    let outer = LocalExecutor::default();
    let outer_id = outer.id();
    outer.run(async {
        let own = spawn_local(Timer::new(ms(5)));
        drop(inner);
        log.push(executor().id());
        own.await;
    });
    assert_eq!(log.entries(), [inner_id, outer_id]);
}

#[run_test]
fn actions_whose_executor_is_gone_take_orders_and_do_nothing() {
    let log = Log::default();
    let local = LocalExecutor::default();
    let guard = OnDrop(log.clone(), "dropped");
    let (once, repeat) = local.run(async {
        let once = TimerActionOnce::do_in(ms(1), async move { drop(guard) });
        let repeat = TimerActionRepeat::repeat(|| async { Some(HOUR) });
        (once, repeat)
    });
    drop(local);
    assert_eq!(log.entries(), ["dropped"]);
    once.destroy();
    once.rearm_in(Duration::ZERO);
    once.rearm_at(Instant::now());
    once.rearm_in(Duration::MAX);
    once.destroy();
    repeat.destroy();
    LocalExecutor::default().run(async {
        once.rearm_in(ms(1));
        once.destroy();
        assert_eq!(once.join().await, None);
        repeat.cancel().await;
    });
    assert_eq!(log.len(), 1);
}

/// An action ordered about while another executor runs obeys in its own.
#[run_test]
fn actions_take_orders_from_elsewhere() {
    let first = LocalExecutor::default();
    let (moved, destroyed) = first.run(async {
        let moved = TimerActionOnce::do_in(HOUR, async { executor().id() });
        let destroyed = TimerActionOnce::do_in(HOUR, async {});
        executor().yield_now().await;
        (moved, destroyed)
    });
    LocalExecutor::default().run(async {
        moved.rearm_in(ms(2));
        destroyed.destroy();
        sleep(ms(1)).await;
    });
    let id = first.id();
    first.run(async {
        assert_eq!(moved.join().await, Some(id));
        assert_eq!(destroyed.join().await, None);
    });
}

/// Taking turns on one thread: each run serves its own timers, due ones at once.
#[run_test]
fn executors_that_take_turns_on_one_thread() {
    let locals: Vec<_> = (0..4).map(|_| LocalExecutor::default()).collect();
    let fired = Rc::new(RefCell::new(vec![0; locals.len()]));
    for (n, local) in locals.iter().enumerate() {
        let fired = Rc::clone(&fired);
        local.run(async move {
            for m in 0..300 {
                let fired = Rc::clone(&fired);
                spawn_local(async move {
                    Timer::new(Duration::from_micros(m * 50)).await;
                    fired.borrow_mut()[n] += 1;
                })
                .detach();
            }
        });
    }
    while fired.borrow().iter().any(|&it| it < 300) {
        for local in &locals {
            local.run(sleep(Duration::from_micros(200)));
        }
    }
    assert_eq!(*fired.borrow(), [300; 4]);
}
