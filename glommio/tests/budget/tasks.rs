use glommio::task::JoinSet;
use glommio::{LocalExecutorPoolBuilder, PoolPlacement, spawn_local, spawn_scoped_local};

use super::*;

#[test]
fn tasks_that_are_done_at_once() {
    run(async {
        counts("Task", async || spawn_local(async {}).await).await;
        counts("Task::cancel", async || {
            assert_eq!(spawn_local(async { 7 }).cancel().await, Some(7));
        })
        .await;
        counts("JoinHandle", async || {
            assert_eq!(spawn_local(async { 7 }).detach().await, Some(7));
        })
        .await;
        // SAFETY: the task is polled or dropped where it is made, and borrows nothing.
        let scoped = || unsafe { spawn_scoped_local(async { 7 }) };
        counts("ScopedTask", async || assert_eq!(scoped().await, 7)).await;
        counts("ScopedTask::cancel", async || {
            assert_eq!(scoped().cancel().await, Some(7));
        })
        .await;
    });
}

#[test]
fn sets_of_tasks() {
    run(async {
        let mut set = JoinSet::new();
        counts("JoinSet::join_next", async || {
            set.spawn(async { 7 });
            assert_eq!(set.join_next().await, Some(Ok(7)));
        })
        .await;
        let mut set = JoinSet::<()>::new();
        counts("JoinSet::join_next, of an empty set", async || {
            assert_eq!(set.join_next().await, None);
        })
        .await;
        counts("JoinSet::shutdown", async || set.shutdown().await).await;
    });
}

#[test]
fn the_operation_that_does_nothing() {
    run(counts("consume_budget", async || consume_budget().await));
}

#[test]
fn ends_of_shards() {
    let mut shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(1))
        .on_all_shards(|| async {})
        .expect("a thread can be made");
    assert!(shards.join_first().is_some());
    run(async {
        counts("PoolThreadHandles::join_next", async || {
            assert!(shards.join_next().await.is_none());
        })
        .await;
    });
}
