//! Actions that run again and again.

use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, hog, ms, until};

/// An action that counts its runs and asks for `wait` after each, `None` after the last of `runs`.
fn counted(
    count: &Rc<Cell<u32>>,
    runs: u32,
    wait: Duration,
) -> impl Fn() -> std::future::Ready<Option<Duration>> + use<> {
    let count = Rc::clone(count);
    move || {
        count.update(|it| it + 1);
        std::future::ready((count.get() < runs).then_some(wait))
    }
}

#[run_test]
async fn the_first_run_is_at_once_but_not_inside_the_call() {
    let count = Rc::default();
    let action = TimerActionRepeat::repeat(counted(&count, u32::MAX, HOUR));
    assert_eq!(count.get(), 0);
    executor().yield_now().await;
    assert_eq!(count.get(), 1);
    action.cancel().await;
    assert_eq!(count.get(), 1);
}

#[run_test]
async fn none_ends_it_for_good() {
    for runs in [1, 2, 10] {
        let count = Rc::default();
        let action = TimerActionRepeat::repeat(counted(&count, runs, ms(1)));
        assert_eq!(action.join().await, Some(()));
        assert_eq!(count.get(), runs);
        sleep(ms(3)).await;
        assert_eq!(count.get(), runs);
    }
}

/// The wait counts from the end of the run, so runs never overlap and never catch up.
#[run_test]
async fn the_wait_counts_from_the_end_of_the_run() {
    let log = Log::default();
    let events = log.clone();
    let action = TimerActionRepeat::repeat(move || {
        let events = events.clone();
        async move {
            events.push(("start", Instant::now()));
            sleep(ms(4)).await;
            hog(ms(2));
            events.push(("end", Instant::now()));
            (events.len() < 10).then_some(ms(3))
        }
    });
    assert_eq!(action.join().await, Some(()));
    let entries = log.entries();
    assert_eq!(entries.len(), 10);
    for (n, entry) in entries.iter().enumerate() {
        assert_eq!(entry.0, ["start", "end"][n % 2]);
    }
    for pair in entries[1..].chunks_exact(2) {
        assert!(pair[1].1 >= pair[0].1 + ms(3), "started before its time");
    }
}

#[run_test]
async fn each_run_chooses_its_own_wait() {
    let waits = [ms(5), Duration::ZERO, ms(1), Duration::from_nanos(1), ms(8)];
    let starts = Log::default();
    let log = starts.clone();
    let action = TimerActionRepeat::repeat(move || {
        let log = log.clone();
        async move {
            log.push(Instant::now());
            waits.get(log.len() - 1).copied()
        }
    });
    assert_eq!(action.join().await, Some(()));
    let starts = starts.entries();
    assert_eq!(starts.len(), waits.len() + 1);
    for (n, wait) in waits.iter().enumerate() {
        assert!(starts[n + 1] >= starts[n] + *wait);
    }
}

/// What a run captured is gone before the wait begins, not when the next run starts.
#[run_test]
async fn the_future_of_a_run_is_dropped_before_the_wait() {
    let log = Log::default();
    let events = log.clone();
    let action = TimerActionRepeat::repeat(move || {
        let guard = OnDrop(events.clone(), "run dropped");
        async move {
            let _guard = guard;
            Some(HOUR)
        }
    });
    executor().yield_now().await;
    assert_eq!(log.entries(), ["run dropped"]);
    action.cancel().await;
    assert_eq!(log.len(), 1);
}

/// However short the wait, others of the queue get a turn between two runs.
#[run_test]
async fn no_wait_at_all_lets_others_run() {
    for wait in [Duration::ZERO, Duration::from_nanos(1)] {
        let count = Rc::new(Cell::new(0));
        let action = TimerActionRepeat::repeat(counted(&count, u32::MAX, wait));
        let neighbour = spawn_local({
            let count = Rc::clone(&count);
            async move {
                for _ in 0..1000 {
                    let before = count.get();
                    executor().yield_now().await;
                    assert!(count.get() <= before + 1, "two runs in a row");
                }
            }
        });
        neighbour.await;
        // Timers and other queues, too.
        sleep(ms(2)).await;
        let queue = executor().create_task_queue(Shares::Static(1), Latency::NotImportant, "other");
        glommio::spawn_local_into(async {}, queue)
            .expect("the queue was just made")
            .await;
        let before = count.get();
        until(|| count.get() > before + 10).await;
        action.cancel().await;
    }
}

