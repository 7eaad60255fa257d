//! Executors in a time namespace, whose monotonic clock is not the host's. A kernel that takes the
//! one for the other is an hour late, or at once done with each wait.

use crate::common::prelude::*;
use crate::common::{fork, in_time_namespace};

const HOUR: i64 = 3600;

/// All that waits for a moment, with at most `most_turns` turns of the executor for each.
fn wait_in_all_ways(most_turns: u64) {
    let executor = with_slices_of(Duration::from_millis(50));
    let turns = || glommio::executor().executor_stats().scheduler_runs();
    executor.run(async {
        for wait in [30, 400].map(Duration::from_millis) {
            turns();
            let started = Instant::now();
            sleep(wait).await;
            assert!(started.elapsed() >= wait, "a sleep");
            let turns = turns();
            assert!(turns <= most_turns, "{turns} turns for a sleep");
        }
    });
    // The end of a slice, in a loop that never enters the kernel.
    let started = Instant::now();
    executor.run(async { while !glommio::executor().need_preempt() {} });
    assert!(started.elapsed() >= Duration::from_millis(49), "a slice");
    // Many sleeps towards a deadline that is far off, ended by wakes, and then one that lasts.
    executor.run(async {
        let wait = Duration::from_millis(700);
        turns();
        let started = Instant::now();
        or(sleep(wait), async {
            for _ in 0..40 {
                let call = || std::thread::sleep(Duration::from_millis(2));
                glommio::executor().spawn_blocking(call).await;
            }
            pending().await
        })
        .await;
        assert!(started.elapsed() >= wait, "a long wait");
        let turns = turns();
        assert!(turns <= 40 * most_turns, "{turns} turns for a long wait");
    });
}

#[test]
fn waits_are_not_longer_where_the_clock_is_ahead_of_the_hosts() {
    in_time_namespace(HOUR, || wait_in_all_ways(20));
}

/// Each wait of less than three seconds would be over at once: the executor spins until its time
/// has come.
#[test]
fn idle_waits_do_not_spin_where_the_clock_is_behind_the_hosts() {
    in_time_namespace(-3, || wait_in_all_ways(20));
}

/// What the parent knows of its clock is not true in a child.
#[run_test(in_child)]
fn a_child_forked_into_a_time_namespace_looks_at_its_own_clock() {
    LocalExecutor::default().run(sleep(Duration::from_millis(1)));
    // SAFETY: it takes a number, and changes nothing in this process.
    let result = unsafe { libc::unshare(libc::CLONE_NEWTIME) };
    if result != 0 {
        let error = io::Error::last_os_error();
        return skipped(format_args!("no time namespace may be made here: {error}"));
    }
    // SAFETY: it does nothing.
    let thread = unsafe { libc::gettid() };
    let offsets = format!("monotonic {HOUR} 0\n");
    fs::write(format!("/proc/{thread}/timens_offsets"), offsets).expect("it is empty");
    fork(|| LocalExecutor::default().run(sleep(Duration::from_millis(30))));
    LocalExecutor::default().run(sleep(Duration::from_millis(30)));
}
