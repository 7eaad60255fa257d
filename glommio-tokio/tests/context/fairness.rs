//! A future that always finds data, and the other tasks of its executor.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use glommio::{spawn_local, timer, yield_if_needed};
use glommio_tokio::with_tokio;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::run;

/// An operation that is always ready, until `is_over`, or for too long.
async fn always_ready(is_over: &Cell<bool>) {
    let semaphore = Semaphore::new(1);
    for _ in 0..10_000_000 {
        if is_over.get() {
            return;
        }
        drop(semaphore.acquire().await);
    }
    panic!("no other task had its turn");
}

#[test]
fn a_loop_that_yields_lets_others_run() {
    run(async {
        let is_over = Rc::new(Cell::new(false));
        let flag = Rc::clone(&is_over);
        let other = spawn_local(async move {
            timer::sleep(Duration::from_millis(1)).await;
            flag.set(true);
        });
        with_tokio(async {
            let semaphore = Semaphore::new(1);
            while !is_over.get() {
                drop(semaphore.acquire().await);
                yield_if_needed().await;
            }
        })
        .await;
        other.await;
        Ok(())
    });
}

#[test]
fn tasks_of_a_local_set_have_a_budget() {
    run(async {
        let is_over = Rc::new(Cell::new(false));
        let flag = Rc::clone(&is_over);
        let other = spawn_local(async move {
            timer::sleep(Duration::from_millis(1)).await;
            flag.set(true);
        });
        let set = LocalSet::new();
        let busy = set.spawn_local(async move { always_ready(&is_over).await });
        with_tokio(set.run_until(busy)).await?;
        other.await;
        Ok(())
    });
}
