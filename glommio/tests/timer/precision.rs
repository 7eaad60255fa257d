//! `LocalExecutorBuilder::timer_precision`.

use glommio::TimerPrecision;

use crate::common::prelude::*;
use crate::harness::ms;

/// Sleeps end early in the kernel's eyes; the timers must not.
#[run_test]
fn the_tightest_timers_are_never_early_and_keep_their_order() {
    let executor = LocalExecutorBuilder::default()
        .timer_precision(TimerPrecision::Tightest)
        .make()
        .expect("an executor");
    executor.run(async {
        let mut numbers = Numbers::new(28);
        for _ in 0..50 {
            let sleepers: Vec<_> = (0..20)
                .map(|_| {
                    let deadline = Instant::now() + Duration::from_micros(numbers.below(2000));
                    spawn_local(async move {
                        Timer::at(deadline).await;
                        assert!(Instant::now() >= deadline);
                        deadline
                    })
                })
                .collect();
            join_all(sleepers).await;
        }
    });
}

#[run_test]
fn a_message_ends_the_wait_for_a_deadline_of_the_tightest() {
    let executor = LocalExecutorBuilder::default()
        .timer_precision(TimerPrecision::Tightest)
        .make()
        .expect("an executor");
    executor.run(async {
        let _far = spawn_local(sleep(ms(3_600_000)));
        for _ in 0..100 {
            let _near = spawn_local(sleep(Duration::from_micros(50)));
            assert_eq!(glommio::executor().spawn_blocking(|| 7).await, 7);
        }
    });
}
