//! Task queues: yielding between them, removing them.

use crate::common::prelude::*;

fn queue(shares: usize) -> TaskQueueHandle {
    executor().create_task_queue(Shares::Static(shares), Latency::NotImportant, "a queue")
}

fn kind_of(
    result: Result<(), GlommioError<()>>,
    handle: TaskQueueHandle,
) -> Option<QueueErrorKind> {
    match result {
        Ok(()) => None,
        Err(GlommioError::ExecutorError(ExecutorErrorKind::QueueError { index, kind })) => {
            assert_eq!(index, handle.index());
            Some(kind)
        }
        Err(other) => panic!("not about a queue: {other:?}"),
    }
}

fn remove(handle: TaskQueueHandle) -> Option<QueueErrorKind> {
    kind_of(executor().remove_task_queue(handle), handle)
}

#[run_test]
async fn tasks_of_a_queue_that_yield_alternate_strictly() {
    for yields_the_queue in [false, true] {
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..10)
            .map(|i| {
                let order = Rc::clone(&order);
                let turns = async move {
                    for _ in 0..1000 {
                        order.borrow_mut().push(i);
                        if yields_the_queue {
                            executor().yield_task_queue_now().await;
                        } else {
                            executor().yield_now().await;
                        }
                    }
                };
                spawn_in(TaskQueueHandle::default(), turns)
            })
            .collect();
        join_all(tasks).await;
        assert!(
            order
                .borrow()
                .chunks(10)
                .all(|turn| turn.iter().copied().eq(0..10))
        );
    }
}

#[run_test]
async fn an_empty_queue_is_removed_once() {
    let handle = queue(1);
    assert_eq!(remove(handle), None);
    assert_eq!(remove(handle), Some(QueueErrorKind::NotFound));
    let next = queue(1);
    assert_eq!(next.index(), handle.index() + 1, "indexes are not reused");
    assert_eq!(remove(next), None);
}

#[run_test]
async fn a_queue_with_unfinished_tasks_is_not_removed() {
    let handle = queue(1);
    let parking = Parking::default();
    let waiting = spawn_in(handle, parking.clone());
    assert_eq!(
        remove(handle),
        Some(QueueErrorKind::StillActive),
        "runnable"
    );
    while parking.waker().is_none() {
        executor().yield_task_queue_now().await;
    }
    assert_eq!(remove(handle), Some(QueueErrorKind::StillActive), "waiting");
    parking.open();
    assert_eq!(remove(handle), Some(QueueErrorKind::StillActive), "woken");
    waiting.await;
    assert_eq!(remove(handle), None);
}

#[run_test]
async fn a_queue_is_not_removed_by_a_task_of_its_own() {
    let handle = queue(1);
    let inside = spawn_in(handle, async move { remove(handle) });
    assert_eq!(inside.await, Some(QueueErrorKind::StillActive));
    assert_eq!(remove(handle), None);
}

#[run_test]
async fn a_queue_goes_once_its_cancelled_tasks_are_gone() {
    let handle = queue(1);
    let parking = Parking::default();
    let task = spawn_in(handle, parking.clone());
    yield_now().await;
    drop(task);
    assert_eq!(remove(handle), Some(QueueErrorKind::StillActive));
    while let Some(kind) = remove(handle) {
        assert_eq!(kind, QueueErrorKind::StillActive);
        executor().yield_task_queue_now().await;
    }
    // Wakes of what was there are ignored.
    if let Some(waker) = parking.waker() {
        waker.wake();
    }
    yield_now().await;
}

#[run_test]
async fn an_output_outlives_the_queue_of_its_task() {
    let handle = queue(1000);
    let task = spawn_in(handle, async { String::from("output") });
    while remove(handle).is_some() {
        executor().yield_task_queue_now().await;
    }
    assert_eq!(task.await, "output");
}

