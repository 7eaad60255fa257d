//! Wakers: where they may go, how long they may live, and what they do there.

use crate::common::prelude::*;

/// The waker of a task that runs on `executor` and waits at the given place.
fn waker_of(executor: &LocalExecutor, parking: &Parking) -> Waker {
    executor.spawn(parking.clone()).detach();
    executor.run(yield_now());
    parking.waker().expect("the task has been polled")
}

#[run_test]
fn waking_what_is_finished_cancelled_or_without_executor_does_nothing() {
    let executor = LocalExecutor::default();
    let finished = {
        let parking = Parking::default();
        let waker = waker_of(&executor, &parking);
        parking.open();
        executor.run(yield_now());
        waker
    };
    let (cancelled, dead) = {
        let parking = Parking::default();
        let task = executor.spawn(parking.clone());
        executor.run(yield_now());
        drop(task);
        executor.run(yield_now());
        (
            parking.waker().expect("it was polled"),
            waker_of(&executor, &Parking::default()),
        )
    };
    let wake_all = |wakers: &[Waker]| {
        for waker in wakers {
            waker.wake_by_ref();
            let by_value = waker.clone();
            by_value.wake();
        }
    };
    let wakers = [finished, cancelled, dead];
    executor.run(async { wake_all(&wakers) });
    thread::scope(|scope| drop(scope.spawn(|| wake_all(&wakers))));
    executor.run(yield_now());
    drop(executor);
    wake_all(&wakers);
    run(async { wake_all(&wakers) });
    thread::spawn(move || wake_all(&wakers))
        .join()
        .expect("harmless");
}

#[run_test]
async fn a_waker_may_have_more_clones_than_sixteen_bits_count() {
    let parking = Parking::default();
    let task = spawn_local(parking.clone());
    let waker = parking.waker().expect("spawned tasks are polled at once");
    let clones: Vec<Waker> = (0..200_000).map(|_| waker.clone()).collect();
    assert!(clones.iter().all(|it| it.will_wake(&waker)));
    let (mine, theirs) = clones.split_at(100_000);
    let theirs = theirs.to_vec();
    let thread = thread::spawn(move || drop(theirs));
    drop(mine.to_vec());
    drop(clones);
    thread.join().expect("dropping does not panic");
    parking.open();
    task.await;
}

#[run_test]
async fn a_task_keeps_its_waker_from_poll_to_poll() {
    let first = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
    yield_now().await;
    sleep(Duration::from_millis(1)).await;
    poll_fn(|cx| {
        assert!(cx.waker().will_wake(&first));
        Poll::Ready(())
    })
    .await;
    let other = spawn_local(poll_fn(|cx| Poll::Ready(cx.waker().clone()))).await;
    assert!(!other.will_wake(&first));
}

#[test]
fn the_last_waker_dropped_elsewhere_has_the_future_dropped_at_home() {
    let home = thread::current().id();
    let (sender, receiver) = mpsc::channel::<Waker>();
    let dropper = thread::spawn(move || receiver.into_iter().for_each(drop));
    run(async {
        for _ in 0..1000 {
            let is_gone = Rc::new(Cell::new(false));
            let set = Rc::clone(&is_gone);
            let guard = on_drop(move || {
                assert_eq!(thread::current().id(), home);
                assert!(executor().id() > 0);
                set.set(true);
            });
            let sender = sender.clone();
            spawn_local(async move {
                let _guard = guard;
                poll_fn::<(), _>(|cx| {
                    sender
                        .send(cx.waker().clone())
                        .expect("the dropping thread receives");
                    Poll::Pending
                })
                .await;
            })
            .detach();
            // Asleep or awake, the executor hears of it.
            while !is_gone.get() {
                sleep(Duration::from_micros(20)).await;
            }
        }
        drop(sender);
    });
    dropper.join().expect("dropping does not panic");
}

#[run_test]
async fn a_detached_task_without_a_waker_is_dropped() {
    let drops = DropCount::default();
    let guard = drops.guard();
    let handle = spawn_local(async move {
        let _guard = guard;
        pending::<()>().await;
    })
    .detach();
    yield_now().await;
    assert_eq!(drops.count(), 0, "the handle could still cancel it");
    drop(handle);
    yield_now().await;
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_waker_outlives_its_thread_local_executor() {
    struct WakesAtTheEnd(Waker);
    impl Drop for WakesAtTheEnd {
        fn drop(&mut self) {
            self.0.wake_by_ref();
            drop(self.0.clone());
        }
    }
    thread_local! {
        static KEPT: Cell<Option<WakesAtTheEnd>> = const { Cell::new(None) };
    }
    /// Where a leak detector finds what is not dropped.
    static EXECUTORS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let _watchdog = watchdog();
    let wake_at_exit = |use_before: bool| {
        thread::spawn(move || {
            if use_before {
                KEPT.with(|_| ());
            }
            let executor = LocalExecutor::default();
            KEPT.set(Some(WakesAtTheEnd(waker_of(
                &executor,
                &Parking::default(),
            ))));
            // Never dropped: the thread's locals go while the executor is there.
            let kept = Box::into_raw(Box::new(executor));
            EXECUTORS.lock().unwrap().push(kept.expose_provenance());
        })
        .join()
        .expect("the thread ends in good order");
    };
    wake_at_exit(true);
    wake_at_exit(false);
}
