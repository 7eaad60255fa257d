//! `run`: what it returns, what stays behind, and which executor is current.

use glommio::ExecutorProxy;

use crate::common::prelude::*;

#[run_test]
fn returns_the_output_of_a_future_that_borrows() {
    let executor = LocalExecutor::default();
    let words = [String::from("thread"), String::from("per core")];
    let mut lengths = Vec::new();
    let first = executor.run(async {
        yield_now().await;
        lengths.extend(words.iter().map(String::len));
        &words[0]
    });
    assert_eq!(first, "thread");
    assert_eq!(lengths, [6, 8]);
}

#[run_test]
fn unfinished_tasks_go_on_in_the_next_run() {
    let executor = LocalExecutor::default();
    let (parking, inner, log) = (Parking::default(), Parking::default(), Log::default());
    let kept = executor.run(async {
        let (gate, detached) = (parking.clone(), log.clone());
        spawn_local(async move {
            gate.await;
            detached.note("detached");
        })
        .detach();
        let (gate, kept) = (inner.clone(), log.clone());
        spawn_local(async move {
            sleep(Duration::from_millis(1)).await;
            // However long the first run took.
            gate.await;
            kept.note("kept");
            7
        })
    });
    assert!(log.take().is_empty(), "both wait");
    // Woken while no executor runs here: heard in the next run.
    parking.open();
    let output = executor.run(async {
        yield_now().await;
        inner.open();
        kept.await
    });
    assert_eq!(output, 7);
    let mut done = log.take();
    done.sort_unstable();
    assert_eq!(done, ["detached", "kept"]);
}

#[run_test]
fn other_tasks_do_not_run_on_when_the_main_future_is_done() {
    let executor = LocalExecutor::default();
    let (is_done, late_turns) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    executor.run(async {
        for _ in 0..3 {
            let (is_done, late_turns) = (Rc::clone(&is_done), Rc::clone(&late_turns));
            spawn_local(async move {
                loop {
                    late_turns.set(late_turns.get() + u32::from(is_done.get()));
                    yield_now().await;
                }
            })
            .detach();
        }
        yield_now().await;
        is_done.set(true);
    });
    // Not for the rest of the slice, which would be some hundred thousand turns.
    assert!(late_turns.get() <= 3, "{}", late_turns.get());
}

#[run_test]
fn a_run_inside_a_run_panics_and_leaves_the_outer_one_whole() {
    let (outer, inner) = (LocalExecutor::default(), LocalExecutor::default());
    let output = outer.run(async {
        let message = panic_of(|| inner.run(async {}));
        assert_eq!(
            message,
            "There is already an LocalExecutor running on this thread"
        );
        let message = panic_of(|| outer.run(async {}));
        assert!(message.contains("already"), "{message}");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(executor().id(), outer.id());
        spawn_local(async { "whole" }).await
    });
    assert_eq!(output, "whole");
    assert_eq!(inner.run(async { executor().id() }), inner.id());
}

#[run_test(in_child)]
fn an_executor_that_could_not_be_made_has_used_up_its_number() {
    let first = LocalExecutor::default().id();
    let nowhere = LocalExecutorBuilder::new(Placement::Fixed(usize::MAX));
    nowhere.make().expect_err("there is no such CPU");
    assert_eq!(LocalExecutor::default().id(), first + 2);
}

#[run_test]
fn outside_a_run_yields_work_and_the_rest_says_what_is_missing() {
    assert_without_executor();
    let made = LocalExecutor::default();
    // Made is not running.
    assert_without_executor();
    made.run(async {});
    assert_without_executor();
    panic_of(|| made.run(async { panic!("out of the run") }));
    assert_without_executor();
    drop(made);
    assert_without_executor();
}

fn assert_without_executor() {
    let proxy = executor();
    assert!(!proxy.need_preempt());
    block_on(async {
        glommio::yield_if_needed().await;
        executor().yield_if_needed().await;
        executor().yield_now().await;
        executor().yield_task_queue_now().await;
    });
    type Call = fn(ExecutorProxy);
    let calls: [(&str, Call); 7] = [
        ("id", |it| _ = it.id()),
        ("current_task_queue", |it| _ = it.current_task_queue()),
        ("spawn_local", |it| _ = it.spawn_local(async {}).detach()),
        ("spawn_local_into", |it| {
            _ = it.spawn_local_into(async {}, TaskQueueHandle::default());
        }),
        ("spawn_blocking", |it| drop(it.spawn_blocking(|| ()))),
        ("create_task_queue", |it| {
            _ = it.create_task_queue(Shares::default(), Latency::NotImportant, "");
        }),
        ("sleep", |_| block_on(sleep(Duration::ZERO))),
    ];
    for (name, call) in calls {
        let message = panic_of(|| call(executor()));
        assert!(
            message.contains("no LocalExecutor is running on this thread"),
            "{name}: {message}"
        );
    }
}

#[test]
fn the_proxy_is_send_and_sync_and_literal() {
    fn shareable<T: Send + Sync>(_: &T) {}
    shareable(&ExecutorProxy {});
    shareable(&executor().need_preempt());
}

#[test]
fn an_executor_prints() {
    let text = format!("{:?}", LocalExecutor::default());
    assert!(text.starts_with("LocalExecutor"), "{text}");
}
