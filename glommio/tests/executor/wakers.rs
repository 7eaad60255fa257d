//! Wakers on foreign threads: no wake is lost, whatever the executor is doing, and none does harm.

use std::cell::Cell;
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::future::{poll_once, yield_now};
use glommio::timer::sleep;
use glommio::{
    Latency, LocalExecutor, LocalExecutorBuilder, Placement, Shares, executor, spawn_local,
    spawn_local_into,
};

use crate::common::{DropCount, Parking, on_drop, run, wait_until, watchdog};

/// A counter that threads raise and a task waits on.
#[derive(Default)]
struct Counter {
    count: AtomicUsize,
    seen: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Counter {
    fn raise(&self) -> usize {
        let raised = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let waker = self.waker.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        raised
    }

    fn poll_beyond(&self, seen: usize, cx: &Context<'_>) -> Poll<usize> {
        *self.waker.lock().unwrap() = Some(cx.waker().clone());
        match self.count.load(Ordering::SeqCst) {
            count if count > seen => Poll::Ready(count),
            _ => Poll::Pending,
        }
    }

    /// Acknowledges what is raised until it is `end`.
    async fn serve(&self, end: usize) {
        let mut seen = 0;
        while seen < end {
            seen = poll_fn(|cx| self.poll_beyond(seen, cx)).await;
            self.seen.store(seen, Ordering::SeqCst);
        }
    }

    /// Raises `times` times, each time waiting for the answer, after a pause that varies such that the
    /// executor is met in all states between awake and asleep.
    fn hunt(&self, times: usize) {
        for i in 0..times {
            let raised = self.raise();
            while self.seen.load(Ordering::SeqCst) < raised {
                thread::yield_now();
            }
            (0..i % 97 * 8).for_each(|_| std::hint::spin_loop());
        }
    }
}

fn storm(executor: LocalExecutor, hunters: usize, times: usize) {
    let counters: Vec<_> = (0..hunters).map(|_| Arc::new(Counter::default())).collect();
    let threads: Vec<_> = counters
        .iter()
        .map(|counter| {
            let counter = Arc::clone(counter);
            thread::spawn(move || counter.hunt(times))
        })
        .collect();
    executor.run(async {
        let tasks: Vec<_> = counters
            .iter()
            .map(|counter| {
                let counter = Arc::clone(counter);
                spawn_local(async move { counter.serve(times).await })
            })
            .collect();
        for task in tasks {
            task.await;
        }
    });
    for thread in threads {
        thread.join().expect("all were answered");
    }
}

#[test]
fn a_storm_of_foreign_wakes_against_parking_loses_none() {
    let _watchdog = watchdog();
    storm(LocalExecutor::default(), 1, 50_000);
    storm(LocalExecutor::default(), 4, 25_000);
}

#[test]
fn a_storm_of_foreign_wakes_against_spinning_loses_none() {
    let _watchdog = watchdog();
    for spin in [1, 20, 1000] {
        let executor = LocalExecutorBuilder::new(Placement::Fixed(0))
            .spin_before_park(Duration::from_micros(spin))
            .make()
            .expect("CPU 0 exists");
        storm(executor, 2, 10_000);
    }
}

#[test]
fn a_storm_against_timers_and_blocking_calls_loses_none() {
    let _watchdog = watchdog();
    let counter = Arc::new(Counter::default());
    let hunter = Arc::clone(&counter);
    let thread = thread::spawn(move || hunter.hunt(10_000));
    run(async {
        let stop = Rc::new(Cell::new(false));
        let (timers, calls) = (Rc::clone(&stop), Rc::clone(&stop));
        let timers = spawn_local(async move {
            while !timers.get() {
                sleep(Duration::from_micros(30)).await;
            }
        });
        let calls = spawn_local(async move {
            while !calls.get() {
                executor().spawn_blocking(|| ()).await;
            }
        });
        counter.serve(10_000).await;
        stop.set(true);
        timers.await;
        calls.await;
    });
    thread.join().expect("all were answered");
}

#[test]
fn a_hundred_thousand_wakes_without_answers_end_in_one_that_counts() {
    run(async {
        let counter = Arc::new(Counter::default());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || (0..25_000).for_each(|_| _ = counter.raise()))
            })
            .collect();
        counter.serve(100_000).await;
        for thread in threads {
            thread.join().expect("raising does not panic");
        }
    });
}

#[test]
fn two_executors_wake_each_other() {
    const ROUNDS: usize = 20_000;
    let _watchdog = watchdog();
    let (ping, pong) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
    let (other_ping, other_pong) = (Arc::clone(&ping), Arc::clone(&pong));
    let other = LocalExecutorBuilder::default()
        .spawn(move || async move {
            for round in 0..ROUNDS {
                poll_fn(|cx| other_ping.poll_beyond(round, cx)).await;
                other_pong.raise();
            }
        })
        .expect("a thread starts");
    run(async {
        for round in 0..ROUNDS {
            ping.raise();
            poll_fn(|cx| pong.poll_beyond(round, cx)).await;
        }
    });
    other.join().expect("both come to the end");
}

