//! What counts as a stall, and what is told of it.

use libc::SIGUSR1;

use crate::common::prelude::*;
use crate::witness::{INTERVAL, Seen, Witness, count_signals, has_a_frame, stall_until_signalled};

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Ten per cent, but at least 10 ms.
fn a_tenth(interval: Duration) -> Option<Duration> {
    Some((interval / 10).max(Duration::from_millis(10)))
}

/// Times the first turn of a queue that is not the default one, and no other.
fn first_turn(of: fn(Duration) -> Option<Duration>) -> Witness {
    let has_run = AtomicBool::new(false);
    Witness::new(SIGUSR1, move |queue, interval| {
        let is_first = queue.index() > 0 && !has_run.swap(true, Ordering::SeqCst);
        of(interval).filter(|_| is_first)
    })
}

#[run_test]
fn a_task_that_blocks_for_longer_than_its_budget_is_one_detection() {
    let witness = first_turn(a_tenth);
    let executor = LocalExecutorBuilder::default()
        .preempt_timer(Duration::from_millis(50))
        .detect_stalls(Some(witness.boxed()))
        .make()
        .expect("an executor");
    let handle = executor.run(async {
        let handle = queue("blocks");
        let task = spawn_local_into(
            async {
                thread::sleep(Duration::from_millis(100));
                glommio::executor().yield_task_queue_now().await;
            },
            handle,
        );
        task.expect("it exists").await;
        handle
    });
    let seen = witness.the_one();
    assert_eq!(seen.executor, executor.id());
    assert_eq!((seen.queue, &*seen.queue_name), (handle, "blocks"));
    assert_eq!(seen.budget, Duration::from_millis(60));
    assert!(seen.overage >= Duration::from_millis(40), "{seen:?}");
    for part in [&executor.id().to_string(), "\"blocks\"", "60ms"] {
        assert!(seen.text.contains(part), "{part} in {}", seen.text);
    }
    assert!(seen.text.contains(&format!("{:?}", seen.overage)));
}

#[run_test]
fn a_task_that_blocks_within_its_budget_is_none() {
    let witness = Witness::new(SIGUSR1, |_, _| Some(AN_HOUR));
    let executor = witness.executor();
    executor.run(async {
        for _ in 0..4 {
            thread::sleep(4 * INTERVAL);
            glommio::executor().yield_task_queue_now().await;
        }
    });
    assert_eq!(witness.take().len(), 0);
}

#[run_test]
fn a_task_that_waits_is_none() {
    let budget = Duration::from_secs(1);
    let witness = Witness::new(SIGUSR1, move |_, interval| Some(budget - interval));
    // A machine that stands still for as long in the middle of a turn is another matter.
    let is_none = || {
        witness.executor().run(sleep(budget * 5 / 4));
        witness.take().is_empty()
    };
    assert!(std::iter::repeat_with(is_none).take(5).any(|it| it));
}

#[run_test]
fn turns_for_which_there_is_no_threshold_are_not_watched() {
    let witness = Witness::new(SIGUSR1, |queue, _| {
        (queue.index() > 0).then_some(Duration::ZERO)
    });
    let executor = witness.executor();
    executor.run(async { thread::sleep(5 * INTERVAL) });
    assert_eq!(witness.take().len(), 0);
    // The other queue is.
    executor.run(async {
        let task = spawn_local_into(async { thread::sleep(5 * INTERVAL) }, queue("timed"));
        task.expect("it exists").await;
    });
    assert_eq!(witness.the_one().queue_name, "timed");
}

#[inline(never)]
fn the_culprit() {
    stall_until_signalled();
    has_a_frame("the_culprit");
}

#[run_test]
fn the_stack_is_that_of_the_code_that_stalls() {
    count_signals(SIGUSR1);
    let witness = Witness::of(SIGUSR1);
    let executor = witness.executor();
    let seen = witness.stack_of(|| executor.run(async { the_culprit() }));
    assert!(seen.was_in("the_culprit"), "{seen:#?}");
    assert!(
        !seen.was_in("on_signal"),
        "it begins where the thread was interrupted: {seen:#?}"
    );
    assert!(seen.text.contains("the_culprit"));
}

#[run_test]
fn a_stall_of_many_budgets_is_told_once_and_the_next_one_again() {
    count_signals(SIGUSR1);
    let witness = Witness::new(SIGUSR1, |_, _| Some(Duration::ZERO));
    let executor = witness.executor();
    for _ in 0..5 {
        let seen = witness.stack_of(|| {
            executor.run(async {
                the_culprit();
                thread::sleep(8 * INTERVAL);
            });
        });
        assert!(seen.was_in("the_culprit"), "{seen:#?}");
        assert_eq!(seen.budget, INTERVAL);
        assert!(seen.overage >= 8 * INTERVAL, "{seen:?}");
    }
}