#[run_test]
async fn cancelling_the_wait_does_not_sit_it_out() {
    let count = Rc::default();
    let log = Log::default();
    let (make_run, guard) = (counted(&count, u32::MAX, HOUR), OnDrop(log.clone(), ()));
    let action = TimerActionRepeat::repeat(move || {
        let _ = &guard;
        make_run()
    });
    executor().yield_now().await;
    action.cancel().await;
    assert_eq!((count.get(), log.len()), (1, 1));

    let count = Rc::default();
    let action = TimerActionRepeat::repeat(counted(&count, u32::MAX, HOUR));
    until(|| count.get() > 0).await;
    sleep(ms(2)).await;
    action.destroy();
    action.destroy();
    assert_eq!(action.join().await, None);
    assert_eq!(count.get(), 1);
}

/// `Debug` says when the next run is, and nothing while one is under way or when there is none to
/// come.
#[run_test]
async fn debug_says_when_it_runs_next() {
    let next = |action: &TimerActionRepeat| {
        let text = format!("{action:?}");
        let (_, next) = text.split_once("next_run_in: ").expect("it is said");
        next.trim_end_matches(" }").to_owned()
    };
    let is_over = Rc::new(Cell::new(false));
    let ended = Rc::clone(&is_over);
    let action = TimerActionRepeat::repeat(move || {
        let ended = Rc::clone(&ended);
        async move {
            until(|| ended.get()).await;
            Some(HOUR)
        }
    });
    executor().yield_now().await;
    assert_eq!(next(&action), "None");
    is_over.set(true);
    until(|| next(&action) != "None").await;
    let said = next(&action);
    let seconds = said.trim_start_matches("Some(").trim_end_matches("s)");
    let seconds: f64 = seconds.parse().expect("minutes are left of the hour");
    assert!(0.0 < seconds && seconds <= 3600.0, "{said}");
    action.destroy();
    executor().yield_now().await;
    assert_eq!(next(&action), "None");
    assert_eq!(action.join().await, None);
}

#[run_test]
async fn cancelled_before_it_began_it_never_runs() {
    let count = Rc::default();
    TimerActionRepeat::repeat(counted(&count, u32::MAX, HOUR))
        .cancel()
        .await;
    assert_eq!(count.get(), 0);
}

#[run_test]
async fn destroyed_in_the_middle_of_a_run_it_is_dropped_there() {
    let log = Log::default();
    let events = log.clone();
    let action = TimerActionRepeat::repeat(move || {
        let (events, guard) = (events.clone(), OnDrop(events.clone(), "dropped"));
        async move {
            let _guard = guard;
            events.push("started");
            sleep(HOUR).await;
            events.push("ended");
            None
        }
    });
    until(|| log.len() > 0).await;
    action.destroy();
    assert_eq!(log.entries(), ["started"]);
    assert_eq!(action.join().await, None);
    assert_eq!(log.entries(), ["started", "dropped"]);
}

#[run_test]
async fn destroyed_from_inside_it_ends_at_its_next_suspension() {
    for suspends in [false, true] {
        let itself = Rc::new(RefCell::new(None::<TimerActionRepeat>));
        let log = Log::default();
        let (ordered, events) = (Rc::clone(&itself), log.clone());
        let action = TimerActionRepeat::repeat(move || {
            let (ordered, events) = (Rc::clone(&ordered), events.clone());
            async move {
                ordered.borrow().as_ref().expect("set below").destroy();
                events.push("goes on");
                if suspends {
                    executor().yield_now().await;
                    events.push("resumed");
                }
                Some(Duration::ZERO)
            }
        });
        *itself.borrow_mut() = Some(action);
        until(|| log.len() > 0).await;
        let action = itself.borrow_mut().take().expect("set above");
        assert_eq!(action.join().await, None);
        assert_eq!(log.entries(), ["goes on"]);
    }
}

