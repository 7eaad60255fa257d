//! Dropping an executor: every future is dropped once, here and now, with the executor current.

use crate::blocking::with_threads;
use crate::common::prelude::*;

/// Sees whether it is dropped once, on its thread, with its executor current.
#[derive(Clone)]
struct Witness {
    executor: usize,
    thread: thread::ThreadId,
    drops: DropCount,
}

impl Witness {
    fn of(executor: &LocalExecutor) -> Self {
        Witness {
            executor: executor.id(),
            thread: thread::current().id(),
            drops: DropCount::default(),
        }
    }

    fn guard(&self) -> impl Sized + use<> {
        let counted = self.drops.guard();
        let (id, here) = (self.executor, self.thread);
        on_drop(move || {
            assert_eq!(executor().id(), id);
            assert_eq!(thread::current().id(), here);
            drop(counted);
        })
    }

    /// `future` with a witness to its end.
    fn with_guard<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        let guard = self.guard();
        async move {
            let _guard = guard;
            future.await
        }
    }
}

#[run_test]
fn tasks_of_every_kind_are_dropped_once_with_the_executor_current() {
    let executor = LocalExecutor::default();
    let witness = Witness::of(&executor);
    executor.run(async {
        let other = queue("other");
        spawn_local(witness.with_guard(sleep(Duration::from_secs(3600)))).detach();
        spawn_local(witness.with_guard(sleep(Duration::MAX))).detach();
        spawn_local(witness.with_guard(pending::<()>())).detach();
        spawn_local(witness.with_guard(Parking::default())).detach();
        let parking = Parking::default();
        spawn_in(other, witness.with_guard(parking.clone())).detach();
        let call = glommio::executor().spawn_blocking(|| thread::sleep(Duration::from_millis(20)));
        spawn_local(witness.with_guard(call)).detach();
        spawn_local(witness.with_guard(async {
            loop {
                yield_now().await;
            }
        }))
        .detach();
        spawn_in(
            other,
            witness.with_guard(async { unreachable!("not polled") }),
        )
        .detach();
        // Woken, and not run any more.
        poll_once(yield_now()).await;
        parking.open();
    });
    executor
        .spawn(witness.with_guard(async { unreachable!("not polled") }))
        .detach();
    // `pending` without a handle, or any other task without a waker, may go earlier.
    drop(executor);
    assert_eq!(witness.drops.count(), 9);
}

/// Small and large tasks, among those that are over: memory of some was freed here or on another thread, and is used
/// again; some is still referred to.
#[run_test]
fn tasks_that_are_not_over_are_found_among_those_that_are() {
    const COUNT: usize = 400;

    fn spawn<const BYTES: usize>(parking: &Parking, guard: impl Sized + 'static) {
        let (parking, bytes) = (parking.clone(), [1_u8; BYTES]);
        let task = async move {
            let _guard = guard;
            parking.await;
            std::hint::black_box(&bytes);
        };
        spawn_local(task).detach();
    }

    let executor = LocalExecutor::default();
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let (mut late_wakers, mut left) = (Vec::new(), Vec::new());
    for round in 0..3 {
        executor.run(async {
            for index in 0..COUNT {
                let (dropped, number) = (dropped.clone(), round * COUNT + index);
                let guard = on_drop(move || dropped.borrow_mut().push(number));
                let parking = Parking::default();
                match index / 4 % 4 {
                    0 => spawn::<1>(&parking, guard),
                    1 => spawn::<100>(&parking, guard),
                    2 => spawn::<300>(&parking, guard),
                    _ => spawn::<2000>(&parking, guard),
                }
                let waker = parking.waker().expect("it was polled");
                if index % 4 == 0 {
                    left.push(number);
                    late_wakers.push(waker);
                    continue;
                }
                parking.open();
                yield_now().await;
                match index % 4 {
                    1 => drop(waker),
                    2 => late_wakers.push(waker),
                    _ => thread::scope(|scope| drop(scope.spawn(move || drop(waker)))),
                }
            }
        });
        assert_eq!(dropped.borrow().len(), (round + 1) * COUNT - left.len());
    }
    dropped.take();
    drop(executor);
    let mut dropped = dropped.take();
    dropped.sort_unstable();
    assert_eq!(dropped, left);
    drop(late_wakers);
}

