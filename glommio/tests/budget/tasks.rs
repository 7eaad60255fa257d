use glommio::spawn_scoped_local;
use glommio::task::JoinSet;

use super::*;

#[run_test]
async fn tasks_that_are_done_at_once() {
    counts!("Task", spawn_local(async {}).await);
    counts!(
        "Task::cancel",
        assert_eq!(spawn_local(async { 7 }).cancel().await, Some(7))
    );
    counts!(
        "JoinHandle",
        assert_eq!(spawn_local(async { 7 }).detach().await, Some(7))
    );
    // SAFETY: the task is polled or dropped where it is made, and borrows nothing.
    let scoped = || unsafe { spawn_scoped_local(async { 7 }) };
    counts!("ScopedTask", assert_eq!(scoped().await, 7));
    counts!(
        "ScopedTask::cancel",
        assert_eq!(scoped().cancel().await, Some(7))
    );
}

#[run_test]
async fn sets_of_tasks() {
    let mut set = JoinSet::new();
    counts!("JoinSet::join_next", {
        set.spawn(async { 7 });
        assert_eq!(set.join_next().await, Some(Ok(7)));
    });
    let mut set = JoinSet::<()>::new();
    counts!(
        "JoinSet::join_next, of an empty set",
        assert_eq!(set.join_next().await, None)
    );
    counts!("JoinSet::shutdown", set.shutdown().await);
}

#[test]
fn the_operation_that_does_nothing() {
    run(async { counts!("consume_budget", consume_budget().await) });
}

#[test]
fn ends_of_shards() {
    let mut shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(1))
        .on_all_shards(|| async {})
        .expect("a thread can be made");
    assert!(shards.join_first().is_some());
    run(async {
        counts!(
            "PoolThreadHandles::join_next",
            assert!(shards.join_next().await.is_none())
        );
    });
}
