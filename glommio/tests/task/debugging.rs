//! The feature `debugging`: counting tasks, and following some of them.

use glommio::task::debugging::TaskDebugger;
use tracing::Level;

use crate::common::log::{Heard, hearing};
use crate::common::prelude::*;

/// What was logged about tasks while `f` ran.
fn heard(f: impl FnOnce()) -> Vec<Heard> {
    let ((), mut events) = hearing(f);
    events.retain(|event| event.field("task").is_some());
    assert!(events.iter().all(|event| event.level == Level::DEBUG));
    events
}

/// What was said about tasks with `label`.
fn about<'a>(label: &str, lines: &'a [Heard]) -> Vec<&'a str> {
    lines
        .iter()
        .filter(|line| line.field("label") == Some(label))
        .map(|line| line.message.as_str())
        .collect()
}

#[test]
fn tasks_are_counted_from_their_allocation_to_their_destruction() {
    assert_eq!(TaskDebugger::task_count(), 0);
    let executor = LocalExecutor::default();
    let places = [(); 10].map(|()| Parking::default());
    executor.run(async {
        assert_eq!(TaskDebugger::task_count(), 1, "this one");
        let done = spawn_local(async { 1 });
        assert_eq!(TaskDebugger::task_count(), 2, "its output is not taken");
        assert_eq!(done.await, 1);
        assert_eq!(TaskDebugger::task_count(), 1);
        let cancelled = spawn_local(std::future::pending::<()>());
        assert_eq!(TaskDebugger::task_count(), 2);
        cancelled.cancel().await;
        assert_eq!(TaskDebugger::task_count(), 1);
        for place in &places {
            spawn_local(place.clone()).detach();
        }
        assert_eq!(TaskDebugger::task_count(), 11);
    });
    assert_eq!(TaskDebugger::task_count(), 10, "they wait for the next run");
    drop(executor);
    assert_eq!(TaskDebugger::task_count(), 10, "their wakers are there");
    drop(places);
    assert_eq!(TaskDebugger::task_count(), 0, "none has leaked");
}

#[test]
fn a_task_that_another_thread_frees_was_this_threads() {
    let executor = LocalExecutor::default();
    let waker = executor.run(async {
        let parking = Parking::default();
        spawn_local(parking.clone()).detach();
        let waker = parking.waker().expect("it waits");
        parking.open();
        waker
    });
    drop(executor);
    assert_eq!(TaskDebugger::task_count(), 1, "the waker keeps the memory");
    std::thread::spawn(move || {
        drop(waker);
        assert_eq!(TaskDebugger::task_count(), 0);
    })
    .join()
    .expect("nothing panics");
    assert_eq!(TaskDebugger::task_count(), 0);
}

#[test]
fn a_label_is_for_the_next_task_whose_life_is_logged() {
    let parking = Parking::default();
    let lines = heard(|| {
        run(async {
            TaskDebugger::set_label("waits");
            let waits = spawn_local(parking.clone());
            let unlabelled = spawn_local(async {});
            TaskDebugger::set_label("dropped");
            drop(spawn_local(std::future::pending::<()>()));
            unlabelled.await;
            parking.open();
            waits.await;
        });
    });
    assert_eq!(
        about("waits", &lines),
        [
            "task is spawned",
            "task is polled",
            "task is scheduled",
            "task is polled",
            "task is ready",
            "task is over",
            "task is destroyed"
        ]
    );
    assert_eq!(
        about("dropped", &lines),
        [
            "task is spawned",
            "task is polled",
            "task is scheduled",
            "task is over",
            "task is destroyed"
        ]
    );
    assert_eq!(lines.len(), 12, "the others have no label: {lines:?}");
}

#[test]
fn the_name_of_a_task_is_its_label() {
    let lines = heard(|| {
        run(async {
            let name = TaskBuilder::new().name("static").spawn_local(async {});
            let made = TaskBuilder::new().name(format!("number {}", 7));
            let nowhere = queue("q");
            executor().remove_task_queue(nowhere).expect("it is empty");
            let refused = made.clone().spawn_local_into(async {}, nowhere);
            assert!(refused.is_err());
            spawn_local(async {}).await;
            let queue = TaskQueueHandle::default();
            let made = made.spawn_local_into(async {}, queue).expect("it is there");
            TaskBuilder::new().spawn_local(async {}).await;
            name.await;
            made.await;
        });
    });
    for label in ["static", "number 7"] {
        let said = about(label, &lines);
        assert_eq!(said.first(), Some(&"task is spawned"), "{label}: {lines:?}");
        assert_eq!(
            said.last(),
            Some(&"task is destroyed"),
            "{label}: {lines:?}"
        );
    }
    let spawned = lines.iter().filter(|it| it.message == "task is spawned");
    assert_eq!(
        spawned.count(),
        2,
        "a refused one labels no other: {lines:?}"
    );
}

#[test]
fn a_filter_chooses_by_the_label() {
    let spawned = || {
        let lines = heard(|| {
            run(async {
                for label in ["a", "b"] {
                    TaskDebugger::set_label(label);
                    spawn_local(async {}).await;
                }
                spawn_local(async {}).await;
            });
        });
        let mut labels: Vec<_> = lines
            .iter()
            .map(|line| line.field("label").map(str::to_owned))
            .collect();
        labels.dedup();
        labels
    };
    let label = |label: &str| Some(label.to_owned());
    assert_eq!(spawned(), [label("a"), label("b")]);
    TaskDebugger::set_filter(|label| label == Some("b"));
    assert_eq!(spawned(), [label("b")]);
    TaskDebugger::set_filter(|label| label.is_none());
    assert_eq!(spawned(), [None]);
    TaskDebugger::set_filter(|_| false);
    assert_eq!(spawned(), []);
}

#[run_test]
async fn a_filter_that_panics_leaves_no_task() {
    let before = TaskDebugger::task_count();
    TaskDebugger::set_filter(|_| panic!("not today"));
    let message = panic_of(|| spawn_local(async {}).detach());
    assert_eq!(message, "not today");
    assert_eq!(TaskDebugger::task_count(), before);
    TaskDebugger::set_filter(|_| false);
    spawn_local(async {}).await;
}

#[run_test]
async fn old_tasks_can_be_asked_for() {
    TaskDebugger::set_label("old");
    let old = spawn_local(std::future::pending::<()>());
    let unlabelled = spawn_local(std::future::pending::<()>());
    std::thread::sleep(Duration::from_millis(2));
    let aged = |older_than| heard(|| TaskDebugger::debug_aged_tasks(older_than));
    let lines = aged(Duration::from_millis(1));
    assert_eq!(about("old", &lines), ["task is old, and was last polled"]);
    assert_eq!(lines.len(), 1);
    assert!(aged(Duration::from_secs(3600)).is_empty());
    old.cancel().await;
    unlabelled.cancel().await;
    assert!(aged(Duration::ZERO).is_empty(), "it is gone");
}
