//! When `need_preempt` turns true, and how long others wait beside tasks that cooperate.

use crate::common::best_of;
use crate::common::prelude::*;

/// Far above what an executor needs to cut a slice short.
const SLICE: Duration = Duration::from_secs(60);

#[run_test]
fn a_lone_task_has_its_slice_to_itself() {
    // Not preempted without a reason: the default slice is 100 ms, and begins later than this.
    let started = Instant::now();
    run(async {
        yield_now().await;
        spin_until_preempted();
        let slice = started.elapsed();
        assert!(slice >= Duration::from_millis(100), "{slice:?}");
        assert!(
            executor().need_preempt(),
            "it stays true until the executor has looked"
        );
        // A new slice begins.
        while executor().need_preempt() {
            yield_if_needed().await;
        }
    });
    let executor = with_slices_of(Duration::from_millis(10));
    let slice = best_of(5, || {
        let started = Instant::now();
        executor.run(async {
            yield_now().await;
            spin_until_preempted();
            started.elapsed()
        })
    });
    assert!(slice >= Duration::from_millis(10), "{slice:?}");
    assert!(slice < Duration::from_millis(90), "{slice:?}");
}

#[run_test]
fn a_latency_longer_than_the_default_lengthens_the_slice_of_a_queue_alone() {
    let executor = with_slices_of(Duration::from_millis(5));
    executor.run(async {
        const PATIENCE: Duration = Duration::from_millis(100);
        let latency = Latency::Matters(PATIENCE);
        let patient = glommio::executor().create_task_queue(Shares::default(), latency, "");
        let slices = async {
            let mut longest = Duration::ZERO;
            // A machine that is busy otherwise may keep the thread from a slice that has begun.
            for _ in 0..10 {
                sleep(Duration::from_millis(1)).await;
                let started = Instant::now();
                spin_until_preempted();
                longest = longest.max(started.elapsed());
                if longest >= PATIENCE / 2 {
                    break;
                }
            }
            longest
        };
        let longest = spawn_in(patient, slices).await;
        assert!(longest >= PATIENCE / 2, "{longest:?}");
    });
}

#[run_test]
fn a_busy_task_gives_way_to_an_impatient_queue() {
    // Slices that nothing but the latency ends.
    let made = with_slices_of(Duration::from_secs(3600));
    for latency in [1, 2, 5].map(Duration::from_millis) {
        made.run(async {
            let turns = Rc::new(Cell::new(0));
            let counted = Rc::clone(&turns);
            let queue =
                executor().create_task_queue(Shares::default(), Latency::Matters(latency), "");
            let _impatient = spawn_local_into(
                async move {
                    loop {
                        counted.set(counted.get() + 1);
                        executor().yield_task_queue_now().await;
                    }
                },
                queue,
            );
            for expected in 1..=5 {
                while turns.get() < expected {
                    // An inner loop that asks, and yields only when told to.
                    spin_until_preempted();
                    yield_if_needed().await;
                }
            }
        });
    }
}

#[test]
fn a_queue_that_becomes_impatient_in_the_middle_of_a_slice_cuts_it_short() {
    let started = Instant::now();
    with_slices_of(SLICE).run(async {
        let latency = Latency::Matters(Duration::from_millis(1));
        let queue = executor().create_task_queue(Shares::default(), latency, "");
        // The slice is on its way already.
        while started.elapsed() < Duration::from_millis(2) {
            assert!(!executor().need_preempt() || started.elapsed() > Duration::from_millis(1));
        }
        let _task = spawn_local_into(async {}, queue);
        spin_until_preempted();
    });
    let cut = started.elapsed();
    assert!(cut < SLICE, "{cut:?}");
}

#[run_test]
fn yield_if_needed_goes_on_at_once_when_it_is_not() {
    let made = with_slices_of(Duration::from_secs(3600));
    made.run(async {
        let others_ran = Rc::new(Cell::new(false));
        let set = Rc::clone(&others_ran);
        let other = spawn_local_into(async move { set.set(true) }, Default::default());
        yield_if_needed().await;
        assert!(!others_ran.get());
        other.expect("the default queue exists").await;
    });
}
