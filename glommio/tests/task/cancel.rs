//! Cancelling: by dropping a `Task`, by `Task::cancel`, by `JoinHandle::cancel`.

use crate::common::prelude::*;

/// A task that never ends by itself, and counts its end.
fn endless(drops: &DropCount) -> Task<()> {
    let guard = drops.guard();
    spawn_local(async move {
        let _guard = guard;
        loop {
            yield_now().await;
        }
    })
}

#[run_test]
async fn a_dropped_task_is_not_polled_again_and_is_gone_when_the_scheduler_comes_to_it() {
    let (drops, polls) = (DropCount::default(), Rc::new(Cell::new(0)));
    let (guard, count) = (drops.guard(), Rc::clone(&polls));
    let task = spawn_local(poll_fn::<(), _>(move |cx| {
        let _guard = &guard;
        count.set(count.get() + 1);
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    yield_now().await;
    let before = polls.get();
    drop(task);
    assert_eq!(drops.count(), 0, "not inside the call");
    yield_now().await;
    assert_eq!((drops.count(), polls.get()), (1, before));
}

#[run_test]
async fn a_task_that_waits_is_cancelled_too() {
    let drops = DropCount::default();
    for wait in [Duration::from_secs(3600), Duration::MAX] {
        let guard = drops.guard();
        let task = spawn_local(async move {
            let _guard = guard;
            sleep(wait).await;
        });
        let before = drops.count();
        assert_eq!(task.cancel().await, None);
        assert_eq!(drops.count(), before + 1);
    }
    let guard = drops.guard();
    let call = executor().spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)));
    let task = spawn_local(async move {
        let _guard = guard;
        call.await;
    });
    assert_eq!(task.cancel().await, None);
    assert_eq!(drops.count(), 3);
}

#[run_test]
async fn a_cancellation_that_is_given_up_still_cancels() {
    let drops = DropCount::default();
    // Not polled, and polled once.
    drop(endless(&drops).cancel());
    let mut cancelling = Box::pin(endless(&drops).cancel());
    assert!(poll_once(&mut cancelling).await.is_none());
    drop(cancelling);
    for _ in 0..3 {
        yield_now().await;
    }
    assert_eq!(drops.count(), 2);
}

#[run_test]
async fn a_task_cancelled_before_its_first_poll_is_never_polled() {
    let drops = DropCount::default();
    let queue = queue("");
    for queue in [queue, Default::default()] {
        let guard = drops.guard();
        let task = spawn_local_into(
            async move {
                let _guard = guard;
                unreachable!("it was cancelled before");
            },
            queue,
        );
        let output: Option<()> = task.expect("the queue exists").cancel().await;
        assert_eq!(output, None);
    }
    assert_eq!(drops.count(), 2);
}

#[run_test]
async fn a_cancelled_task_in_a_queue_of_few_shares_is_dropped_all_the_same() {
    let few = executor().create_task_queue(Shares::Static(1), Latency::NotImportant, "few");
    let drops = DropCount::default();
    let guard = drops.guard();
    let busy = spawn_local(async {
        loop {
            executor().yield_task_queue_now().await;
        }
    });
    let task = spawn_local_into(
        async move {
            let _guard = guard;
            pending::<()>().await;
        },
        few,
    );
    assert_eq!(task.expect("it exists").cancel().await, None);
    assert_eq!(drops.count(), 1);
    drop(busy);
}

#[run_test]
async fn a_join_handle_cancels_what_is_not_complete() {
    let drops = DropCount::default();
    let handle = endless(&drops).detach();
    handle.cancel();
    handle.cancel();
    assert_eq!(handle.await, None);
    assert_eq!(drops.count(), 1);
    let complete = spawn_local(async { 5 }).detach();
    complete.cancel();
    assert_eq!(complete.await, Some(5));
}

#[run_test]
async fn waiters_hear_of_a_cancellation_after_the_destructor() {
    let drops = DropCount::default();
    let handle = Rc::new(RefCell::new(endless(&drops).detach()));
    let (waits, count) = (Rc::clone(&handle), drops.clone());
    let waiter = spawn_local(poll_fn(move |cx| {
        let polled = std::pin::Pin::new(&mut *waits.borrow_mut()).poll(cx);
        polled.map(|output| (output, count.count()))
    }));
    handle.borrow().cancel();
    assert_eq!(waiter.await, (None, 1));
}

#[run_test]
fn a_task_that_owns_its_own_task_ends_with_the_executor() {
    let made = LocalExecutor::default();
    let drops = DropCount::default();
    made.run(async {
        let slot: Rc<RefCell<Option<Task<()>>>> = Rc::default();
        let (own, guard) = (Rc::clone(&slot), drops.guard());
        let task = spawn_local(async move {
            let _guard = guard;
            let _own = own;
            sleep(Duration::from_secs(3600)).await;
        });
        *slot.borrow_mut() = Some(task);
    });
    assert_eq!(drops.count(), 0);
    drop(made);
    assert_eq!(drops.count(), 1);
}

#[run_test]
async fn destructors_of_cancelled_tasks_may_cancel_others_and_spawn() {
    let drops = DropCount::default();
    let spawned = Rc::new(Cell::new(false));
    let victim = endless(&drops);
    let set = Rc::clone(&spawned);
    let ends = on_drop(move || {
        drop(victim);
        spawn_local(async move { set.set(true) }).detach();
    });
    let task = spawn_local(async move {
        let _ends = ends;
        pending::<()>().await;
    });
    assert_eq!(task.cancel().await, None);
    assert!(spawned.get());
    for _ in 0..3 {
        yield_now().await;
    }
    assert_eq!(drops.count(), 1);
}

#[run_test]
fn a_task_dropped_outside_its_run_is_cancelled_in_the_next() {
    let (made, other) = (LocalExecutor::default(), LocalExecutor::default());
    let drops = DropCount::default();
    let (first, second) = made.run(async { (endless(&drops), endless(&drops)) });
    drop(first);
    other.run(async { drop(second) });
    assert_eq!(drops.count(), 0);
    made.run(async {
        for _ in 0..3 {
            yield_now().await;
        }
    });
    assert_eq!(drops.count(), 2);
}
