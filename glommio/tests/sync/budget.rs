//! Locks and the others take part in the cooperative budget.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use glommio::spawn_local;
use glommio::sync::{CancellationToken, Gate, Mutex, OnceCell, RwLock, Semaphore};

use crate::common::rationed::assert_rationed;
use crate::common::run;

fn is_ok<T, E: std::fmt::Debug>(
    future: impl Future<Output = Result<T, E>>,
    cx: &mut Context<'_>,
) -> bool {
    match pin!(future).poll(cx) {
        Poll::Ready(result) => result.is_ok(),
        Poll::Pending => false,
    }
}

#[test]
fn a_semaphore_with_units_lets_other_tasks_run() {
    run(async {
        let semaphore = Rc::new(Semaphore::new(1000));
        assert_rationed("acquire", |cx| is_ok(semaphore.acquire(1), cx)).await;
        assert_eq!(semaphore.available(), 1000 - 33, "a refused one takes none");
        semaphore.signal(33);
        assert_rationed("acquire_permit", |cx| {
            is_ok(semaphore.acquire_permit(1), cx)
        })
        .await;
        assert_rationed("acquire_static_permit", |cx| {
            is_ok(semaphore.acquire_static_permit(1), cx)
        })
        .await;
        assert_rationed("no units", |cx| is_ok(semaphore.acquire(0), cx)).await;
        assert_eq!(semaphore.available(), 1000);
    });
}

#[test]
fn locks_that_are_free_let_other_tasks_run() {
    run(async {
        let lock = RwLock::new(());
        assert_rationed("read", |cx| is_ok(lock.read(), cx)).await;
        assert_rationed("write", |cx| is_ok(lock.write(), cx)).await;
        let mutex = Mutex::new(());
        assert_rationed("lock", |cx| is_ok(mutex.lock(), cx)).await;
    });
}

/// Units are given and taken back in turn, so each poll finds them.
#[test]
fn a_lock_that_is_handed_over_to_a_refused_task_stays_with_it() {
    run(async {
        let mutex = Rc::new(Mutex::new(0));
        let guard = mutex.lock().await.unwrap();
        let tasks: Vec<_> = (0..10)
            .map(|number| {
                let mutex = mutex.clone();
                spawn_local(async move {
                    let mut value = mutex.lock().await.unwrap();
                    assert_eq!(*value, number, "in the order in which they came");
                    *value += 1;
                    while !glommio::executor().need_preempt() {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        drop(guard);
        for task in tasks {
            task.await;
        }
        assert_eq!(*mutex.lock().await.unwrap(), 10);
    });
}

#[test]
fn what_is_over_for_good_lets_other_tasks_run() {
    run(async {
        let cell = OnceCell::new();
        cell.set(7).unwrap();
        assert_rationed("get_or_init", |cx| {
            pin!(cell.get_or_init(async || 8)).poll(cx).is_ready()
        })
        .await;
        let token = CancellationToken::new();
        token.cancel();
        assert_rationed("cancelled", |cx| {
            pin!(token.cancelled()).poll(cx).is_ready()
        })
        .await;
        assert_rationed("close", |cx| {
            let gate = Gate::new();
            pin!(gate.close()).poll(cx).is_ready()
        })
        .await;
    });
}