#[run_test]
fn destructors_may_spawn_what_is_then_dropped_unpolled() {
    let executor = LocalExecutor::default();
    let polled = Rc::new(Cell::new(false));
    let witness = Witness::of(&executor);
    let (inner, set) = (witness.clone(), Rc::clone(&polled));
    executor.run(async {
        let spawns = on_drop(move || {
            for _ in 0..3 {
                let (set, again) = (Rc::clone(&set), inner.clone());
                let nested = on_drop(move || {
                    spawn_local(again.with_guard(async { unreachable!("not polled") })).detach();
                });
                spawn_local(inner.with_guard(async move {
                    let _nested = nested;
                    set.set(true);
                }))
                .detach();
            }
            let handle = queue("made by a destructor");
            spawn_in(handle, inner.with_guard(async {})).detach();
        });
        spawn_local(async move {
            let _spawns = spawns;
            sleep(Duration::from_secs(3600)).await;
        })
        .detach();
    });
    drop(executor);
    assert!(!polled.get());
    assert_eq!(witness.drops.count(), 3 + 3 + 1);
}

#[run_test]
fn destructors_may_use_timers_wake_others_and_start_blocking_calls() {
    let executor = LocalExecutor::default();
    let witness = Witness::of(&executor);
    let parking = Parking::default();
    executor.run(async {
        let mut timer = Timer::new(Duration::from_secs(3600));
        assert!(poll_once(&mut timer).await.is_none());
        let gate = parking.clone();
        let guard = witness.guard();
        let busy = on_drop(move || {
            let _guard = guard;
            timer.reset(Duration::from_secs(1));
            drop(timer);
            let mut fresh = Box::pin(sleep(Duration::from_secs(3600)));
            assert!(block_on(poll_once(&mut fresh)).is_none());
            gate.open();
            let mut call = Box::pin(glommio::executor().spawn_blocking(|| ()));
            // Done already, or not: both are right.
            let _either = block_on(poll_once(&mut call));
            let _either = glommio::executor().need_preempt();
            glommio::executor().current_task_queue();
            queue("late");
        });
        spawn_local(async move {
            let _busy = busy;
            pending::<()>().await;
        })
        .detach();
        spawn_local(witness.with_guard(parking.clone())).detach();
        yield_now().await;
    });
    drop(executor);
    assert_eq!(witness.drops.count(), 2);
}