#[run_test]
fn the_default_queue_is_never_removed() {
    let made = LocalExecutor::default();
    let default = TaskQueueHandle::default();
    let outside = || kind_of(made.remove_task_queue(default), default);
    assert_eq!(outside(), Some(QueueErrorKind::StillActive));
    made.run(async { assert_eq!(remove(default), Some(QueueErrorKind::StillActive)) });
    assert_eq!(outside(), Some(QueueErrorKind::StillActive));
    made.run(async { spawn_local(async {}).await });
}

#[run_test]
fn queues_are_removed_between_runs_too() {
    let made = LocalExecutor::default();
    let parking = Parking::default();
    let (empty, waiting, task) = made.run(async {
        let (empty, waiting) = (queue(1), queue(2));
        let task = spawn_in(waiting, parking.clone());
        while parking.waker().is_none() {
            executor().yield_task_queue_now().await;
        }
        (empty, waiting, task)
    });
    assert_eq!(kind_of(made.remove_task_queue(empty), empty), None);
    let remove_waiting = || kind_of(made.remove_task_queue(waiting), waiting);
    assert_eq!(remove_waiting(), Some(QueueErrorKind::StillActive));
    parking.open();
    made.run(task);
    assert_eq!(remove_waiting(), None);
    assert_eq!(remove_waiting(), Some(QueueErrorKind::NotFound));
    let other = LocalExecutor::default();
    assert_eq!(
        kind_of(other.remove_task_queue(empty), empty),
        Some(QueueErrorKind::NotFound)
    );
}

#[run_test]
fn a_queue_removed_while_its_executor_dies_is_no_trouble() {
    let made = LocalExecutor::default();
    let removed = Rc::new(Cell::new(None));
    let result = Rc::clone(&removed);
    made.run(async {
        let handle = queue(1);
        let removes = crate::common::on_drop(move || result.set(Some(remove(handle))));
        spawn_local(async move {
            let _removes = removes;
            std::future::pending::<()>().await;
        })
        .detach();
    });
    drop(made);
    assert_eq!(removed.get(), Some(None));
}

#[test]
fn handles_are_plain_values() {
    fn shareable<T: Send + Sync + Copy + std::hash::Hash>(_: T) {}
    let default = TaskQueueHandle::default();
    shareable(default);
    assert_eq!(default.index(), 0);
    assert!(format!("{default:?}").contains('0'));
}

#[run_test]
async fn queues_of_any_shares_and_latency_make_progress() {
    let latencies = [
        Latency::NotImportant,
        Latency::Matters(Duration::ZERO),
        Latency::Matters(Duration::from_nanos(1)),
        Latency::Matters(Duration::from_millis(1)),
        Latency::Matters(Duration::MAX),
    ];
    let busy = spawn_local_into(
        async {
            loop {
                executor().yield_task_queue_now().await;
            }
        },
        queue(1000),
    );
    let mut tasks = Vec::new();
    for latency in latencies {
        for shares in [0, 1, 1000, usize::MAX] {
            let queue = executor().create_task_queue(Shares::Static(shares), latency, "");
            let work = async move {
                for _ in 0..20 {
                    glommio::yield_if_needed().await;
                    executor().yield_task_queue_now().await;
                    sleep(Duration::from_micros(10)).await;
                }
                queue
            };
            tasks.push(spawn_in(queue, work));
        }
    }
    for task in tasks {
        let queue = task.await;
        while remove(queue).is_some() {
            executor().yield_task_queue_now().await;
        }
    }
    drop(busy);
}

#[run_test]
async fn thousands_of_queues_come_and_go() {
    let queues: Vec<_> = (0..5000).map(|i| queue(i % 1000 + 1)).collect();
    let tasks: Vec<_> = queues
        .iter()
        .map(|&handle| {
            let work = async move {
                yield_now().await;
                executor().current_task_queue()
            };
            spawn_in(handle, work)
        })
        .collect();
    for (task, queue) in tasks.into_iter().zip(&queues) {
        assert_eq!(task.await, *queue);
    }
    for queue in queues {
        while remove(queue).is_some() {
            executor().yield_task_queue_now().await;
        }
    }
    assert_eq!(queue(1).index(), 5001);
}
