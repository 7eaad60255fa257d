//! Names of tasks in reports of stalls.

use glommio::DefaultStallDetectionHandler;
use libc::SIGUSR1;

use crate::common::log::hearing;
use crate::common::prelude::*;
use crate::witness::{INTERVAL, Witness, count_signals, stall_until_signalled};

/// Keeps the thread for longer than its budget.
fn stall() {
    std::thread::sleep(4 * INTERVAL);
}

/// The name in the one report of a turn in which `future` runs. On a busy machine another turn may
/// be over its budget as well.
fn name_in_report<F: Future<Output = ()> + 'static>(future: impl Fn() -> F) -> Option<String> {
    for _ in 0..20 {
        let witness = Witness::of(SIGUSR1);
        witness.executor().run(future());
        let mut seen = witness.take();
        if seen.len() == 1 {
            return seen.remove(0).task_name;
        }
    }
    panic!("no try had one stall");
}

#[run_test]
fn the_report_names_the_task_that_stalls() {
    for name in ["parser", "writer 7"] {
        let said = name_in_report(move || async move {
            let quick = TaskBuilder::new().name("quick").spawn_local(async {
                yield_now().await;
            });
            let slow = TaskBuilder::new().name(name).spawn_local(async {
                yield_now().await;
                stall();
            });
            slow.await;
            quick.await;
        });
        assert_eq!(said.as_deref(), Some(name));
    }
}

#[run_test]
fn a_task_without_a_name_has_none_in_the_report() {
    let said = name_in_report(|| async {
        let other = TaskBuilder::new().name("another").spawn_local(yield_now());
        let slow = TaskBuilder::new().spawn_local(async {
            yield_now().await;
            stall();
        });
        slow.await;
        other.await;
    });
    assert_eq!(said, None);
}

/// A task that is polled inside the call that spawns it.
#[run_test]
fn of_nested_tasks_the_inner_one_is_named_if_the_budget_ends_in_it() {
    let nested = |outer_stalls: bool| {
        name_in_report(move || async move {
            let outer = TaskBuilder::new().name("outer").spawn_local(async move {
                yield_now().await;
                if outer_stalls {
                    stall();
                }
                let inner = TaskBuilder::new().name("inner").spawn_local(async move {
                    stall();
                });
                inner.await;
            });
            outer.await;
        })
    };
    assert_eq!(nested(false).as_deref(), Some("inner"));
    assert_eq!(nested(true).as_deref(), Some("outer"));
}

#[run_test]
fn a_task_that_was_queued_is_named() {
    count_signals(SIGUSR1);
    let witness = Witness::of(SIGUSR1);
    let executor = witness.executor();
    executor.run(async {
        let task = TaskBuilder::new().name("slow").spawn_local_into(
            async { stall_until_signalled() },
            TaskQueueHandle::default(),
        );
        task.expect("the default queue is there").await;
    });
    let seen = witness.take();
    assert!(
        seen.iter()
            .any(|it| it.task_name.as_deref() == Some("slow")),
        "{seen:?}"
    );
}

/// A handler that knows nothing of names is told in a span of the log.
#[run_test]
fn the_default_handler_logs_the_name() {
    let ((), heard) = hearing(|| {
        let executor = LocalExecutorBuilder::default()
            .preempt_timer(INTERVAL)
            .detect_stalls(Some(Box::new(DefaultStallDetectionHandler {})))
            .make()
            .expect("an executor");
        executor.run(async {
            let slow = TaskBuilder::new().name("slow").spawn_local(async {
                yield_now().await;
                stall();
            });
            slow.await;
        });
    });
    let place = heard.iter().position(|it| it.field("task") == Some("slow"));
    let span = place.unwrap_or_else(|| panic!("no span names it: {heard:?}"));
    assert_eq!(heard[span].message, "stall");
    assert!(
        heard[span + 1].message.contains("over its budget"),
        "{heard:?}"
    );
}

/// Switched over in the middle of a named task's poll: that turn is not reported, by either.
#[run_test]
fn detection_that_is_replaced_in_a_named_task_reports_nothing_of_it() {
    let is_none = || {
        let (first, second) = (Witness::of(SIGUSR1), Witness::of(SIGUSR1));
        let executor = Rc::new(first.executor());
        let itself = Rc::clone(&executor);
        let handler = second.boxed();
        executor.run(async move {
            let switching = async move {
                yield_now().await;
                itself
                    .detect_stalls(Some(handler))
                    .expect("a thread is free");
                stall();
                yield_now().await;
            };
            let task = TaskBuilder::new().name("switches");
            task.spawn_local(switching).await;
        });
        first.take().is_empty() && second.take().is_empty()
    };
    // A machine that stands still for as long in another turn is another matter.
    assert!(std::iter::repeat_with(is_none).take(10).any(|it| it));
}

/// It is there for polls that go wrong, too.
#[run_test]
fn a_named_task_that_panics_leaves_no_name_behind() {
    let witness = Witness::of(SIGUSR1);
    let stalling = witness.executor();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stalling.run(async {
            let task = TaskBuilder::new().name("panics").spawn_local(async {
                yield_now().await;
                stall();
                panic!("as planned");
            });
            let () = task.await;
        });
    }));
    assert!(panicked.is_err());
    witness.take();
    stalling.run(async {
        spawn_local(async {
            executor().yield_now().await;
            stall();
        })
        .await;
    });
    assert!(witness.take().iter().all(|seen| seen.task_name.is_none()));
}
