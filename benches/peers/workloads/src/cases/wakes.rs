//! Wakes within a thread and from other threads, through nothing but `std::task::Waker`.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cases::lateness::compute_for_a_moment;
use crate::machine::{Placement, Side};
use crate::samples::{Batches, Samples, middle};
use crate::signal::{LocalSignal, Signal};
use crate::{Cooperative, Runtime, converse, report};

/// `wake-local`, ns: two tasks of one executor wake each other in turn; a trip there and back.
pub fn between_two_tasks<R: Runtime>() {
    const BATCHES: usize = 1500;
    const TRIPS_PER_BATCH: usize = 200;
    let ns = R::run(async {
        let (ping, pong) = (
            Rc::new(LocalSignal::default()),
            Rc::new(LocalSignal::default()),
        );
        let echo = {
            let (ping, pong) = (ping.clone(), pong.clone());
            R::spawn(async move {
                for _ in 0..BATCHES * TRIPS_PER_BATCH {
                    ping.wait().await;
                    pong.raise();
                }
            })
        };
        let ns = Batches::new(BATCHES, TRIPS_PER_BATCH)
            .run(async |trips| {
                for _ in 0..trips {
                    ping.raise();
                    pong.wait().await;
                }
            })
            .await;
        echo.await;
        ns
    });
    report("wake-local", ns);
}

/// `wake-rtt`, µs: two executors on two threads, nothing to do in either; one wakes a task of the other, which
/// wakes back; the middle of 10,000 trips there and back. `wake-rtt-apart`: on two CPUs.
pub fn between_idle_executors<R: Runtime>(placement: Placement) {
    const TRIPS: usize = 10_000;
    const WARM_UP: usize = 1_000;
    let (ping, pong) = (Arc::new(Signal::default()), Arc::new(Signal::default()));

    let (pinged, ponging) = (ping.clone(), pong.clone());
    let echo = async move || {
        for _ in 0..TRIPS + WARM_UP {
            pinged.wait().await;
            ponging.raise();
        }
    };
    let rtt = converse::<R, _>(placement, echo, async move || {
        let trip = async || {
            ping.raise();
            pong.wait().await;
        };
        middle(TRIPS, WARM_UP, trip).await
    });
    report(&placement.row("wake-rtt"), rtt / 1e3);
}

/// `wake-busy-yield-now`, µs: a plain thread wakes a task of an executor in which another task yields without
/// end, about once per ms; from before the wake to the moment the task runs, the 99th of 100.
pub fn into_self_waking_executor<R: Cooperative>() {
    let late = into_busy_executor::<R, _>(|| async || R::yield_now().await);
    report("wake-busy-yield-now", late);
}

/// `wake-busy-yield-if-needed`, µs: the same beside a task that computes and offers to yield every µs or so.
pub fn into_cooperative_executor<R: Cooperative>() {
    let late = into_busy_executor::<R, _>(|| {
        async || {
            compute_for_a_moment();
            R::yield_if_needed().await;
        }
    });
    report("wake-busy-yield-if-needed", late);
}

fn into_busy_executor<R: Runtime, S: AsyncFn() + 'static>(suspend: fn() -> S) -> f64 {
    const WAKES: usize = 500;
    const LIMIT: Duration = Duration::from_millis(1500);
    /// A runtime may never look at foreign wakes while a task is runnable: then the busy one gives up at last.
    const PATIENCE: Duration = Duration::from_secs(4);
    let epoch = Instant::now();
    let signal = Arc::new(Signal::default());
    // Lateness of the last wake in ns, and 0 while one is under way.
    let late_ns = Arc::new(AtomicU64::new(u64::MAX));
    let sent_ns = Arc::new(AtomicU64::new(0));
    let is_done = Arc::new(AtomicBool::new(false));

    let executor = {
        let (signal, late_ns, sent_ns, is_done) = (
            signal.clone(),
            late_ns.clone(),
            sent_ns.clone(),
            is_done.clone(),
        );
        R::start(move || async move {
            Placement::Apart.bind(Side::Answerer);
            let busy = {
                let is_done = is_done.clone();
                let suspend = suspend();
                R::spawn(async move {
                    while !is_done.load(Ordering::Relaxed) && epoch.elapsed() < PATIENCE {
                        suspend().await;
                    }
                })
            };
            loop {
                signal.wait().await;
                if is_done.load(Ordering::SeqCst) {
                    break;
                }
                let now_ns = epoch.elapsed().as_nanos() as u64;
                let late = now_ns.saturating_sub(sent_ns.load(Ordering::SeqCst));
                late_ns.store(late.max(1), Ordering::SeqCst);
            }
            busy.await;
        })
    };

    Placement::Apart.bind(Side::Caller);
    thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    let mut samples = Samples::with_capacity(WAKES);
    while samples.len() < WAKES && begin.elapsed() < LIMIT {
        late_ns.store(0, Ordering::SeqCst);
        sent_ns.store(epoch.elapsed().as_nanos() as u64, Ordering::SeqCst);
        signal.raise();
        // Asleep, not spinning: the waking thread must not compete with anything.
        while late_ns.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        samples.push(late_ns.load(Ordering::SeqCst) as f64 / 1e3);
    }
    is_done.store(true, Ordering::SeqCst);
    signal.raise();
    executor();
    samples.quantile(0.99)
}
