//! What a panic of a task does where the policy is not to unwind: one task ends, or the process.

use std::panic::panic_any;

use glommio::task::{JoinHandle, JoinSet};
use glommio::{PanicPolicy, spawn_scoped_local};

use crate::common::aborts_in_child;
use crate::common::log::{hearing_everywhere, panicking_log_everywhere};
use crate::common::prelude::*;

fn isolating() -> LocalExecutor {
    LocalExecutorBuilder::default()
        .on_task_panic(PanicPolicy::Isolate)
        .make()
        .expect("an executor can be made")
}

fn panicked() -> u64 {
    executor().executor_stats().tasks_panicked()
}

/// The payload of the panic of `f`.
fn payload_of<T>(f: impl FnOnce() -> T) -> Box<dyn std::any::Any + Send> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(_) => panic!("it does not panic"),
        Err(payload) => payload,
    }
}

#[run_test]
fn an_isolated_panic_ends_its_task_and_no_other() {
    let local = isolating();
    let drops = DropCount::default();
    local.run(async {
        let others = [1, 2, 3].map(|n| {
            spawn_local(async move {
                for _ in 0..10 {
                    yield_now().await;
                }
                n
            })
        });
        // In the first poll, in a later one, and in another queue.
        for polls in 0..3 {
            let guard = drops.guard();
            spawn_local(async move {
                let _guard = guard;
                for _ in 0..polls {
                    yield_now().await;
                }
                panic!("detached");
            })
            .detach();
        }
        let guard = drops.guard();
        let fails = async move {
            let _guard = guard;
            panic!("in another queue");
        };
        let other_queue = queue("other");
        spawn_in(other_queue, fails).detach();
        let mut sum = 0;
        for other in others {
            sum += other.await;
        }
        assert_eq!(sum, 6);
        while drops.count() < 4 {
            executor().yield_task_queue_now().await;
        }
        assert_eq!((panicked(), panicked()), (4, 0), "reading resets");
        executor().yield_task_queue_now().await;
        executor()
            .remove_task_queue(other_queue)
            .expect("it has no task left");
    });
}

#[run_test]
fn what_awaits_an_isolated_task_panics_with_its_payload() {
    let local = isolating();
    type End = fn(Task<()>) -> Pin<Box<dyn Future<Output = ()>>>;
    let ends: [End; 3] = [
        |task| Box::pin(task),
        |task| Box::pin(async { task.detach().await.expect("it re-raises") }),
        |task| Box::pin(async { task.cancel().await.expect("it re-raises") }),
    ];
    for end in ends {
        for polls in 0..2 {
            let payload = payload_of(|| {
                local.run(async {
                    let task = spawn_local(async move {
                        for _ in 0..polls {
                            yield_now().await;
                        }
                        panic_any(42_u8);
                    });
                    yield_now().await;
                    yield_now().await;
                    end(task).await;
                });
            });
            assert_eq!(payload.downcast_ref(), Some(&42_u8));
        }
    }
}

#[run_test]
fn a_task_that_waits_for_an_isolated_one_is_woken_and_panics_as_well() {
    isolating().run(async {
        let payloads: Rc<Cell<u32>> = Rc::default();
        let inner = spawn_local(async {
            yield_now().await;
            panic_any("inner");
        });
        let outer = spawn_local(inner);
        let seen = Rc::clone(&payloads);
        spawn_local(async move {
            let _on_drop = on_drop(move || seen.set(1));
            outer.await;
        })
        .detach();
        while payloads.get() == 0 {
            yield_now().await;
        }
        assert_eq!(panicked(), 3);
    });
}

#[run_test]
fn the_handle_of_a_panicked_task_re_raises_once() {
    let local = isolating();
    local.run(async {
        let mut handle: JoinHandle<()> = spawn_local(async { panic_any("once") }).detach();
        let mut awaits = async || (&mut handle).await;
        let payload = payload_of(|| futures_lite::future::block_on(awaits()));
        assert_eq!(payload.downcast_ref(), Some(&"once"));
        assert_eq!(awaits().await, None);
    });
}

#[run_test]
fn a_payload_that_panics_in_its_destructor_is_contained() {
    let local = isolating();
    local.run(async {
        // Without a handle, with one that is dropped later, and with one that outlives the executor.
        spawn_local(async { panic_any(Mutex::new(bomb())) }).detach();
        let task = spawn_local(async { panic_any(Mutex::new(bomb())) });
        assert_eq!(panicked(), 2);
        drop(task);
    });
    let outlives: JoinHandle<()> =
        local.run(async { spawn_local(async { panic_any(Mutex::new(bomb())) }).detach() });
    drop(local);
    drop(outlives);
}

#[run_test]
fn a_join_set_tells_of_an_isolated_panic() {
    isolating().run(async {
        let mut set = JoinSet::new();
        set.spawn(async { panic!("at once") });
        set.spawn(async {
            yield_now().await;
            panic!("later");
        });
        set.spawn(async {
            yield_now().await;
            yield_now().await;
            7
        });
        for _ in 0..2 {
            let error = set.join_next().await.expect("a member").unwrap_err();
            assert!(error.is_panic() && !error.is_cancelled());
        }
        assert_eq!(set.join_next().await, Some(Ok(7)));
        assert_eq!(set.join_next().await, None);
    });
}

