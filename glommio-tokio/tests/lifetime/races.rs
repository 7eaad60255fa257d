//! The last user that leaves while a new one comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use glommio::LocalExecutor;
use glommio_tokio::{Tokio, with_tokio};

use crate::{await_threads, take_turn};

/// Each of them is the first user, the last, or one of several, as it comes.
#[test]
fn users_come_and_go_on_many_threads() {
    let _turn = take_turn();
    let users: Vec<_> = (0..4)
        .map(|thread| {
            thread::spawn(move || {
                LocalExecutor::default().run(async {
                    for round in 0..200_u64 {
                        with_tokio(async {
                            let micros = (round * 7 + thread) % 50;
                            tokio::time::sleep(Duration::from_micros(micros)).await;
                            let spawned = tokio::spawn(async move { round });
                            assert_eq!(spawned.await.expect("the runtime runs"), round);
                        })
                        .await;
                    }
                });
            })
        })
        .collect();
    for user in users {
        user.join().expect("nothing panics");
    }
    await_threads(0);
}

/// A runtime that was joined runs until it is left, whatever others do.
#[test]
fn a_user_keeps_the_runtime_that_it_has_joined() {
    let _turn = take_turn();
    let is_over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..2)
        .map(|_| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    drop(Tokio::start().expect("there are resources"));
                }
            })
        })
        .collect();
    LocalExecutor::default().run(async {
        for _ in 0..500 {
            let tokio = Tokio::start().expect("there are resources");
            let task = tokio
                .handle()
                .spawn(async { tokio::task::yield_now().await });
            tokio.with(task).await.expect("the runtime runs");
        }
    });
    is_over.store(true, Ordering::Relaxed);
    for other in others {
        other.join().expect("nothing panics");
    }
    await_threads(0);
}
