//! What an executor costs to have: start, memory, descriptors, CPU while nothing happens.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::cases::sleepers::sleepers;
use crate::machine::{
    Placement, Side, open_descriptors, other_threads_cpu, other_threads_waits, resident_bytes,
};
use crate::samples::{Samples, between, microseconds};
use crate::signal::Signal;
use crate::{Runtime, report};

/// `executor-start`, µs: start an executor on a new thread with nothing to run, and join it; the middle of 130,
/// after 20; all on one CPU. `descriptors-left`: how many more descriptors are open after those 150 than before, a second
/// after the last (a runtime may close them from a helper thread).
pub fn start_and_join<R: Runtime>() {
    const WARM_UP: usize = 20;
    const EXECUTORS: usize = 150;
    Placement::Together.bind(Side::Caller);
    let mut samples = Samples::with_capacity(EXECUTORS);
    let descriptors_before = open_descriptors();
    for _ in 0..EXECUTORS {
        let begin = Instant::now();
        R::start(|| async {})();
        samples.push(microseconds(begin.elapsed()));
    }
    samples.forget_first(WARM_UP);
    report("executor-start", samples.median());

    let deadline = Instant::now() + Duration::from_secs(1);
    while open_descriptors() > descriptors_before && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    report(
        "descriptors-left",
        open_descriptors().saturating_sub(descriptors_before) as f64,
    );
}

/// `executor-memory`, KiB: resident memory that each of 16 executors adds, parked, each on its thread; one
/// more was started before, so that what a process pays once is not counted.
pub fn memory<R: Runtime>() {
    const EXECUTORS: usize = 16;
    let release = |signals: Vec<(Arc<Signal>, crate::Join<()>)>| {
        for (signal, join) in signals {
            signal.raise();
            join();
        }
    };
    let first = vec![parked_executor::<R>()];
    let before = resident_bytes();
    let others: Vec<_> = (0..EXECUTORS).map(|_| parked_executor::<R>()).collect();
    let added_bytes = resident_bytes().saturating_sub(before);
    release(others);
    release(first);
    report(
        "executor-memory",
        added_bytes as f64 / EXECUTORS as f64 / 1024.0,
    );
}

/// Starts an executor and returns once it has had time to park; raising the signal ends it.
fn parked_executor<R: Runtime>() -> (Arc<Signal>, crate::Join<()>) {
    let signal = Arc::new(Signal::default());
    let (is_up, wait_until_up) = mpsc::channel();
    let join = {
        let signal = signal.clone();
        R::start(move || async move {
            is_up.send(()).expect("the starter waits");
            signal.wait().await;
        })
    };
    wait_until_up.recv().expect("the executor starts");
    thread::sleep(Duration::from_millis(10));
    (signal, join)
}

/// `task-memory`, bytes: resident memory that each of 100,000 sleeping tasks adds (deadlines 5 to 60 s ahead);
/// 1000 were asleep before, so that first allocations are not counted.
pub fn memory_per_sleeping_task<R: Runtime>() {
    const TASKS: usize = 100_000;
    let added_bytes = R::run(async move {
        let mut random = Rng::with_seed(1);
        sleep_once::<R>(1_000, &mut random).await;
        let before = resident_bytes();
        sleep_once::<R>(TASKS, &mut random).await;
        resident_bytes().saturating_sub(before)
    });
    report("task-memory", added_bytes as f64 / TASKS as f64);
}

/// `executor-drop`, ms: drop an executor with 100,000 sleeping tasks, all of them detached; from the end of the
/// main task to the end of the drop. A runtime that leaks them has it easy.
pub fn drop_with_sleeping_tasks<R: Runtime>() {
    const TASKS: usize = 100_000;
    let begin = R::run(async move {
        sleep_once::<R>(TASKS, &mut Rng::with_seed(1)).await;
        Instant::now()
    });
    report("executor-drop", microseconds(begin.elapsed()) / 1e3);
}

/// Spawns `count` tasks that hold nothing but a timer, and lets all of them fall asleep.
async fn sleep_once<R: Runtime>(count: usize, random: &mut Rng) {
    for _ in 0..count {
        let wait = between(random, Duration::from_secs(5), Duration::from_secs(60));
        R::spawn_detached(async move {
            R::timer(wait).await;
        });
    }
    // One turn for each task would do; an executor may interrupt it, hence some more.
    for _ in 0..100 {
        R::yield_now().await;
    }
}

/// `idle-sleepers`, µs of CPU per s: an executor with 10,000 tasks asleep (10 to 70 s), measured for five seconds
/// from another thread. All threads but the measuring one count. `idle-sleepers-wakes`: how often they woke.
pub fn idle_with_sleepers<R: Runtime>() {
    let idle = idle::<R>(10_000, Duration::from_secs(5));
    report("idle-sleepers", idle.cpu_us_per_second);
    report("idle-sleepers-wakes", idle.wakes as f64);
}

/// `idle-none`, µs of CPU per s: the same for a second with one task that waits for a signal, and no timer.
pub fn idle_with_nothing<R: Runtime>() {
    let idle = idle::<R>(0, Duration::from_secs(1));
    report("idle-none", idle.cpu_us_per_second);
}

struct Idle {
    cpu_us_per_second: f64,
    wakes: i64,
}

fn idle<R: Runtime>(sleeper_count: usize, window: Duration) -> Idle {
    let signal = Arc::new(Signal::default());
    let (is_asleep, wait_until_asleep) = mpsc::channel();
    let join = {
        let signal = signal.clone();
        R::start(move || async move {
            sleepers::<R>(sleeper_count, 1, |random| {
                between(random, Duration::from_secs(10), Duration::from_secs(70))
            })
            .await;
            is_asleep.send(()).expect("the measuring thread waits");
            signal.wait().await;
        })
    };
    wait_until_asleep.recv().expect("the executor starts");
    thread::sleep(Duration::from_millis(250));
    let begin = Instant::now();
    let (cpu_before, wakes_before) = (other_threads_cpu(), other_threads_waits());
    thread::sleep(window);
    // The two clocks behind it are not read at the same instant: with nothing burnt it may seem to run backwards.
    let cpu = other_threads_cpu().saturating_sub(cpu_before);
    let idle = Idle {
        cpu_us_per_second: microseconds(cpu) / begin.elapsed().as_secs_f64(),
        wakes: other_threads_waits() - wakes_before,
    };
    signal.raise();
    join();
    idle
}
