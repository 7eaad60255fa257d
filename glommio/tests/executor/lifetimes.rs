//! Executors come and go without leaving anything behind.

use std::time::Duration;

use futures_lite::future::yield_now;
use glommio::timer::sleep;
use glommio::{LocalExecutor, executor, spawn_local};

use crate::common::{Parking, descriptors, in_child_with, resident_bytes, threads, wait_until};

/// The address sanitizer keeps freed memory for a while: less of it, where memory is counted.
const KEEP_LITTLE: (&str, &str) = ("ASAN_OPTIONS", "quarantine_size_mb=1");

/// One executor with timers, tasks, foreign wakes and a blocking call under way when it is dropped.
fn live_and_die(with_blocking_call: bool) {
    let made = LocalExecutor::default();
    let parking = Parking::default();
    let kept = made.run(async {
        for hours in 1..4 {
            spawn_local(sleep(Duration::from_secs(3600 * hours))).detach();
        }
        spawn_local(parking.clone()).detach();
        sleep(Duration::from_nanos(1)).await;
        if with_blocking_call {
            let call = executor().spawn_blocking(|| std::thread::sleep(Duration::from_micros(50)));
            spawn_local(call).detach();
        }
        spawn_local(parking.clone())
    });
    let waker = parking.waker().expect("a task waits there");
    waker.wake_by_ref();
    drop(made);
    drop(waker);
    drop(kept);
}

fn assert_nothing_grows(rounds: usize, with_blocking_call: bool) {
    let threads_before = threads();
    let settled = || {
        // Threads of the blocking pools end by themselves.
        wait_until(|| threads() <= threads_before);
        (descriptors(), resident_bytes())
    };
    (0..rounds / 10).for_each(|_| live_and_die(with_blocking_call));
    let (fds, resident) = settled();
    (0..rounds).for_each(|_| live_and_die(with_blocking_call));
    let (fds_after, resident_after) = settled();
    assert_eq!(fds_after, fds);
    let grown = resident_after.saturating_sub(resident);
    // One leaked task per executor would show as several megabytes, one ring as gigabytes.
    assert!(grown < 8 << 20, "{grown} bytes over {rounds} executors");
}

#[test]
fn ten_thousand_executors_leave_no_descriptor_thread_or_memory() {
    in_child_with(
        "lifetimes::ten_thousand_executors_leave_no_descriptor_thread_or_memory",
        &[KEEP_LITTLE],
        || {
            assert_nothing_grows(10_000, false);
            assert_nothing_grows(1_000, true);
        },
    );
}

#[test]
fn executors_on_threads_of_their_own_leave_nothing_either() {
    in_child_with(
        "lifetimes::executors_on_threads_of_their_own_leave_nothing_either",
        &[KEEP_LITTLE],
        || {
            let live = || {
                let handle = glommio::LocalExecutorBuilder::default()
                    .spawn(|| async {
                        spawn_local(sleep(Duration::from_secs(3600))).detach();
                        yield_now().await;
                    })
                    .expect("a thread starts");
                handle.join().expect("it ends in good order");
            };
            let threads_before = threads();
            (0..50).for_each(|_| live());
            wait_until(|| threads() <= threads_before);
            let before = (descriptors(), resident_bytes());
            (0..500).for_each(|_| live());
            wait_until(|| threads() <= threads_before);
            assert_eq!(descriptors(), before.0);
            assert!(resident_bytes().saturating_sub(before.1) < 8 << 20);
        },
    );
}

#[test]
fn a_million_tasks_one_after_the_other_leave_nothing_in_a_running_executor() {
    in_child_with(
        "lifetimes::a_million_tasks_one_after_the_other_leave_nothing_in_a_running_executor",
        &[KEEP_LITTLE],
        || {
            LocalExecutor::default().run(async {
                let live = async |count: u32| {
                    for i in 0..count {
                        match i % 4 {
                            0 => spawn_local(async {}).await,
                            1 => spawn_local(yield_now()).await,
                            2 => drop(spawn_local(sleep(Duration::from_secs(3600)))),
                            _ => drop(spawn_local(yield_now()).detach()),
                        }
                        if i % 1000 == 0 {
                            executor().spawn_blocking(|| ()).await;
                        }
                    }
                };
                live(50_000).await;
                let before = (descriptors(), resident_bytes());
                live(1_000_000).await;
                assert_eq!(descriptors(), before.0);
                let grown = resident_bytes().saturating_sub(before.1);
                assert!(grown < 8 << 20, "{grown} bytes");
            });
        },
    );
}
