//! Panics come out of `run`, never abort, and leave the executor in working order.

use crate::common::prelude::*;

const AN_HOUR: Duration = Duration::from_secs(3600);

/// All that a program may still want of an executor whose `run` panicked.
fn assert_works(executor: &LocalExecutor, queues: &[TaskQueueHandle]) {
    let sum = executor.run(async {
        sleep(Duration::from_millis(1)).await;
        let mut sum = spawn_local(async { 1 }).await;
        for &queue in queues {
            let task = spawn_local_into(
                async {
                    glommio::executor().yield_task_queue_now().await;
                    1
                },
                queue,
            );
            sum += task.expect("the queue exists").await;
        }
        sum + glommio::executor().spawn_blocking(|| 1).await
    });
    assert_eq!(sum, queues.len() + 2);
}

#[run_test]
fn a_panic_of_the_main_future_leaves_run_with_its_payload() {
    let executor = LocalExecutor::default();
    let drops = DropCount::default();
    let guard = drops.guard();
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        executor.run(async move {
            let _guard = guard;
            yield_now().await;
            std::panic::panic_any(42_u8);
        })
    }));
    assert_eq!(payload.unwrap_err().downcast_ref(), Some(&42_u8));
    assert_eq!(drops.count(), 1);
    assert_works(&executor, &[]);
}

#[run_test]
fn a_panic_of_a_task_in_another_queue_neither_aborts_nor_stops_that_queue() {
    let executor = LocalExecutor::default();
    let mut handle = TaskQueueHandle::default();
    let drops = DropCount::default();
    let message = panic_of(|| {
        executor.run(async {
            handle = queue("other");
            // Others are in the queue, runnable and waiting, whose destructors want the executor.
            for wait in [true, false] {
                let guard = (
                    drops.guard(),
                    on_drop(|| assert!(glommio::executor().id() > 0)),
                );
                spawn_in(handle, async move {
                    let _guard = guard;
                    if wait {
                        sleep(AN_HOUR).await;
                    }
                    loop {
                        yield_now().await;
                    }
                })
                .detach();
            }
            spawn_in(handle, async { panic!("in another queue") }).detach();
            pending::<()>().await;
        });
    });
    assert_eq!(message, "in another queue");
    assert_eq!(drops.count(), 0, "the other tasks are still there");
    assert_works(&executor, &[handle]);
    drop(executor);
    assert_eq!(drops.count(), 2);
}

#[run_test]
fn the_main_future_is_dropped_before_run_unwinds() {
    let executor = LocalExecutor::default();
    let drops = DropCount::default();
    {
        let borrowed = String::from("on the stack of the caller");
        let seen = Cell::new(0);
        let message = panic_of(|| {
            executor.run(async {
                let _guard = drops.guard();
                let _looks = on_drop(|| seen.set(borrowed.len()));
                spawn_local(async {
                    sleep(Duration::from_millis(1)).await;
                    panic!("another task");
                })
                .detach();
                pending::<()>().await;
            });
        });
        assert_eq!(message, "another task");
        assert_eq!((drops.count(), seen.get()), (1, borrowed.len()));
    }
    assert_works(&executor, &[]);
}

#[run_test]
fn the_waiter_of_a_panicked_task_sees_none() {
    let executor = LocalExecutor::default();
    let parking = Parking::default();
    let gate = parking.clone();
    let task = executor.spawn(async move {
        gate.await;
        panic!("awaited");
    });
    let handle = task.detach();
    executor.run(yield_now());
    parking.open();
    assert_eq!(panic_of(|| executor.run(pending::<()>())), "awaited");
    assert_eq!(executor.run(handle), None::<()>);
}

#[run_test]
fn awaiting_a_panicked_task_panics_in_the_awaiter() {
    let executor = LocalExecutor::default();
    let task: Task<()> = executor.spawn(async { panic!("first") });
    assert_eq!(panic_of(|| executor.run(pending::<()>())), "first");
    let message = panic_of(|| executor.run(task));
    assert!(message.contains("task has failed"), "{message}");
    assert_works(&executor, &[]);
}

#[run_test]
fn a_panic_in_the_first_poll_unwinds_through_the_spawner() {
    let executor = LocalExecutor::default();
    executor.run(async {
        let message = panic_of(|| drop(spawn_local(async { panic!("at once") })));
        assert_eq!(message, "at once");
        // Caught by the spawner, it affects no other task, and nesting depth is what it was.
        for _ in 0..100 {
            panic_of(|| drop(spawn_local(async { panic!("at once") })));
        }
        let polled = Rc::new(Cell::new(false));
        let set = Rc::clone(&polled);
        let task = spawn_local(async move { set.set(true) });
        assert!(polled.get(), "spawned tasks are still polled at once");
        task.await;
    });
    assert_works(&executor, &[]);
}

