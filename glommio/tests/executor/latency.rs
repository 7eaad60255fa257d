//! When `need_preempt` turns true, and how long others wait beside tasks that cooperate.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::yield_now;
use glommio::timer::{Timer, sleep};
use glommio::{
    Latency, LocalExecutor, LocalExecutorBuilder, Shares, Task, executor, spawn_local,
    spawn_local_into, yield_if_needed,
};

use crate::common::{best_of, run, watchdog};

/// Far above what a cooperative executor needs, and below what waiting for a slice of 100 ms takes.
const PROMPT: Duration = Duration::from_millis(60);

/// The ways in which tasks let others run.
#[derive(Clone, Copy, Debug)]
enum Yielding {
    Now,
    IfNeeded,
    Queue,
    Spinning,
}

const WAYS: [Yielding; 4] = [
    Yielding::Now,
    Yielding::IfNeeded,
    Yielding::Queue,
    Yielding::Spinning,
];

/// Keeps the executor busy for ever.
fn be_busy(how: Yielding, tasks: usize) -> Vec<Task<()>> {
    let queue = executor().create_task_queue(Shares::default(), Latency::NotImportant, "busy");
    (0..tasks)
        .map(|_| {
            let busy = async move {
                loop {
                    match how {
                        Yielding::Now => executor().yield_now().await,
                        Yielding::IfNeeded => yield_if_needed().await,
                        Yielding::Queue => executor().yield_task_queue_now().await,
                        Yielding::Spinning => {
                            while !executor().need_preempt() {
                                std::hint::spin_loop();
                            }
                            yield_now().await;
                        }
                    }
                }
            };
            spawn_local_into(busy, queue).expect("it was just made")
        })
        .collect()
}

#[test]
fn a_short_sleep_beside_cooperating_tasks_is_short() {
    for how in WAYS {
        for tasks in [1, 10] {
            let late = best_of(5, || {
                run(async {
                    let _busy = be_busy(how, tasks);
                    let wait = Duration::from_millis(5);
                    let started = Instant::now();
                    sleep(wait).await;
                    let took = started.elapsed();
                    assert!(took >= wait);
                    took
                })
            });
            assert!(late < PROMPT, "{how:?}, {tasks} tasks: 5 ms took {late:?}");
        }
    }
}

#[test]
fn a_sleep_in_the_same_queue_as_a_busy_task_is_short_too() {
    let late = best_of(5, || {
        run(async {
            let _busy = spawn_local(async {
                loop {
                    yield_if_needed().await;
                }
            });
            let started = Instant::now();
            for _ in 0..5 {
                sleep(Duration::from_millis(1)).await;
            }
            started.elapsed()
        })
    });
    assert!(late < PROMPT, "{late:?}");
}

#[test]
fn a_foreign_wake_reaches_a_busy_executor_promptly() {
    for how in WAYS {
        let late = best_of(5, || {
            let woken_at = Arc::new(Mutex::new(None));
            let at = Arc::clone(&woken_at);
            run(async {
                let _busy = be_busy(how, 2);
                let mut thread = None;
                let mut wake_soon = |waker: Waker| {
                    let at = Arc::clone(&at);
                    thread = Some(thread::spawn(move || {
                        thread::sleep(Duration::from_millis(5));
                        *at.lock().unwrap() = Some(Instant::now());
                        waker.wake();
                    }));
                };
                let mut is_first = true;
                poll_fn(|cx| {
                    if std::mem::take(&mut is_first) {
                        wake_soon(cx.waker().clone());
                    }
                    match *woken_at.lock().unwrap() {
                        Some(_) => Poll::Ready(()),
                        None => Poll::Pending,
                    }
                })
                .await;
                let at = woken_at.lock().unwrap().expect("it was woken");
                at.elapsed()
            })
        });
        assert!(late < PROMPT, "{how:?}: {late:?}");
    }
}