#[run_test]
fn a_queue_has_a_policy_of_its_own() {
    let local = LocalExecutor::default();
    let message = panic_of(|| {
        local.run(async {
            let isolated = queue("isolated");
            executor()
                .on_task_panic(isolated, PanicPolicy::Isolate)
                .expect("it exists");
            let task = spawn_local_into(
                async {
                    // A child is in the same queue, and first polled right here.
                    let child = spawn_local(async { panic!("of a child") });
                    drop(child);
                    assert_eq!(panicked(), 1);
                    panic!("isolated");
                },
                isolated,
            );
            task.expect("it exists").detach();
            while panicked() == 0 {
                executor().yield_task_queue_now().await;
            }
            // The other queue unwinds, and so does this one again.
            let fails = || async { panic!("it unwinds") };
            panic_of(|| drop(spawn_local(fails())));
            executor()
                .on_task_panic(isolated, PanicPolicy::Unwind)
                .expect("it exists");
            spawn_in(isolated, fails()).detach();
            pending::<()>().await;
        });
    });
    assert_eq!(message, "it unwinds");
    local.run(async {
        let missing = queue("missing");
        executor().remove_task_queue(missing).expect("it is empty");
        match executor().on_task_panic(missing, PanicPolicy::Isolate) {
            Err(GlommioError::ExecutorError(glommio::ExecutorErrorKind::QueueError {
                kind: QueueErrorKind::NotFound,
                ..
            })) => {}
            other => panic!("{other:?}"),
        }
    });
}

#[run_test]
fn the_main_future_scoped_tasks_and_destructors_unwind_under_every_policy() {
    for policy in [
        PanicPolicy::Unwind,
        PanicPolicy::Isolate,
        PanicPolicy::Abort,
    ] {
        let local = LocalExecutorBuilder::default()
            .on_task_panic(policy)
            .make()
            .expect("an executor can be made");
        let main = panic_of(|| local.run(async { panic!("of the main future") }));
        assert_eq!(main, "of the main future");
        for polls in 0..2 {
            let scoped = panic_of(|| {
                local.run(async {
                    let fails = async {
                        for _ in 0..polls {
                            yield_now().await;
                        }
                        panic!("of a scoped task");
                    };
                    // SAFETY: it borrows nothing that this block does not outlive, and is awaited.
                    let task = unsafe { spawn_scoped_local(fails) };
                    task.await;
                });
            });
            assert_eq!(scoped, "of a scoped task");
        }
        let destructor = panic_of(|| {
            local.run(async {
                spawn_local(async {
                    yield_now().await;
                    on_drop(|| panic!("of an output"))
                })
                .detach();
                pending::<()>().await;
            });
        });
        assert_eq!(destructor, "of an output");
        assert_eq!(local.run(async { panicked() }), 0);
    }
}

#[run_test]
fn a_destructor_that_panics_while_an_isolated_panic_unwinds_does_not_abort() {
    isolating().run(async {
        let task = spawn_local(async {
            let _bomb = on_drop(|| drop(std::panic::catch_unwind(|| panic!("caught"))));
            panic!("first");
        });
        drop(task);
        // Held by the future, not by the frames of the poll: dropped with the future.
        let bomb = on_drop(|| panic!("second"));
        spawn_local(futures_lite::future::poll_fn(
            move |_| -> std::task::Poll<()> {
                let _bomb = &bomb;
                panic!("first");
            },
        ))
        .detach();
        assert_eq!(panicked(), 2);
    });
}

#[run_test(in_child)]
fn an_isolated_panic_is_logged_with_the_name_of_its_task() {
    let heard = hearing_everywhere();
    isolating().run(async {
        TaskBuilder::new()
            .name("parser")
            .spawn_local(async {
                yield_now().await;
                panic!("unexpected {}", "byte");
            })
            .detach();
        while panicked() == 0 {
            yield_now().await;
        }
        // A name does not stay for the next.
        spawn_local(async { panic_any(7) }).detach();
    });
    let heard = heard();
    let of = |message: &str| {
        let found = heard.iter().find(|it| it.message == message);
        found.unwrap_or_else(|| panic!("no {message:?} in {heard:?}"))
    };
    let first = of("a task has panicked: unexpected byte");
    assert_eq!(first.level, tracing::Level::ERROR);
    assert_eq!(first.field("task"), Some("parser"));
    assert_eq!(first.field("queue"), Some("default"));
    let second = of("a task has panicked: no message");
    assert_eq!(second.field("task"), Some("unnamed"));
}

#[run_test(in_child)]
fn a_log_that_panics_does_not_keep_a_panic_from_being_isolated() {
    let panics = panicking_log_everywhere();
    isolating().run(async {
        spawn_local(async { panic_any(7) }).detach();
        assert_eq!(panicked(), 1);
    });
    assert_eq!(panics(), 1);
}

#[test]
fn abort_ends_the_process_with_the_name_of_the_task() {
    let stderr = aborts_in_child(|| {
        let local = LocalExecutorBuilder::default()
            .on_task_panic(PanicPolicy::Abort)
            .make()
            .expect("an executor can be made");
        local.run(async {
            TaskBuilder::new()
                .name("writer")
                .spawn_local(async { panic!("lost a page") })
                .detach();
        });
    });
    let expected = "a task has panicked (writer, in task queue \"default\": lost a page)";
    assert!(stderr.contains(expected), "{stderr}");
}

#[run_test]
fn the_shards_of_a_pool_isolate_as_well() {
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
        .on_task_panic(PanicPolicy::Isolate)
        .on_all_shards(|| async {
            spawn_local(async { panic!("in a shard") }).detach();
            panicked()
        })
        .expect("threads can be created");
    for output in shards.join_all() {
        assert_eq!(output.expect("the shard lives"), 1);
    }
}
