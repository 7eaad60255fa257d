//! Spawning: when a task is first polled, in which queue, and what happens to scoped tasks.

use glommio::{spawn_scoped_local, spawn_scoped_local_into};

use crate::common::prelude::*;

/// A handle of a queue that this executor does not have.
fn unknown_queue() -> TaskQueueHandle {
    let before = queue("before");
    executor().remove_task_queue(before).expect("it is empty");
    before
}

#[test]
fn a_spawned_future_is_polled_inside_the_call() {
    let log = Log::default();
    run(async {
        let noting = log.clone();
        let task = spawn_local(async move {
            noting.note("first poll");
            yield_now().await;
            noting.note("second poll");
        });
        log.note("spawned");
        task.await;
    });
    assert_eq!(log.take(), ["first poll", "spawned", "second poll"]);
}

fn nest(depth: usize, deepest: Rc<Cell<usize>>) {
    spawn_local(async move {
        deepest.set(deepest.get() + 1);
        if depth > 1 {
            nest(depth - 1, deepest);
        }
    })
    .detach();
}

#[run_test]
fn spawns_nest_ten_thousand_deep_on_a_small_stack() {
    let small = std::thread::Builder::new().stack_size(256 << 10);
    let deepest = small
        .spawn(|| {
            LocalExecutor::default().run(async {
                let deepest = Rc::new(Cell::new(0));
                nest(10_000, Rc::clone(&deepest));
                while deepest.get() < 10_000 {
                    yield_now().await;
                }
                deepest.get()
            })
        })
        .expect("a thread starts")
        .join()
        .expect("the stack suffices");
    assert_eq!(deepest, 10_000);
}

/// As [`nest`], each task waiting for the one that it spawned.
fn nest_and_await(depth: usize) -> std::pin::Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move {
        if depth == 0 {
            return 0;
        }
        spawn_local(nest_and_await(depth - 1)).await + 1
    })
}

#[test]
fn ten_thousand_tasks_wait_for_one_another() {
    assert_eq!(run(nest_and_await(10_000)), 10_000);
}

#[run_test]
async fn spawning_into_a_queue_never_polls_inside_the_call() {
    let polled = Rc::new(Cell::new(0));
    let other = queue("other");
    for handle in [other, executor().current_task_queue()] {
        let count = Rc::clone(&polled);
        let before = polled.get();
        let task = spawn_in(handle, async move { count.set(count.get() + 1) });
        assert_eq!(polled.get(), before);
        task.await;
        assert_eq!(polled.get(), before + 1);
    }
}

#[run_test]
async fn tasks_run_in_the_queue_of_their_spawner_or_in_the_one_they_are_sent_to() {
    assert_eq!(executor().current_task_queue(), TaskQueueHandle::default());
    let (first, second) = (queue("first"), queue("second"));
    assert_eq!((first.index(), second.index()), (1, 2));
    let here = || executor().current_task_queue();
    let inherited = spawn_in(second, async move {
        let during_first_poll = spawn_local(async move { here() });
        yield_now().await;
        let spawned_later = spawn_local(async move {
            yield_now().await;
            here()
        });
        let sent_on = spawn_in(first, async move { here() });
        [
            during_first_poll.await,
            spawned_later.await,
            sent_on.await,
            here(),
        ]
    });
    assert_eq!(inherited.await, [second, second, first, second]);
    assert_eq!(here(), TaskQueueHandle::default());
}

#[run_test]
async fn spawning_into_an_unknown_queue_is_an_error_and_drops_the_future() {
    let unknown = unknown_queue();
    let (drops, polled) = (DropCount::default(), Rc::new(Cell::new(false)));
    let (guard, poll) = (drops.guard(), Rc::clone(&polled));
    let result = spawn_local_into(
        async move {
            let _guard = guard;
            poll.set(true);
        },
        unknown,
    );
    let error = result.expect_err("there is no such queue");
    assert_eq!(drops.count(), 1);
    assert!(
        matches!(&error, GlommioError::ExecutorError(kind)
                if format!("{kind:?}").contains("NotFound")
                && format!("{kind:?}").contains(&format!("index: {}", unknown.index()))),
        "{error:?}"
    );
    // SAFETY: nothing is borrowed.
    let scoped = unsafe { spawn_scoped_local_into(async {}, unknown) };
    assert!(scoped.is_err());
    yield_now().await;
    assert!(!polled.get());
}

#[run_test]
fn a_handle_of_another_executor_names_the_queue_of_that_number_here() {
    let (first, second) = (LocalExecutor::default(), LocalExecutor::default());
    let foreign = first.run(async { queue("first's") });
    assert!(second.run(async { spawn_local_into(async {}, foreign).is_err() }));
    let here = second.run(async {
        let own = queue("second's");
        assert_eq!(own, foreign);
        spawn_in(foreign, async { executor().current_task_queue() }).await
    });
    assert_eq!(here, foreign);
}

#[run_test]
fn an_executor_spawns_while_it_is_not_running() {
    let executor = LocalExecutor::default();
    let log = Log::default();
    let noting = log.clone();
    let task = executor.spawn(async move {
        noting.note("polled");
        glommio::executor().current_task_queue()
    });
    assert!(log.take().is_empty(), "not before the run");
    assert_eq!(executor.run(task), TaskQueueHandle::default());
    assert_eq!(log.take(), ["polled"]);
}

#[run_test]
async fn scoped_tasks_borrow_and_give_their_output() {
    let mut words = vec![String::from("a"), String::from("bc")];
    let lengths = {
        let words = &words;
        // SAFETY: both tasks are awaited before `words` goes away.
        let tasks = unsafe {
            (
                spawn_scoped_local(async move { words[0].len() }),
                spawn_scoped_local_into(
                    async move {
                        yield_now().await;
                        words[1].as_str()
                    },
                    TaskQueueHandle::default(),
                )
                .expect("the default queue exists"),
            )
        };
        (tasks.0.await, tasks.1.await.len())
    };
    words.clear();
    assert_eq!(lengths, (1, 2));
}

#[run_test]
async fn a_scoped_task_drops_an_output_that_was_not_taken() {
    let drops = DropCount::default();
    let guard = drops.guard();
    let borrowed = 5;
    let number = &borrowed;
    // SAFETY: the task is dropped before `borrowed`.
    let task = unsafe { spawn_scoped_local(async move { (guard, number) }) };
    assert_eq!(drops.count(), 0, "it is done and keeps its output");
    drop(task);
    assert_eq!(drops.count(), 1);
}