#[test]
fn a_lone_task_has_its_slice_to_itself() {
    let _watchdog = watchdog();
    // Not preempted without a reason: the default slice is 100 ms, and begins later than this.
    let started = Instant::now();
    run(async {
        yield_now().await;
        while !executor().need_preempt() {
            std::hint::spin_loop();
        }
        let slice = started.elapsed();
        assert!(slice >= Duration::from_millis(100), "{slice:?}");
        assert!(
            executor().need_preempt(),
            "it stays true until the executor has looked"
        );
        // A new slice begins.
        while executor().need_preempt() {
            yield_if_needed().await;
        }
    });
    let executor = LocalExecutorBuilder::default()
        .preempt_timer(Duration::from_millis(10))
        .make()
        .expect("an executor");
    let slice = best_of(5, || {
        let started = Instant::now();
        executor.run(async {
            yield_now().await;
            while !glommio::executor().need_preempt() {
                std::hint::spin_loop();
            }
            started.elapsed()
        })
    });
    assert!(slice >= Duration::from_millis(10), "{slice:?}");
    assert!(slice < Duration::from_millis(90), "{slice:?}");
}

#[test]
fn a_latency_longer_than_the_default_lengthens_the_slice_of_a_queue_alone() {
    let _watchdog = watchdog();
    let executor = LocalExecutorBuilder::default()
        .preempt_timer(Duration::from_millis(5))
        .make()
        .expect("an executor");
    executor.run(async {
        const PATIENCE: Duration = Duration::from_millis(100);
        let latency = Latency::Matters(PATIENCE);
        let patient = glommio::executor().create_task_queue(Shares::default(), latency, "");
        let slices = async {
            let mut longest = Duration::ZERO;
            // A machine that is busy otherwise may keep the thread from a slice that has begun.
            for _ in 0..10 {
                sleep(Duration::from_millis(1)).await;
                let started = Instant::now();
                while !glommio::executor().need_preempt() {
                    std::hint::spin_loop();
                }
                longest = longest.max(started.elapsed());
                if longest >= PATIENCE / 2 {
                    break;
                }
            }
            longest
        };
        let longest = spawn_local_into(slices, patient)
            .expect("it was just made")
            .await;
        assert!(longest >= PATIENCE / 2, "{longest:?}");
    });
}

#[test]
fn a_busy_task_gives_way_to_an_impatient_queue() {
    let _watchdog = watchdog();
    // Slices that nothing but the latency ends.
    let made = LocalExecutorBuilder::default()
        .preempt_timer(Duration::from_secs(3600))
        .make()
        .expect("an executor");
    for latency in [1, 2, 5].map(Duration::from_millis) {
        made.run(async {
            let turns = Rc::new(Cell::new(0));
            let counted = Rc::clone(&turns);
            let queue =
                executor().create_task_queue(Shares::default(), Latency::Matters(latency), "");
            let _impatient = spawn_local_into(
                async move {
                    loop {
                        counted.set(counted.get() + 1);
                        executor().yield_task_queue_now().await;
                    }
                },
                queue,
            );
            for expected in 1..=5 {
                while turns.get() < expected {
                    // An inner loop that asks, and yields only when told to.
                    while !executor().need_preempt() {
                        std::hint::spin_loop();
                    }
                    yield_if_needed().await;
                }
            }
        });
    }
}

#[test]
fn a_woken_queue_goes_before_the_next_turn_of_its_neighbour() {
    run(async {
        let due = Rc::new(Cell::new(None::<Instant>));
        let passed_over = Rc::new(Cell::new(0));
        let (sees, counts) = (Rc::clone(&due), Rc::clone(&passed_over));
        let new_queue =
            || executor().create_task_queue(Shares::default(), Latency::NotImportant, "");
        let neighbour = async move {
            loop {
                if sees.get().is_some_and(|due| due <= Instant::now()) {
                    counts.set(counts.get() + 1);
                }
                while !executor().need_preempt() {
                    std::hint::spin_loop();
                }
                yield_if_needed().await;
            }
        };
        let _neighbour = spawn_local_into(neighbour, new_queue());
        let woken = spawn_local_into(
            async move {
                let mut least = u32::MAX;
                for _ in 0..20 {
                    let wait = Duration::from_millis(1);
                    due.set(Some(Instant::now() + wait));
                    sleep(wait).await;
                    due.set(None);
                    // A turn may begin at the very moment at which the timer comes due.
                    least = least.min(passed_over.take());
                }
                least
            },
            new_queue(),
        );
        let least = woken.expect("it was just made").await;
        assert_eq!(least, 0, "turns between the deadline and the sleeper's own");
    });
}

