//! `spawn_blocking`: lazy, in order, and no panic or drop upsets the pool.

use crate::common::prelude::*;

pub(crate) fn with_threads(count: usize) -> LocalExecutor {
    LocalExecutorBuilder::default()
        .blocking_thread_pool_placement(PoolPlacement::Unbound(count))
        .make()
        .expect("an executor")
}

/// As [`run`], on an executor with one blocking thread.
fn run_on_one<T>(test: impl AsyncFnOnce() -> T) -> T {
    let _watchdog = watchdog();
    with_threads(1).run(test())
}

/// A blocking call that occupies a thread until it is told to end.
pub(crate) fn occupy() -> (impl Future<Output = ()>, Arc<AtomicBool>) {
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let call = executor().spawn_blocking(move || wait_until(|| wait.load(Ordering::SeqCst)));
    (call, go_on)
}

#[run_test]
async fn a_call_that_is_never_polled_never_runs() {
    let ran = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&ran);
    let call = executor().spawn_blocking(move || set.store(true, Ordering::SeqCst));
    sleep(Duration::from_millis(2)).await;
    executor().spawn_blocking(|| ()).await;
    drop(call);
    executor().spawn_blocking(|| ()).await;
    assert!(!ran.load(Ordering::SeqCst));
    assert_eq!(Arc::strong_count(&ran), 1, "the closure is gone");
}

#[run_test(run_on_one)]
async fn more_calls_than_the_pool_takes_wait_their_turn() {
    const CALLS: usize = 20_000;
    let (first, go_on) = occupy();
    let first = spawn_local(first);
    let ran = Arc::new(Mutex::new(Vec::new()));
    let mut tasks: Vec<_> = (0..CALLS)
        .map(|i| {
            let ran = Arc::clone(&ran);
            Some(spawn_local(executor().spawn_blocking(move || {
                ran.lock().unwrap().push(i);
                i
            })))
        })
        .collect();
    // Some of those that did not fit into the pool's queue are dropped.
    for i in (0..CALLS).rev().step_by(100).take(150) {
        drop(tasks[i].take());
    }
    yield_now().await;
    go_on.store(true, Ordering::SeqCst);
    first.await;
    for (i, task) in tasks.into_iter().enumerate() {
        if let Some(task) = task {
            assert_eq!(task.await, i);
        }
    }
    let ran = ran.lock().unwrap();
    assert_eq!(ran.len(), CALLS - 150);
    assert!(ran.is_sorted(), "first come, first served");
}

#[run_test(run_on_one)]
async fn a_call_that_waits_for_room_may_be_polled_often() {
    let (first, go_on) = occupy();
    let first = spawn_local(first);
    let tasks: Vec<_> = (0..5000)
        .map(|_| spawn_local(executor().spawn_blocking(|| ())))
        .collect();
    let mut waiting = Box::pin(executor().spawn_blocking(|| 9));
    for _ in 0..100_000 {
        assert!(poll_once(&mut waiting).await.is_none());
    }
    go_on.store(true, Ordering::SeqCst);
    first.await;
    join_all(tasks).await;
    assert_eq!(waiting.await, 9);
}

#[run_test(run_on_one)]
async fn a_place_that_a_call_gives_up_goes_to_the_next() {
    const PLACES: usize = 4096;
    let (first, go_on) = occupy();
    let first = spawn_local(first);
    let taken: Vec<_> = (1..PLACES)
        .map(|_| spawn_local(executor().spawn_blocking(|| ())))
        .collect();
    let mut waiting = Vec::new();
    for i in 0..PLACES + 10 {
        let mut call = Box::pin(executor().spawn_blocking(move || i));
        assert!(poll_once(&mut call).await.is_none());
        waiting.push(call);
    }
    go_on.store(true, Ordering::SeqCst);
    first.await;
    join_all(taken).await;
    // All places are kept for those that waited longest, which are not polled.
    let last = waiting.split_off(PLACES);
    drop(waiting);
    for (i, call) in last.into_iter().enumerate() {
        assert_eq!(call.await, PLACES + i);
    }
}

#[run_test]
async fn a_call_dropped_after_the_hand_over_runs_to_its_end_and_its_result_is_dropped() {
    let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..100 {
        let (ran, dropped) = (Arc::clone(&ran), Arc::clone(&dropped));
        let mut call = Box::pin(executor().spawn_blocking(move || {
            ran.fetch_add(1, Ordering::SeqCst);
            on_drop(move || {
                dropped.fetch_add(1, Ordering::SeqCst);
            })
        }));
        drop(poll_once(&mut call).await);
    }
    executor().spawn_blocking(|| ()).await;
    // The last result is dropped by a pool thread, after it has served the call above.
    wait_until(|| dropped.load(Ordering::SeqCst) == 100);
    assert_eq!(ran.load(Ordering::SeqCst), 100);
}

#[run_test]
async fn a_call_is_not_polled_after_its_end() {
    let mut call = Box::pin(executor().spawn_blocking(|| ()));
    (&mut call).await;
    let again = catch_unwind(AssertUnwindSafe(|| {
        futures_lite::future::block_on(poll_once(&mut call));
    }));
    assert!(again.is_err());
}