#[run_test]
fn a_short_budget_ends_in_time_after_a_long_one() {
    count_signals(SIGUSR1);
    let witness = Witness::new(SIGUSR1, |queue, _| match queue.index() {
        1 => Some(Duration::ZERO),
        2 => Some(Duration::MAX),
        _ => Some(AN_HOUR),
    });
    witness.executor().run(async {
        let (short, endless) = (queue("short"), queue("endless"));
        for _ in 0..3 {
            for queue in [TaskQueueHandle::default(), endless] {
                let task = spawn_local_into(async {}, queue);
                task.expect("it exists").await;
            }
            // By now the watchdog sleeps for an hour, or is about to.
            let task = spawn_local_into(async { the_culprit() }, short);
            task.expect("it exists").await;
        }
    });
    let seen = witness.take();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|it| it.queue_name == "short"));
}

#[run_test]
fn the_threshold_is_asked_with_the_interval_of_the_moment() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&asked);
    let witness = Witness::new(SIGUSR1, move |queue, interval| {
        note.lock()
            .expect("unpoisoned")
            .push((queue.index(), interval));
        None
    });
    let matters = |interval| Latency::Matters(interval);
    witness.executor().run(async {
        let shares = Shares::default;
        for (latency, name) in [
            (matters(INTERVAL / 2), "quick"),
            (matters(INTERVAL * 2), "slow"),
        ] {
            let queue = executor().create_task_queue(shares(), latency, name);
            spawn_in(queue, async {}).await;
        }
    });
    let mut asked = std::mem::take(&mut *asked.lock().expect("unpoisoned"));
    asked.dedup();
    assert_eq!(
        asked,
        [
            (0, INTERVAL),
            (1, INTERVAL / 2),
            (0, INTERVAL),
            (2, INTERVAL * 2),
            (0, INTERVAL)
        ]
    );
}

#[run_test]
fn a_stack_of_any_depth_is_taken_and_cut_off() {
    #[inline(never)]
    fn nested(depth: usize) -> usize {
        if depth == 0 {
            the_culprit();
            return 0;
        }
        std::hint::black_box(nested(depth - 1)) + 1
    }
    count_signals(SIGUSR1);
    let witness = Witness::of(SIGUSR1);
    let executor = witness.executor();
    let seen = witness.stack_of(|| {
        executor.run(async {
            assert_eq!(nested(2000), 2000);
        });
    });
    assert!(seen.was_in("the_culprit"));
    assert_eq!(seen.frames, 256);
}

#[inline(never)]
fn stalls_in_an_even_one() {
    stall_until_signalled();
    has_a_frame("stalls_in_an_even_one");
}

#[inline(never)]
fn stalls_in_an_odd_one() {
    stall_until_signalled();
    has_a_frame("stalls_in_an_odd_one");
}

#[run_test]
fn ten_executors_at_once_see_their_own_stalls_only() {
    const ROUNDS: usize = 3;
    count_signals(SIGUSR1);
    let timed: Vec<_> = (0..10)
        .map(|i| {
            // The queue's turns are timed, those of the main future not.
            let witness = Witness::new(SIGUSR1, move |queue, _| {
                (queue.index() > 0).then_some(Duration::ZERO)
            });
            let handle = LocalExecutorBuilder::default()
                .preempt_timer(INTERVAL)
                .detect_stalls(Some(witness.boxed()))
                .spawn(move || async move {
                    let queue = queue(&format!("queue of {i}"));
                    let stall = if i % 2 == 0 {
                        stalls_in_an_even_one
                    } else {
                        stalls_in_an_odd_one
                    };
                    let mut all_seen = Vec::new();
                    while all_seen.iter().filter(|it: &&Seen| it.is_meant()).count() < ROUNDS {
                        let task = spawn_local_into(async move { stall() }, queue);
                        task.expect("it exists").await;
                        all_seen.push(witness.the_one());
                    }
                    (executor().id(), all_seen)
                });
            handle.expect("a thread starts")
        })
        .collect();
    for (i, handle) in timed.into_iter().enumerate() {
        let (id, all_seen) = handle.join().expect("nothing fails");
        for seen in all_seen {
            assert_eq!(seen.executor, id);
            assert_eq!(seen.queue_name, format!("queue of {i}"));
            if seen.is_meant() {
                assert_eq!(
                    seen.was_in("stalls_in_an_even_one"),
                    i % 2 == 0,
                    "{seen:#?}"
                );
                assert_eq!(seen.was_in("stalls_in_an_odd_one"), i % 2 == 1, "{seen:#?}");
            }
        }
    }
}
