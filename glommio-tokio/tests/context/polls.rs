//! What a future finds while it is polled.

use std::cell::Cell;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;
use glommio::{LocalExecutor, spawn_local, timer};
use glommio_tokio::{Tokio, with_tokio};
use tokio::runtime::{Builder, Handle};
use tokio::task::LocalSet;

use crate::{run, sleep_of_tokio};

#[test]
fn the_context_is_there_in_polls_alone() {
    run(async {
        assert!(Handle::try_current().is_err(), "none so far");
        let future = with_tokio(async {
            let before = Handle::current().id();
            tokio::time::sleep(Duration::from_millis(1)).await;
            timer::sleep(Duration::from_millis(1)).await;
            assert_eq!(Handle::current().id(), before);
        });
        let task = spawn_local(future);
        // Meanwhile other tasks run outside of it.
        while poll_once(timer::sleep(Duration::ZERO)).await.is_none() {}
        assert!(Handle::try_current().is_err(), "none between polls");
        task.await;
        assert!(Handle::try_current().is_err(), "none afterwards");
        Ok(())
    });
}

#[test]
fn the_future_stays_on_its_thread_and_need_not_be_send() {
    run(async {
        let here = thread::current().id();
        let polls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&polls);
        with_tokio(async move {
            for _ in 0..100 {
                tokio::time::sleep(Duration::from_micros(10)).await;
                assert_eq!(thread::current().id(), here);
                counted.set(counted.get() + 1);
            }
        })
        .await;
        assert_eq!(polls.get(), 100);
        Ok(())
    });
}

#[test]
fn no_timer_of_tokio_fires_early_and_each_wakes_its_task() {
    run(async {
        let tokio = Tokio::start()?;
        let tasks: Vec<_> = (0..200)
            .map(|millis| {
                let future = tokio.with(async move {
                    let wanted = Duration::from_millis(millis % 20);
                    let begin = Instant::now();
                    tokio::time::sleep(wanted).await;
                    assert!(begin.elapsed() >= wanted);
                });
                spawn_local(future)
            })
            .collect();
        for task in tasks {
            task.await;
        }
        Ok(())
    });
}

#[test]
fn spawn_goes_to_the_background_thread_and_blocking_calls_to_the_pool() {
    run(async {
        let here = thread::current().id();
        let place = || {
            let thread = thread::current();
            (thread.id(), thread.name().map(str::to_owned))
        };
        let tokio = Tokio::start()?;
        let (spawned, blocking) = tokio
            .with(async {
                let spawned = tokio::spawn(async move { place() });
                let blocking = tokio::task::spawn_blocking(place);
                (spawned.await, blocking.await)
            })
            .await;
        let (spawned, blocking) = (spawned?, blocking?);
        assert_eq!(spawned.1.as_deref(), Some("glommio-tokio"));
        assert_ne!(spawned.0, here);
        assert_ne!(blocking.0, here);
        assert_ne!(blocking.0, spawned.0);
        Ok(())
    });
}

#[test]
fn block_in_place_blocks_the_executor() {
    run(async {
        let here = thread::current().id();
        let is_other_polled = Rc::new(Cell::new(false));
        let flag = Rc::clone(&is_other_polled);
        let other = spawn_local(async move {
            timer::sleep(Duration::from_millis(1)).await;
            flag.set(true);
        });
        let there = with_tokio(async {
            tokio::task::block_in_place(|| {
                thread::sleep(Duration::from_millis(5));
                assert!(!is_other_polled.get(), "it blocks");
                thread::current().id()
            })
        })
        .await;
        assert_eq!(there, here);
        other.await;
        Ok(())
    });
}

#[test]
fn spawn_local_needs_a_local_set() {
    run(async {
        let outside = with_tokio(async {
            let spawned = std::panic::catch_unwind(|| drop(tokio::task::spawn_local(async {})));
            spawned.is_err()
        });
        assert!(outside.await, "it panics, as on any runtime");

        let set = LocalSet::new();
        let inside = set.run_until(async {
            let shared = Rc::new(7);
            let task = tokio::task::spawn_local(async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                *shared
            });
            task.await
        });
        assert_eq!(with_tokio(inside).await?, 7);
        Ok(())
    });
}

#[test]
fn nested_contexts_are_left_in_order() {
    run(async {
        let outer = Tokio::start()?;
        let id = outer.handle().id();
        let inner = with_tokio(with_tokio(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Handle::current().id()
        }));
        let seen = outer.with(async move {
            let seen = inner.await;
            assert_eq!(Handle::current().id(), id);
            seen
        });
        assert_eq!(seen.await, id);
        Ok(())
    });
}

/// With both schedulers: the executor blocks the thread of a runtime, which has a context and a
/// cooperative budget of its own.
#[test]
fn an_executor_inside_of_another_runtime() {
    for mut builder in [Builder::new_current_thread(), Builder::new_multi_thread()] {
        let outer = builder.enable_all().build().expect("a runtime");
        outer.block_on(async {
            let outer = Handle::current().id();
            run(async {
                let inner = with_tokio(async {
                    let inner = Handle::current().id();
                    // More than tokio's budget of a poll, which is 128.
                    let semaphore = tokio::sync::Semaphore::new(1);
                    for _ in 0..10_000 {
                        drop(semaphore.acquire().await);
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    inner
                });
                assert_ne!(inner.await, outer);
                assert_eq!(Handle::current().id(), outer);
                Ok(())
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(Handle::current().id(), outer);
        });
    }
}

/// The same in the other order: what is polled there belongs to the outer runtime's task.
#[test]
fn a_task_of_another_runtime() {
    let outer = Builder::new_current_thread().enable_all().build();
    outer.expect("a runtime").block_on(async {
        let outer = Handle::current().id();
        let inner = with_tokio(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Handle::current().id()
        });
        assert_ne!(inner.await, outer);
        assert_eq!(Handle::current().id(), outer);
    });
}

/// As a server does that wants the context in all of its tasks.
#[test]
fn a_context_for_all_tasks_of_a_thread() {
    LocalExecutor::default().run(async {
        let tokio = Tokio::start().expect("there are resources");
        let entered = tokio.handle().enter();
        let task = spawn_local(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            // Polls by way of a user inside of it are left in order, too.
            with_tokio(sleep_of_tokio(1)).await;
        });
        task.await;
        drop(entered);
        assert!(Handle::try_current().is_err());
    });
}
