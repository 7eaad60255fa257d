//! Switching the detection on, over and off, and what is left then.

use glommio::StallDetectionHandler;
use libc::{SIGUSR1, SIGUSR2};

use crate::common::prelude::*;
use crate::witness::{INTERVAL, Witness, count_signals, stall_until_signalled};

#[run_test]
fn a_new_handler_replaces_the_one_before() {
    count_signals(SIGUSR1);
    count_signals(SIGUSR2);
    let (first, second) = (Witness::of(SIGUSR1), Witness::of(SIGUSR2));
    let executor = first.executor();
    assert_eq!(first.holders(), 2);
    executor.run(async { stall_until_signalled() });
    executor
        .detect_stalls(Some(second.boxed()))
        .expect("it is possible");
    assert_eq!(first.holders(), 1, "the handler is dropped");
    executor.run(async { stall_until_signalled() });
    assert_eq!((first.take().len(), second.take().len()), (1, 1));
    drop(executor);
    assert_eq!(second.holders(), 1);
}

#[run_test]
fn nothing_is_detected_after_it_is_switched_off() {
    count_signals(SIGUSR1);
    let witness = Witness::of(SIGUSR1);
    let executor = with_slices_of(INTERVAL);
    let stall = || executor.run(async { thread::sleep(5 * INTERVAL) });
    stall();
    executor.detect_stalls(None).expect("off it was");
    executor.detect_stalls(Some(witness.boxed())).expect("on");
    executor.run(async { stall_until_signalled() });
    assert_eq!(witness.take().len(), 1);
    executor.detect_stalls(None).expect("off");
    assert_eq!(witness.holders(), 1);
    stall();
    executor.detect_stalls(None).expect("off still");
    assert_eq!(witness.take().len(), 0);
}

#[run_test]
fn a_turn_in_which_the_detection_changes_is_not_reported() {
    count_signals(SIGUSR1);
    let (first, second) = (Witness::of(SIGUSR1), Witness::of(SIGUSR1));
    let executor = first.executor();
    executor.run(async {
        stall_until_signalled();
        executor.detect_stalls(None).expect("off");
        thread::sleep(3 * INTERVAL);
    });
    executor.detect_stalls(Some(first.boxed())).expect("on");
    executor.run(async {
        stall_until_signalled();
        executor.detect_stalls(Some(second.boxed())).expect("over");
        thread::sleep(3 * INTERVAL);
    });
    assert_eq!((first.take().len(), second.take().len()), (0, 0));
    assert_eq!((first.holders(), second.holders()), (1, 2));
    executor.run(async { stall_until_signalled() });
    assert_eq!((first.take().len(), second.take().len()), (0, 1));
}

#[run_test(in_child)]
fn its_thread_ends_with_it() {
    let witness = Witness::new(SIGUSR1, |_, _| Some(Duration::from_secs(3600)));
    let executor = LocalExecutor::default();
    executor.run(async {});
    let without = threads();
    // A thread that was joined may still be listed for a moment.
    let settles_at = |count| wait_until(|| threads() == count);
    for _ in 0..3 {
        // On, and over.
        for _ in 0..3 {
            executor.detect_stalls(Some(witness.boxed())).expect("on");
            executor.run(async {});
            settles_at(without + 1);
        }
        executor.detect_stalls(None).expect("off");
        settles_at(without);
    }
    for _ in 0..50 {
        let others: Vec<_> = (0..3).map(|_| witness.executor()).collect();
        others.iter().for_each(|it| it.run(async {}));
        settles_at(without + 3);
        // Also one that has not been switched off, and one whose thread panics.
        drop(others);
        let thread = LocalExecutorBuilder::default()
            .detect_stalls(Some(witness.boxed()))
            .spawn(|| async { assert!(threads() == 0, "this is meant to fail") });
        assert!(thread.expect("it starts").join().is_err());
        settles_at(without);
    }
    assert_eq!(witness.holders(), 1);
}

#[run_test(in_child)]
fn the_thread_that_watches_is_not_bound_with_the_executor() {
    let here = nix::unistd::Pid::from_raw(0);
    let mask = |thread| nix::sched::sched_getaffinity(thread).expect("it has a mask");
    let permitted = mask(here);
    let executor = LocalExecutorBuilder::new(glommio::Placement::Fixed(0))
        .detect_stalls(Some(Witness::of(SIGUSR1).boxed()))
        .make()
        .expect("CPU 0 is online");
    assert_eq!(
        mask(here),
        {
            let mut bound = nix::sched::CpuSet::new();
            bound.set(0).expect("it fits");
            bound
        },
        "the executor's thread is"
    );
    let name = format!("stalls-{}", executor.id());
    let of_watchdog = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("procfs is mounted");
        tasks.flatten().find_map(|task| {
            let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
            let id = task.file_name().to_str()?.parse().ok()?;
            (comm.trim() == name).then_some(nix::unistd::Pid::from_raw(id))
        })
    };
    wait_until(|| of_watchdog().is_some_and(|thread| mask(thread) == permitted));
}

#[run_test(in_child)]
fn an_idle_executor_does_not_wake_for_it() {
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&asked);
    let witness = Witness::new(SIGUSR1, move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Some(Duration::ZERO)
    });
    let executor = witness.executor();
    let switches = || {
        let status = std::fs::read_dir("/proc/self/task").expect("procfs is mounted");
        status
            .flatten()
            .filter_map(|it| std::fs::read_to_string(it.path().join("status")).ok())
            .filter(|it| it.contains("stalls-"))
            .filter_map(|it| {
                let (_, rest) = it.split_once("\nvoluntary_ctxt_switches:")?;
                rest.split_whitespace().next()?.parse::<usize>().ok()
            })
            .sum::<usize>()
    };
    executor.run(async {
        let sleep = glommio::timer::sleep;
        // The watchdog goes to sleep for good within a budget of the last turn.
        sleep(20 * INTERVAL).await;
        let (turns, before) = (asked.load(Ordering::SeqCst), switches());
        sleep(50 * INTERVAL).await;
        let (turns, woken) = (asked.load(Ordering::SeqCst) - turns, switches() - before);
        // Armed once for each turn, it may have been woken to arm and at the end of the budget.
        assert!(woken <= 2 * turns + 1, "{woken} times in {turns} turns");
    });
}

/// Switched off in the middle of a turn, the handler goes when the turn ends: here, by a panic.
#[run_test(in_child)]
fn a_handler_that_panics_when_it_is_dropped_does_not_abort_an_unwinding_turn() {
    #[derive(Debug)]
    struct Bomb;
    impl StallDetectionHandler for Bomb {}
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the destructor of a handler");
        }
    }
    let executor = LocalExecutor::default();
    executor
        .detect_stalls(Some(Box::new(Bomb)))
        .expect("it is possible");
    let message = panic_of(|| {
        executor.run(async {
            executor.detect_stalls(None).expect("it is always possible");
            panic!("out of the turn");
        });
    });
    assert_eq!(message, "out of the turn");
    executor.run(async {});
}
