//! An executor that nothing wakes but a foreign thread, every now and then.
//!
//! No sweeper, no timer that comes due: it sleeps in the kernel for seconds, with thousands of
//! timers set, until another thread calls the waker of its one task. A wake that is lost is lost
//! for good here, while elsewhere the next timer would hide it.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;

use glommio::timer::sleep;
use support::generator::{Draw, Rng};

use super::hogs::{Meter, SETTLED_AFTER};
use super::sizes::Sizes;
use super::sleepers::far;
use crate::check::checker::Checker;
use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::Invariant;
use crate::measure::nanos;

pub(super) async fn run(checker: Rc<Checker>, mut rng: Rng, sizes: Sizes) {
    let far = far(&checker, &mut rng, sizes.far);
    let wakes = Arc::new(WakeCounter::default());
    let (answers, answered) = mpsc::channel();
    let waking = WakingThread {
        stats: Arc::clone(&checker.stats),
        control: Arc::clone(&checker.control),
        wakes: Arc::clone(&wakes),
        answered,
        rng,
        sizes,
    };
    // All tasks have armed what is to be armed.
    sleep(SETTLED_AFTER).await;
    let thread = thread::Builder::new()
        .name("soak-waking".to_owned())
        .spawn(move || waking.wake_until_drained())
        .expect("a thread can be started: the executor has one too");
    answer(&wakes, &answers).await;
    for (key, action) in far {
        checker.cancel(key);
        action.destroy();
    }
    checker.settle().await;
    // It has sent its last wake, and is at its end.
    thread.join().expect("it does not panic");
}

/// Answers each wake until the last.
async fn answer(wakes: &WakeCounter, answers: &Sender<u64>) {
    let mut answered = 0;
    loop {
        answered = poll_fn(|context| wakes.poll_woken(answered, context.waker())).await;
        // Asked before the answer is sent, after which the thread may go on to its last wake: that
        // one needs an answer of its own.
        let was_last = wakes.is_last.load(Ordering::Acquire);
        // The thread is gone only if it has given up.
        let _ = answers.send(answered);
        if was_last {
            return;
        }
    }
}

/// Counts the wakes of a thread, for which a task of an executor waits.
#[derive(Debug, Default)]
struct WakeCounter {
    waker: Mutex<Option<Waker>>,
    woken: AtomicU64,
    is_last: AtomicBool,
}

impl WakeCounter {
    fn wake(&self) {
        self.woken.fetch_add(1, Ordering::Release);
        let waker = self
            .waker
            .lock()
            .expect("no panic happens under this lock")
            .take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready when it was woken more often than `answered` times.
    fn poll_woken(&self, answered: u64, waker: &Waker) -> Poll<u64> {
        // A wake after this look finds the waker, and a wake before it is counted by it.
        let mut slot = self.waker.lock().expect("no panic happens under this lock");
        let woken = self.woken.load(Ordering::Acquire);
        if woken > answered {
            return Poll::Ready(woken);
        }
        *slot = Some(waker.clone());
        Poll::Pending
    }
}

/// The foreign thread.
struct WakingThread {
    stats: Arc<ExecutorStats>,
    control: Arc<Control>,
    wakes: Arc<WakeCounter>,
    answered: Receiver<u64>,
    rng: Rng,
    sizes: Sizes,
}

impl WakingThread {
    fn wake_until_drained(mut self) {
        while !self.control.is_draining() {
            let pause = self
                .rng
                .log_uniform(self.sizes.quiet / 8, self.sizes.quiet * 2);
            let meter = Meter::start(&self.stats);
            if !self.sleep(pause) {
                break;
            }
            if let Some(meter) = meter {
                meter.judge(&self.stats, pause, INTERRUPTIONS, self.sizes.slowness);
            }
            self.wake();
        }
        self.wakes.is_last.store(true, Ordering::Release);
        self.wake();
    }

    /// `false`: the run drains.
    fn sleep(&self, pause: Duration) -> bool {
        let steps = pause.div_duration_f64(STEP) as u64;
        for _ in 0..steps.max(1) {
            if self.control.is_draining() {
                return false;
            }
            thread::sleep(STEP.min(pause));
        }
        true
    }

    /// Wakes the task, which must answer before the run's patience ends.
    fn wake(&self) {
        self.wakes.wake();
        let patience = self.control.patience();
        // Counted in steps and not by the clock: while the process is stopped nothing is late.
        let steps = patience.div_duration_f64(STEP) as u64;
        for _ in 0..steps {
            match self.answered.recv_timeout(STEP) {
                Ok(_) => return self.stats.ledger.passed(Invariant::NothingLost),
                Err(RecvTimeoutError::Timeout) => {}
                // It ended after an earlier answer.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        self.stats
            .ledger
            .check(Invariant::NothingLost, nanos(patience), || {
                "a task woken by a foreign thread did not run".to_owned()
            });
    }
}

const STEP: Duration = Duration::from_millis(50);

/// The way back into the kernel after the last wake, and being stopped and continued.
const INTERRUPTIONS: u64 = 4;
