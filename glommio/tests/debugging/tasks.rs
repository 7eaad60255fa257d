//! Which tasks are in a dump, and what it says of each.

use glommio::debugging::{TaskState, dump};
use glommio::sync::Gate;
use glommio::task::JoinSet;

use crate::common::prelude::*;
use crate::{named, settle, task};

#[run_test]
async fn a_task_has_name_queue_place_and_age() {
    let before = Instant::now();
    let queue = queue("imports");
    let builder = TaskBuilder::new().name("made");
    let (line, made) = (line!(), builder.spawn_local_into(parked(), queue));
    let _made = made.expect("the queue is there");
    sleep(Duration::from_millis(5)).await;
    let dump = settle().await;
    let seen = task(&dump, "made");
    assert_eq!(seen.queue, "imports");
    assert_eq!(seen.future, "debugging::tasks::parked::{{closure}}");
    let place = seen.spawned_at.expect("it was spawned here");
    assert!(place.file().ends_with("tasks.rs"), "{place}");
    assert_eq!(place.line(), line);
    assert!(seen.age >= Duration::from_millis(5), "{seen}");
    assert!(
        seen.since >= Duration::from_millis(1) && seen.since <= seen.age,
        "{seen}"
    );
    // A round may have begun before.
    assert!(
        seen.age <= before.elapsed() + Duration::from_secs(60),
        "{seen}"
    );
    assert_eq!(dump.executor, executor().id());
    let text = dump.to_string();
    assert!(text.contains("\"made\" in queue \"imports\""), "{text}");
}

async fn parked() {
    std::future::pending().await
}

#[test]
fn each_way_to_spawn_says_where() {
    let local = LocalExecutor::default();
    let first = line!() + 1;
    let _before = local.spawn(parked());
    local.run(async {
        let queue = TaskQueueHandle::default();
        let gate = Gate::new();
        let mut set = JoinSet::new();
        let builder = TaskBuilder::new();
        let _a = spawn_local(parked());
        let _b = spawn_local_into(parked(), queue);
        let _c = executor().spawn_local(parked());
        let _d = executor().spawn_local_into(parked(), queue);
        let _e = gate.spawn(parked());
        let _f = gate.spawn_into(parked(), queue);
        set.spawn(parked());
        set.spawn_into(parked(), queue).expect("the queue is there");
        let _g = builder.spawn_local(parked());
        let last = line!() - 1;
        let dump = settle().await;
        let mut lines: Vec<_> = (dump.tasks.iter())
            .map(|it| it.spawned_at.expect("all are spawned here").line())
            .collect();
        lines.sort_unstable();
        let expected: Vec<_> = [first, first + 1]
            .into_iter()
            .chain(last - 8..=last)
            .collect();
        assert_eq!(lines, expected, "{dump}");
    });
}

#[run_test]
async fn a_refused_spawn_leaves_its_place_to_no_other() {
    let gone = queue("gone");
    executor().remove_task_queue(gone).expect("it is empty");
    assert!(spawn_local_into(parked(), gone).is_err());
    let line = line!() + 1;
    let _task = spawn_local(parked());
    let dump = settle().await;
    let places: Vec<_> = dump.tasks.iter().filter_map(|it| it.spawned_at).collect();
    assert!(places.iter().any(|it| it.line() == line), "{dump}");
    assert_eq!(places.len(), 2, "{dump}");
}

#[run_test]
async fn tasks_that_run_are_said_to_whether_first_polled_or_not() {
    let seen = named("first poll", async { dump() }).await;
    assert_eq!(task(&seen, "first poll").state, TaskState::Running);
    let main = |dump: &glommio::debugging::Dump| dump.tasks[0].state;
    assert_eq!(main(&seen), TaskState::Running, "it spawns the other");
    let seen = named("later poll", async {
        executor().yield_now().await;
        dump()
    });
    let seen = seen.await;
    assert_eq!(task(&seen, "later poll").state, TaskState::Running);
    assert_eq!(main(&seen), TaskState::Waiting, "{seen}");
    assert_eq!(seen.tasks.len(), 2, "{seen}");
}

#[run_test]
async fn a_task_that_was_woken_waits_for_its_turn() {
    let queued = TaskBuilder::new().name("queued");
    let task_queue = TaskQueueHandle::default();
    let _queued = queued.spawn_local_into(parked(), task_queue);
    let seen = dump();
    assert_eq!(task(&seen, "queued").state, TaskState::Runnable);
    assert_eq!(task(&settle().await, "queued").state, TaskState::Waiting);
}

#[run_test]
async fn what_a_poll_inside_another_waits_for_is_not_the_outer_ones() {
    let _outer = named("outer", async {
        let _inner = named("inner", sleep(Duration::from_secs(3600)));
        std::future::pending::<()>().await
    });
    let dump = settle().await;
    assert_eq!(task(&dump, "inner").waits_for.len(), 1, "{dump}");
    assert!(task(&dump, "outer").waits_for.is_empty(), "{dump}");
}

#[run_test]
async fn tasks_that_are_over_are_not_in_it() {
    let kept = named("kept", async { 1 });
    let cancelled = named("cancelled", parked());
    let detached = named("detached", parked()).detach();
    settle().await;
    cancelled.cancel().await;
    detached.cancel();
    detached.await;
    let dump = settle().await;
    assert_eq!(dump.tasks.len(), 1, "an output is no task: {dump}");
    assert_eq!(kept.await, 1);
}

#[test]
fn a_dump_shows_one_executor() {
    let [one, other] = [LocalExecutor::default(), LocalExecutor::default()];
    let _task = one.spawn(parked());
    other.run(async {
        let seen = dump();
        assert_eq!((seen.executor, seen.tasks.len()), (other.id(), 1), "{seen}");
    });
    one.run(async { assert_eq!(dump().tasks.len(), 2) });
}

#[test]
fn outside_of_executors_it_panics() {
    let message = panic_of(dump);
    assert_eq!(message, "no LocalExecutor is running on this thread");
}

#[run_test]
async fn a_name_is_printed_in_one_line() {
    let _task = named("two\nlines\u{1b}[0m", parked());
    let text = settle().await.to_string();
    assert!(text.contains(r#""two\nlines\u{1b}[0m""#), "{text}");
}

#[run_test]
async fn large_futures_are_in_it() {
    let _large = named("large", async {
        let bytes = [1_u8; 20_000];
        parked().await;
        bytes[7]
    });
    let dump = settle().await;
    assert_eq!(task(&dump, "large").state, TaskState::Waiting, "{dump}");
}

#[run_test]
async fn a_hundred_thousand_tasks_that_wait_in_a_row_are_dumped() {
    const TASKS: usize = 100_000;
    let mut last = spawn_local(parked());
    for _ in 1..TASKS {
        let before = last;
        last = spawn_in(TaskQueueHandle::default(), before);
    }
    settle().await;
    let before = Instant::now();
    let dump = dump();
    assert!(before.elapsed() < Duration::from_secs(30), "that is a hang");
    assert_eq!(dump.tasks.len(), TASKS + 1);
    assert!(dump.cycles.is_empty());
    assert!(dump.to_string().lines().count() > 3 * TASKS);
    // From the one that awaits to the one that is awaited: dropped inside each other, they would
    // overflow the stack.
    last.detach();
}
