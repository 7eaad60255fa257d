//! Handlers that do more than they should, the default one, and tasks that panic during a timed
//! turn.

use std::fmt;
use std::panic::resume_unwind;

use glommio::{DefaultStallDetectionHandler, StallDetection, StallDetectionHandler};
use libc::SIGUSR1;

use crate::common::log::hearing;
use crate::common::prelude::*;
use crate::witness::{INTERVAL, Witness, count_signals, signals, stall_until_signalled};

/// Calls functions in the place of a handler's methods.
struct Calls<T, S> {
    threshold: T,
    stall: S,
}

impl<T, S> fmt::Debug for Calls<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

impl<T, S> StallDetectionHandler for Calls<T, S>
where
    T: Fn(TaskQueueHandle) + Send + Sync,
    S: Fn(&StallDetection<'_>) + Send + Sync,
{
    fn threshold(&self, queue: TaskQueueHandle, _: Duration) -> Option<Duration> {
        (self.threshold)(queue);
        Some(Duration::ZERO)
    }

    fn stall(&self, detection: StallDetection<'_>) {
        (self.stall)(&detection);
    }
}

fn watched_by(handler: impl StallDetectionHandler + 'static) -> LocalExecutor {
    LocalExecutorBuilder::default()
        .preempt_timer(INTERVAL)
        .detect_stalls(Some(Box::new(handler)))
        .make()
        .expect("an executor")
}

fn stall() {
    thread::sleep(3 * INTERVAL);
}

/// Two queues take turns, and the second stalls.
async fn takes_turns(second: TaskQueueHandle) {
    for _ in 0..3 {
        let task = spawn_local_into(async { stall() }, second);
        task.expect("it exists").await;
        executor().yield_task_queue_now().await;
    }
}

#[run_test]
fn a_panic_in_the_threshold_leaves_run_and_nothing_else() {
    let fails = Arc::new(AtomicUsize::new(0));
    let armed = Arc::clone(&fails);
    let executor = watched_by(Calls {
        threshold: move |queue: TaskQueueHandle| {
            let fails = armed.load(Ordering::SeqCst) == 1 && queue.index() == 1;
            assert!(!fails, "no threshold today");
        },
        stall: |_: &StallDetection<'_>| {},
    });
    let handle = executor.run(async { queue("second") });
    fails.store(1, Ordering::SeqCst);
    assert_eq!(
        panic_of(|| executor.run(takes_turns(handle))),
        "no threshold today"
    );
    fails.store(0, Ordering::SeqCst);
    executor.run(takes_turns(handle));
}

#[run_test]
fn a_panic_in_the_handler_leaves_run_and_nothing_else() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let executor = watched_by(Calls {
        threshold: |_| {},
        stall: move |detection: &StallDetection<'_>| {
            if detection.queue_handle.index() == 1 {
                let told = count.fetch_add(1, Ordering::SeqCst);
                assert!(told != 1, "the second time it fails");
            }
        },
    });
    let handle = executor.run(async { queue("second") });
    assert_eq!(
        panic_of(|| executor.run(takes_turns(handle))),
        "the second time it fails"
    );
    assert_eq!(told.load(Ordering::SeqCst), 2);
    executor.run(takes_turns(handle));
    assert_eq!(told.load(Ordering::SeqCst), 5);
}

#[inline(never)]
fn stalls_and_panics() {
    stall_until_signalled();
    panic!("stalled, then panicked");
}

#[run_test]
fn a_task_that_panics_after_its_budget_is_not_reported_and_the_next_one_is() {
    count_signals(SIGUSR1);
    let witness = Witness::of(SIGUSR1);
    let executor = witness.executor();
    let message = panic_of(|| executor.run(async { stalls_and_panics() }));
    assert_eq!(message, "stalled, then panicked");
    assert_eq!(witness.take().len(), 0);
    let seen = witness.stack_of(|| executor.run(async { stall_until_signalled() }));
    assert!(
        !seen.was_in("stalls_and_panics"),
        "one stack, not two: {seen:#?}"
    );
}

#[run_test]
fn a_turn_that_ended_in_a_panic_is_not_watched_any_more() {
    count_signals(SIGUSR1);
    let witness = Witness::new(SIGUSR1, |_, _| Some(10 * INTERVAL));
    let executor = witness.executor();
    panic_of(|| {
        // Without the hook, which would print for longer than the budget lasts.
        executor.run(async { resume_unwind(Box::new("long before the budget ends")) });
    });
    let before = signals();
    // The budget of the turn ends meanwhile.
    thread::sleep(20 * INTERVAL);
    assert_eq!(signals(), before);
}

#[run_test]
fn a_handler_may_use_the_executor() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = [Arc::clone(&ran), Arc::clone(&ran)];
    let [of_threshold, of_stall] = counts;
    fn spawn_some(count: &Arc<AtomicUsize>) {
        let (now, later) = (Arc::clone(count), Arc::clone(count));
        spawn_local(async move {
            now.fetch_add(1, Ordering::SeqCst);
        })
        .detach();
        let queue = queue("made by a handler");
        let task = spawn_local_into(
            async move {
                executor().yield_task_queue_now().await;
                later.fetch_add(1, Ordering::SeqCst);
            },
            queue,
        );
        task.expect("it exists").detach();
        assert!(executor().id() > 0);
    }
    let asked = AtomicUsize::new(0);
    let executor = watched_by(Calls {
        // Each queue that it makes is asked about as well: there must be an end.
        threshold: move |_| {
            if asked.fetch_add(1, Ordering::SeqCst) < 10 {
                spawn_some(&of_threshold);
            }
        },
        stall: move |detection: &StallDetection<'_>| {
            if detection.queue_handle.index() == 0 {
                spawn_some(&of_stall);
            }
        },
    });
    executor.run(async {
        stall();
        // The tasks of ten thresholds and of the stall, two each.
        while ran.load(Ordering::SeqCst) < 22 {
            glommio::executor().yield_task_queue_now().await;
        }
    });
}

#[run_test]
fn the_default_handler_warns_in_the_log_after_ten_milliseconds_too_many() {
    let (id, events) = hearing(|| {
        let executor = watched_by(DefaultStallDetectionHandler {});
        executor.run(async {
            let queue = queue("slow");
            let task = spawn_local_into(async { stall() }, queue);
            task.expect("it exists").await;
        });
        executor.id()
    });
    let warnings: Vec<_> = events
        .iter()
        .filter(|event| event.level == tracing::Level::WARN && event.message.contains("\"slow\""))
        .collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let message = &warnings[0].message;
    assert!(message.contains(&format!("executor {id}:")), "{message}");
    assert!(message.contains("budget of 20ms"), "{message}");
    assert_eq!(
        i32::from(DefaultStallDetectionHandler {}.signal()),
        libc::SIGUSR1
    );
}

#[run_test]
fn no_queue_pays_for_what_a_handler_does() {
    const ITS_TIME: Duration = Duration::from_millis(200);
    let slow = watched_by(Calls {
        threshold: |_| {},
        stall: |_: &StallDetection<'_>| thread::sleep(ITS_TIME),
    });
    slow.run(async {
        stall();
        executor().yield_task_queue_now().await;
        let stats = executor().executor_stats();
        assert!(stats.executor_runtime() >= 3 * INTERVAL);
        assert!(stats.total_runtime() - stats.executor_runtime() >= ITS_TIME);
    });
}
