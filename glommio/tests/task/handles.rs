//! Awaiting and detaching.

use glommio::ScopedTask;
use glommio::task::JoinHandle;

use crate::common::prelude::*;

#[run_test]
async fn a_task_that_gave_its_output_panics_when_polled_again() {
    let mut task = spawn_local(async { 1 });
    assert_eq!((&mut task).await, 1);
    let message = panic_of(|| block_on(poll_once(&mut task)));
    assert!(message.contains("task has failed"), "{message}");
}

#[run_test]
async fn a_join_handle_gives_some_once_and_none_ever_after() {
    let mut handle = spawn_local(async { 1 }).detach();
    assert_eq!((&mut handle).await, Some(1));
    assert_eq!((&mut handle).await, None);
    assert_eq!(handle.await, None);
}

#[run_test]
async fn an_output_that_is_not_taken_is_dropped_with_the_handle() {
    let drops = DropCount::default();
    let output = || {
        let guard = drops.guard();
        async move { guard }
    };
    let task = spawn_local(output());
    assert_eq!(drops.count(), 0);
    drop(task);
    assert_eq!(drops.count(), 1, "at once, since it is done");
    let handle = spawn_local(output()).detach();
    drop(handle);
    assert_eq!(drops.count(), 2);
    let handle = spawn_local(output()).detach();
    let taken = handle.await;
    assert_eq!(drops.count(), 2);
    drop(taken);
    assert_eq!(drops.count(), 3);
    // The handle is gone when it is made.
    let guard = drops.guard();
    drop(
        spawn_local(async move {
            yield_now().await;
            guard
        })
        .detach(),
    );
    yield_now().await;
    yield_now().await;
    assert_eq!(drops.count(), 4);
}

#[run_test]
async fn only_the_last_task_that_polled_a_handle_is_woken() {
    let parking = Parking::default();
    let handle = Rc::new(RefCell::new(spawn_local(parking.clone()).detach()));
    let poll = |handle: &RefCell<JoinHandle<()>>, cx: &mut Context<'_>| {
        Pin::new(&mut *handle.borrow_mut()).poll(cx)
    };
    let polls = Rc::new(Cell::new([0, 0]));
    let waiter = |me: usize| {
        let (handle, polls) = (Rc::clone(&handle), Rc::clone(&polls));
        spawn_local(poll_fn(move |cx| {
            let mut counts = polls.get();
            counts[me] += 1;
            polls.set(counts);
            poll(&handle, cx).map(|output| output.is_some())
        }))
    };
    let (_first, second) = (waiter(0), waiter(1));
    parking.open();
    assert!(second.await);
    yield_now().await;
    assert_eq!(polls.get(), [1, 2]);
}

#[run_test]
fn a_task_may_be_awaited_under_another_executor_of_the_thread() {
    let (first, second) = (LocalExecutor::default(), LocalExecutor::default());
    let done = first.spawn(async { "done" });
    let parking = Parking::default();
    let gate = parking.clone();
    let waiting = first.spawn(async move {
        gate.await;
        "waited"
    });
    first.run(yield_now());
    assert_eq!(second.run(done), "done");
    let awaiter = second.spawn(waiting);
    second.run(yield_now());
    parking.open();
    first.run(yield_now());
    assert_eq!(second.run(awaiter), "waited");
}

#[run_test]
async fn outputs_may_be_empty_large_or_aligned() {
    #[repr(align(256))]
    struct Aligned(u8);

    spawn_local(async {}).await;
    let large = spawn_local(async {
        yield_now().await;
        [7_u8; 100_000]
    });
    assert!(large.await.iter().all(|&byte| byte == 7));
    for by in 0..3 {
        let aligned = spawn_local(async move {
            let inside = Aligned(by);
            yield_now().await;
            assert_eq!(std::ptr::from_ref(&inside).addr() % 256, 0);
            inside
        });
        let aligned = aligned.await;
        assert_eq!(std::ptr::from_ref(&aligned).addr() % 256, 0);
        assert_eq!(aligned.0, by);
    }
    let never: Task<std::convert::Infallible> = spawn_local(pending());
    drop(never);
}

#[run_test]
async fn handles_print_and_are_unpin() {
    fn movable<T: Unpin + std::fmt::Debug>(value: T) -> String {
        format!("{value:?}")
    }
    assert!(movable(spawn_local(async {})).contains("Task"));
    assert!(movable(spawn_local(async {}).detach()).contains("JoinHandle"));
    // SAFETY: nothing is borrowed.
    let scoped: ScopedTask<'_, ()> = unsafe { glommio::spawn_scoped_local(async {}) };
    assert!(movable(scoped).contains("ScopedTask"));
}