#[test]
fn wakes_for_a_queue_with_latency_arrive_too() {
    let _watchdog = watchdog();
    let counter = Arc::new(Counter::default());
    let hunter = Arc::clone(&counter);
    let thread = thread::spawn(move || hunter.hunt(5_000));
    run(async {
        let latency = Latency::Matters(Duration::from_millis(2));
        let queue = executor().create_task_queue(Shares::Static(10), latency, "impatient");
        let task = spawn_local_into(async move { counter.serve(5_000).await }, queue);
        task.expect("it was just made").await;
    });
    thread.join().expect("all were answered");
}

#[test]
fn a_waker_works_by_value_and_by_reference() {
    run(async {
        for by_value in [true, false] {
            let woken = Arc::new(AtomicBool::new(false));
            poll_fn(|cx| {
                if woken.load(Ordering::SeqCst) {
                    return Poll::Ready(());
                }
                let (waker, woken) = (cx.waker().clone(), Arc::clone(&woken));
                thread::spawn(move || {
                    woken.store(true, Ordering::SeqCst);
                    if by_value {
                        waker.wake();
                    } else {
                        waker.wake_by_ref();
                    }
                });
                Poll::Pending
            })
            .await;
        }
    });
}

/// The waker of a task that runs on `executor` and waits at the given place.
fn waker_of(executor: &LocalExecutor, parking: &Parking) -> Waker {
    executor.spawn(parking.clone()).detach();
    executor.run(yield_now());
    parking.waker().expect("the task has been polled")
}

#[test]
fn waking_what_is_finished_cancelled_or_without_executor_does_nothing() {
    let _watchdog = watchdog();
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

#[test]
fn a_waker_may_have_more_clones_than_sixteen_bits_count() {
    run(async {
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
    });
}

#[test]
fn a_task_keeps_its_waker_from_poll_to_poll() {
    run(async {
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
    });
}

#[test]
fn a_spurious_wake_polls_once_more_and_nothing_else() {
    run(async {
        let polls = Rc::new(Cell::new(0));
        let (parking, counted) = (Parking::default(), Rc::clone(&polls));
        let mut gate = parking.clone();
        let task = spawn_local(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            std::pin::Pin::new(&mut gate).poll(cx)
        }));
        assert_eq!(polls.get(), 1);
        let waker = parking.waker().expect("it was polled");
        for _ in 0..10 {
            waker.wake_by_ref();
        }
        yield_now().await;
        assert_eq!(polls.get(), 2, "ten wakes before a poll are one");
        parking.open();
        task.await;
    });
}

#[test]
fn a_task_woken_while_it_is_polled_goes_to_the_back_of_its_queue() {
    let log = crate::common::Log::default();
    run(async {
        let (first, second) = (log.clone(), log.clone());
        let first = spawn_local_into(
            async move {
                for _ in 0..3 {
                    first.note("first");
                    yield_now().await;
                }
            },
            Default::default(),
        );
        let second = spawn_local_into(
            async move {
                for _ in 0..3 {
                    second.note("second");
                    yield_now().await;
                }
            },
            Default::default(),
        );
        first.expect("the default queue exists").await;
        second.expect("the default queue exists").await;
    });
    assert_eq!(
        log.take(),
        ["first", "second", "first", "second", "first", "second"]
    );
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
                    sender.send(cx.waker().clone()).expect("somebody drops");
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

#[test]
fn a_detached_task_that_nobody_can_wake_is_dropped() {
    run(async {
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
    });
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
            // Leaked: the thread's locals go while the executor is there.
            std::mem::forget(executor);
        })
        .join()
        .expect("the thread ends in good order");
    };
    wake_at_exit(true);
    wake_at_exit(false);
}

#[test]
fn a_foreign_wake_is_heard_by_the_next_run() {
    let _watchdog = watchdog();
    let executor = LocalExecutor::default();
    let counter = Arc::new(Counter::default());
    let serving = Arc::clone(&counter);
    let task = executor.spawn(async move { serving.serve(1).await });
    executor.run(async {
        assert!(poll_once(yield_now()).await.is_none());
        yield_now().await;
    });
    let raising = Arc::clone(&counter);
    thread::spawn(move || _ = raising.raise())
        .join()
        .expect("raised");
    executor.run(task);
}

#[test]
fn a_busy_executor_hears_a_foreign_wake() {
    // Wakes come from wherever, also while the executor computes.
    let _watchdog = watchdog();
    let executor = LocalExecutor::default();
    let flag = Arc::new(AtomicBool::new(false));
    let counter = Arc::new(Counter::default());
    let (raising, stop) = (Arc::clone(&counter), Arc::clone(&flag));
    let thread = thread::spawn(move || {
        wait_until(|| stop.load(Ordering::SeqCst));
        raising.raise();
    });
    executor.run(async {
        let busy = spawn_local(async {
            loop {
                glommio::yield_if_needed().await;
                std::hint::spin_loop();
                yield_now().await;
            }
        });
        flag.store(true, Ordering::SeqCst);
        counter.serve(1).await;
        drop(busy);
    });
    thread.join().expect("raised");
}