#[run_test]
fn a_panicking_destructor_of_a_task_leaves_run() {
    let executor = LocalExecutor::default();
    let mut handle = TaskQueueHandle::default();
    let message = panic_of(|| {
        executor.run(async {
            handle = queue("other");
            let bomb = on_drop(|| panic!("in a destructor"));
            let task = spawn_local_into(
                async move {
                    let _bomb = bomb;
                    pending::<()>().await;
                },
                handle,
            );
            drop(task);
            pending::<()>().await;
        });
    });
    assert_eq!(message, "in a destructor");
    assert_works(&executor, &[handle]);
}

#[run_test]
fn two_panics_at_once_do_not_abort() {
    let executor = LocalExecutor::default();
    let message = panic_of(|| {
        executor.run(async {
            // The main future's destructor panics while the task's panic unwinds `run`.
            let _bomb = on_drop(|| panic!("second"));
            spawn_local(async {
                yield_now().await;
                panic!("first");
            })
            .detach();
            pending::<()>().await;
        });
    });
    assert_eq!(message, "first");
    assert_works(&executor, &[]);
}

#[run_test]
fn a_panic_of_a_shares_manager_does_not_put_its_queue_out_of_action() {
    #[derive(Default)]
    struct Fails {
        is_armed: Cell<bool>,
    }
    impl SharesManager for Fails {
        fn shares(&self) -> usize {
            assert!(!self.is_armed.get(), "no shares today");
            100
        }
        fn adjustment_period(&self) -> Duration {
            Duration::ZERO
        }
    }
    let executor = LocalExecutor::default();
    let manager = Rc::new(Fails::default());
    let mut handle = TaskQueueHandle::default();
    let message = panic_of(|| {
        executor.run(async {
            let shares = Shares::Dynamic(manager.clone());
            handle = glommio::executor().create_task_queue(shares, Latency::NotImportant, "fails");
            manager.is_armed.set(true);
            std::thread::sleep(Duration::from_micros(10));
            spawn_in(handle, async {}).await;
        });
    });
    assert_eq!(message, "no shares today");
    manager.is_armed.set(false);
    assert_works(&executor, &[handle]);
}

#[run_test]
async fn a_shares_manager_may_use_the_executor() {
    struct Reenters;
    impl SharesManager for Reenters {
        fn shares(&self) -> usize {
            let handle = queue("made by a shares manager");
            spawn_in(handle, async {}).detach();
            assert!(executor().id() > 0);
            7
        }
        fn adjustment_period(&self) -> Duration {
            spawn_local(async {}).detach();
            Duration::ZERO
        }
    }
    let shares = Shares::Dynamic(Rc::new(Reenters));
    let handle = executor().create_task_queue(shares, Latency::NotImportant, "re-enters");
    for _ in 0..10 {
        let task = spawn_local_into(yield_now(), handle);
        task.expect("it exists").await;
    }
}

#[run_test]
async fn a_panicking_waker_takes_nothing_else_down() {
    use std::sync::Arc;
    use std::task::{Context, Wake, Waker};

    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("in a waker");
        }
    }
    // A timer and a task that are polled, by hand, with a waker that panics.
    let waker = Waker::from(Arc::new(Bomb));
    let mut cx = Context::from_waker(&waker);
    let mut timer = Timer::new(AN_HOUR);
    assert!(Pin::new(&mut timer).poll(&mut cx).is_pending());
    timer.reset(Duration::from_millis(1));
    let mut task = spawn_local(yield_now());
    assert!(std::pin::Pin::new(&mut task).poll(&mut cx).is_pending());
    sleep(Duration::from_millis(3)).await;
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls > 3 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    timer.await;
    task.await;
}

#[run_test(in_child)]
fn an_executor_in_a_thread_local_is_dropped_without_aborting() {
    thread_local! {
        static EXECUTOR: LocalExecutor = LocalExecutor::default();
    }
    let dropped = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&dropped);
    std::thread::spawn(move || {
        EXECUTOR.with(|it| {
            let guard = on_drop(move || {
                count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
            it.spawn(async move {
                let _guard = guard;
                sleep(Duration::from_secs(1000)).await;
            })
            .detach();
            it.run(yield_now());
        });
    })
    .join()
    .expect("the thread ends in good order");
    assert_eq!(dropped.load(std::sync::atomic::Ordering::SeqCst), 1);
}