/// An end that comes in the same poll as the order to end: the order counts.
#[run_test]
async fn destroyed_from_inside_its_last_run() {
    let itself = Rc::new(RefCell::new(None::<TimerActionRepeat>));
    let ordered = Rc::clone(&itself);
    let action = TimerActionRepeat::repeat(move || {
        let ordered = Rc::clone(&ordered);
        async move {
            ordered.borrow().as_ref().expect("set below").destroy();
            None
        }
    });
    *itself.borrow_mut() = Some(action);
    executor().yield_now().await;
    let action = itself.borrow_mut().take().expect("set above");
    assert_eq!(action.join().await, None);
}

#[run_test]
async fn after_its_end_orders_do_nothing() {
    let count = Rc::default();
    let action = TimerActionRepeat::repeat(counted(&count, 1, HOUR));
    until(|| count.get() == 1).await;
    executor().yield_now().await;
    action.destroy();
    action.destroy();
    assert_eq!(action.join().await, Some(()));
}

#[run_test]
async fn without_its_handle_it_goes_on() {
    let count = Rc::new(Cell::new(0));
    drop(TimerActionRepeat::repeat(counted(&count, 5, ms(1))));
    until(|| count.get() == 5).await;
}

#[run_test]
async fn the_queue_is_the_caller_s_or_the_one_that_is_named() {
    let queue = executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "other");
    let seen = Log::default();
    let note = |seen: &Log<_>| {
        let seen = seen.clone();
        move || {
            seen.push(executor().current_task_queue());
            std::future::ready(None)
        }
    };
    let named = TimerActionRepeat::repeat_into(note(&seen), queue).expect("it exists");
    assert_eq!(named.join().await, Some(()));
    let (make_run, caller_s) = (note(&seen), async {});
    glommio::spawn_local_into(
        async {
            caller_s.await;
            TimerActionRepeat::repeat(make_run).join().await
        },
        queue,
    )
    .expect("it exists")
    .await;
    TimerActionRepeat::repeat(note(&seen)).join().await;
    assert_eq!(
        seen.entries(),
        [queue, queue, executor().current_task_queue()]
    );
}

#[run_test]
async fn an_unknown_queue_is_an_error_and_drops_the_generator() {
    let gone = executor().create_task_queue(Shares::Static(1), Latency::NotImportant, "gone");
    executor().remove_task_queue(gone).expect("it is empty");
    let log = Log::default();
    let guard = OnDrop(log.clone(), "dropped");
    let error = TimerActionRepeat::repeat_into(
        move || {
            let _ = &guard;
            std::future::ready(None)
        },
        gone,
    )
    .expect_err("there is no such queue");
    assert_eq!(log.entries(), ["dropped"]);
    assert!(matches!(
        error,
        GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
            kind: QueueErrorKind::NotFound,
            ..
        })
    ));
}

#[run_test]
fn a_panic_ends_it_and_comes_out_of_run() {
    let local = LocalExecutor::default();
    let count = Rc::new(Cell::new(0));
    let kept = RefCell::new(None);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        local.run(async {
            let counted = Rc::clone(&count);
            *kept.borrow_mut() = Some(TimerActionRepeat::repeat(move || {
                counted.update(|it| it + 1);
                assert!(counted.get() < 3, "on purpose");
                std::future::ready(Some(ms(1)))
            }));
            sleep(HOUR).await;
        });
    }));
    assert!(panic.is_err());
    let action = kept.take().expect("set above");
    action.destroy();
    assert_eq!(local.run(action.join()), None);
    assert_eq!(count.get(), 3);
}

#[run_test]
async fn a_wait_without_end_is_the_last_one() {
    let count = Rc::new(Cell::new(0));
    let action = TimerActionRepeat::repeat(counted(&count, u32::MAX, Duration::MAX));
    until(|| count.get() > 0).await;
    sleep(ms(5)).await;
    assert_eq!(count.get(), 1);
    action.cancel().await;
}