/// Wakers of timers are dropped when the tasks are over, and the executor is still there.
#[test]
fn the_waker_of_a_timer_may_spawn_when_it_is_dropped() {
    struct Spawns(Arc<AtomicUsize>);
    impl Wake for Spawns {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Spawns {
        fn drop(&mut self) {
            let drops = Arc::clone(&self.0);
            let id = executor().id();
            let guard = on_drop(move || {
                assert_eq!(executor().id(), id);
                drops.fetch_add(1, Ordering::Relaxed);
            });
            spawn_local(async move {
                let _guard = guard;
                sleep(Duration::from_secs(3600)).await;
            })
            .detach();
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let executor = LocalExecutor::default();
    executor.run(async {
        for _ in 0..100 {
            let waker = Waker::from(Arc::new(Spawns(Arc::clone(&drops))));
            let mut timer = Timer::new(Duration::from_secs(3600));
            assert!(
                Pin::new(&mut timer)
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            spawn_local(async move {
                let _timer = timer;
                pending::<()>().await;
            })
            .detach();
        }
    });
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    drop(executor);
    assert_eq!(drops.load(Ordering::Relaxed), 100);
}

#[run_test]
fn destructors_at_the_end_belong_to_the_default_queue() {
    let executor = LocalExecutor::default();
    let seen = Rc::new(Cell::new(None));
    let sees = Rc::clone(&seen);
    let message = panic_of(|| {
        executor.run(async {
            let ends = on_drop(move || sees.set(Some(glommio::executor().current_task_queue())));
            spawn_local(async move {
                let _ends = ends;
                sleep(Duration::from_secs(3600)).await;
            })
            .detach();
            // The last task that runs is one of another queue.
            spawn_in(queue("other"), async { panic!("the end") }).await;
        });
    });
    assert_eq!(message, "the end");
    drop(executor);
    assert_eq!(seen.get(), Some(TaskQueueHandle::default()));
}

#[run_test]
fn handles_that_outlive_the_executor_are_those_of_cancelled_tasks() {
    let executor = LocalExecutor::default();
    let drops = DropCount::default();
    let output = drops.guard();
    let (waiting, detached, finished, dropped, cancelled) = executor.run(async {
        let finished = spawn_local(async move { output });
        (
            spawn_local(pending::<()>()),
            spawn_local(pending::<()>()).detach(),
            finished,
            spawn_local(pending::<()>()),
            spawn_local(pending::<()>()),
        )
    });
    drop(executor);
    assert_eq!(block_on(detached), None);
    let message = panic_of(|| block_on(waiting));
    assert!(message.contains("task has failed"), "{message}");
    assert_eq!(block_on(cancelled.cancel()), None);
    drop(dropped);
    // The output was made and not taken: with the handle at the latest it is gone.
    drop(finished);
    assert_eq!(drops.count(), 1);
    run(async {});
}

#[run_test]
fn a_task_that_awaits_one_of_a_dropped_executor_is_woken() {
    let (first, second) = (LocalExecutor::default(), LocalExecutor::default());
    let handle = first.spawn(pending::<()>()).detach();
    let waits = second.spawn(handle);
    second.run(async {
        yield_now().await;
        drop(first);
        assert_eq!(waits.await, None);
    });
}

#[run_test]
fn the_drop_does_not_wait_for_a_running_blocking_call_and_discards_those_behind_it() {
    let executor = with_threads(1);
    let (is_running, go_on) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (ran, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    executor.run(async {
        let (running, wait) = (Arc::clone(&is_running), Arc::clone(&go_on));
        let first = glommio::executor().spawn_blocking(move || {
            running.store(true, Ordering::SeqCst);
            while !wait.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        });
        spawn_local(first).detach();
        for _ in 0..3 {
            let (ran, dropped) = (Arc::clone(&ran), Arc::clone(&dropped));
            let counts = on_drop(move || {
                dropped.fetch_add(1, Ordering::SeqCst);
            });
            let behind = glommio::executor().spawn_blocking(move || {
                ran.fetch_add(1, Ordering::SeqCst);
                drop(counts);
            });
            spawn_local(behind).detach();
        }
        while !is_running.load(Ordering::SeqCst) {
            sleep(Duration::from_micros(100)).await;
        }
    });
    drop(executor);
    assert_eq!(
        dropped.load(Ordering::SeqCst),
        3,
        "discarded with the executor"
    );
    go_on.store(true, Ordering::SeqCst);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// One blocking call runs, and behind it waits one that captured `captured`.
fn with_queued_call(executor: &LocalExecutor, captured: impl Send + 'static) -> Arc<AtomicBool> {
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    executor.run(async {
        spawn_local(glommio::executor().spawn_blocking(move || {
            while !wait.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }))
        .detach();
        spawn_local(glommio::executor().spawn_blocking(move || drop(captured))).detach();
    });
    go_on
}

#[run_test]
fn the_destructor_of_a_discarded_blocking_call_may_spawn() {
    let executor = with_threads(1);
    let (id, seen) = (executor.id(), Arc::new(AtomicUsize::new(0)));
    let sees = Arc::clone(&seen);
    let go_on = with_queued_call(
        &executor,
        on_drop(move || {
            spawn_local(async { unreachable!("not polled") }).detach();
            sees.store(glommio::executor().id(), Ordering::SeqCst);
        }),
    );
    drop(executor);
    assert_eq!(seen.load(Ordering::SeqCst), id);
    go_on.store(true, Ordering::SeqCst);
}

#[run_test]
fn a_panicking_destructor_of_a_discarded_blocking_call_leaves_the_drop_when_all_is_done() {
    let executor = with_threads(1);
    let go_on = with_queued_call(&executor, (on_drop(|| panic!("captured")), on_drop(|| ())));
    assert_eq!(panic_of(|| drop(executor)), "captured");
    go_on.store(true, Ordering::SeqCst);
    run(async {});
}

#[run_test]
fn many_waiting_tasks_are_dropped_in_linear_time() {
    let executor = LocalExecutor::default();
    let drops = DropCount::default();
    executor.run(async {
        for _ in 0..200_000 {
            let guard = drops.guard();
            spawn_local(async move {
                let _guard = guard;
                sleep(Duration::from_secs(3600)).await;
            })
            .detach();
        }
    });
    let started = Instant::now();
    drop(executor);
    assert_eq!(drops.count(), 200_000);
    // Linear takes a fraction of a second, quadratic minutes.
    let took = started.elapsed();
    assert!(took < patient(Duration::from_secs(10)), "{took:?}");
}

#[run_test]
fn wakes_that_arrive_during_the_drop_are_harmless() {
    for _ in 0..rounds(40) {
        let executor = LocalExecutor::default();
        let wakers: Vec<Waker> = (0..8)
            .map(|_| {
                let parking = Parking::default();
                executor.spawn(parking.clone()).detach();
                executor.run(yield_now());
                parking.waker().expect("the task has been polled")
            })
            .collect();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for chunk in wakers.chunks(4) {
                let stop = &stop;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        for waker in chunk {
                            waker.wake_by_ref();
                            drop(waker.clone());
                        }
                    }
                });
            }
            thread::yield_now();
            drop(executor);
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[run_test]
fn a_destructor_may_drop_another_executor() {
    let (first, second) = (LocalExecutor::default(), LocalExecutor::default());
    let inner = Witness::of(&second);
    second.spawn(inner.with_guard(pending::<()>())).detach();
    let outer = Witness::of(&first);
    first
        .spawn(outer.with_guard(async move {
            let _second = second;
            pending::<()>().await;
        }))
        .detach();
    first.run(yield_now());
    drop(first);
    assert_eq!((inner.drops.count(), outer.drops.count()), (1, 1));
}