#[test]
fn a_queue_that_becomes_impatient_in_the_middle_of_a_slice_cuts_it_short() {
    let cut = best_of(5, || {
        let started = Instant::now();
        run(async {
            let latency = Latency::Matters(Duration::from_millis(1));
            let queue = executor().create_task_queue(Shares::default(), latency, "");
            // The slice is on its way already.
            while started.elapsed() < Duration::from_millis(2) {
                assert!(!executor().need_preempt() || started.elapsed() > Duration::from_millis(1));
            }
            let _task = spawn_local_into(async {}, queue);
            while !executor().need_preempt() {
                std::hint::spin_loop();
            }
            started.elapsed()
        })
    });
    assert!(cut < PROMPT, "{cut:?}");
}

#[test]
fn a_timer_armed_in_the_middle_of_a_slice_cuts_it_short() {
    let cut = best_of(5, || {
        run(async {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(1) {
                executor().need_preempt();
            }
            let due = Instant::now() + Duration::from_millis(5);
            let timer = spawn_local(Timer::new(Duration::from_millis(5)));
            while !executor().need_preempt() {
                std::hint::spin_loop();
            }
            let late = due.elapsed();
            timer.await;
            late
        })
    });
    assert!(cut < PROMPT, "{cut:?}");
}

#[test]
fn a_foreign_wake_asks_the_running_task_to_yield() {
    run(async {
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        let is_done = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&is_done);
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(1));
            waker.wake();
            set.store(true, Ordering::SeqCst);
        });
        while !executor().need_preempt() {
            std::hint::spin_loop();
        }
        thread.join().expect("it only wakes");
        assert!(is_done.load(Ordering::SeqCst));
    });
}

#[test]
fn yield_if_needed_goes_on_at_once_when_it_is_not() {
    let _watchdog = watchdog();
    let made = LocalExecutorBuilder::default()
        .preempt_timer(Duration::from_secs(3600))
        .make()
        .expect("an executor");
    made.run(async {
        let others_ran = Rc::new(Cell::new(false));
        let set = Rc::clone(&others_ran);
        let other = spawn_local_into(async move { set.set(true) }, Default::default());
        yield_if_needed().await;
        assert!(!others_ran.get());
        other.expect("the default queue exists").await;
    });
}

#[test]
fn a_producer_and_a_consumer_hand_over_many_times() {
    let _watchdog = watchdog();
    // Short rounds: two tasks wake each other, thousands of times, beside timers.
    let executor = LocalExecutor::default();
    let rounds = executor.run(async {
        let (turn, wakers) = (
            Rc::new(Cell::new(0)),
            Rc::new([const { Cell::new(None) }; 2]),
        );
        let player = |me: usize| {
            let (turn, wakers) = (Rc::clone(&turn), Rc::clone(&wakers));
            async move {
                while turn.get() < 50_000 {
                    poll_fn(|cx| {
                        if turn.get() % 2 == me || turn.get() >= 50_000 {
                            return Poll::Ready(());
                        }
                        wakers[me].set(Some(cx.waker().clone()));
                        Poll::Pending
                    })
                    .await;
                    turn.set(turn.get() + 1);
                    if let Some(other) = wakers[1 - me].take() {
                        other.wake();
                    }
                }
            }
        };
        let players = [spawn_local(player(0)), spawn_local(player(1))];
        for player in players {
            player.await;
        }
        turn.get()
    });
    assert!(rounds >= 50_000);
}
