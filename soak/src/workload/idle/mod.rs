//! Hardly anything, for a long time, and rude interruptions.
//!
//! ```text
//!   executor `idle`
//!     sleepers   thousands of timers that are far off, some that never come, a few long sleeps
//!     hogs       quiet ──▶ hog ──▶ quiet ──▶ hog ──▶ ...
//!                  │         └ a task that keeps the thread, or yields when it is asked to, while
//!                  │           timers come due in a lane
//!                  └ how much processor time did waiting take?
//!
//!   executor `asleep`
//!     far timers and one task, which nothing but a foreign thread wakes, every few seconds
//!
//!   executor `short-sleeps`
//!     one task that sleeps to the next millisecond, again and again
//! ```
//!
//! While this workload runs, the monitor stops the whole process now and then.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use glommio::channels::watch::{self, SharedSender};
use glommio::{Latency, Shares, TaskQueueHandle, spawn_local_into, yield_if_needed};
use support::numbers;

use crate::check::checker::SWEEP_EVERY;
use crate::check::control::Control;
use crate::check::model::Lane;
use crate::measure::noise::SLEEP;
use crate::measure::process::CoreTime;
use crate::workload::alarms::Alarms;
use crate::workload::prelude::*;

/// Starts the executors.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let sizes = Sizes {
        far: plan.scaled(5_000, 50),
        sleeps: plan.scaled(24, 4),
        in_lane: plan.scaled(64, 8),
        quiet: QUIET.min(plan.duration / 6),
        hog_max: HOG_MAX.min(plan.duration / 10),
        sleep_max: SLEEP_MAX.min(plan.duration / 2),
        slowness: plan.slowness,
    };
    let seed = plan.seed;
    plan.start("idle", move |checker| run(checker, seed, sizes))?;
    plan.start("asleep", move |checker| {
        sleep_until_woken(checker, stream(seed, 13), sizes)
    })?;
    plan.start("short-sleeps", sleep_to_each_millisecond)
}

async fn run(checker: Rc<Checker>, seed: u64, sizes: Sizes) {
    checker.spawn_sweeper();
    let (alarms, mut rng) = (Alarms::new(&checker, None), stream(seed, 11));
    for _ in 0..NEVER {
        alarms.arm(Instant::now() + CENTURIES, async {});
    }
    for _ in 0..sizes.sleeps {
        sleep_again_and_again(Rc::clone(&alarms), stream(rng.u64(..), 0), sizes.sleep_max);
    }
    arm_far(&alarms, &mut rng, sizes.far);
    Hogs::new(&checker, stream(seed, 12), sizes).run().await;
    alarms.cancel_all();
}

const QUIET: Duration = Duration::from_secs(2);
const HOG_MAX: Duration = Duration::from_millis(200);
const SLEEP_MAX: Duration = Duration::from_secs(20);

/// Wants to wake at each millisecond and does nothing then: the twin of the plain thread that measures the noise. The machine
/// treats both alike, so that what the one is later than the other is the library's.
async fn sleep_to_each_millisecond(checker: Rc<Checker>) {
    let mut due = Instant::now();
    while !checker.control.is_draining() {
        // Not from the end of the sleep before: every millisecond counts, also those overslept.
        due += SLEEP;
        let ticket = checker.arm(due);
        let _live = ticket.live;
        Timer::new(ticket.deadline.saturating_duration_since(Instant::now())).await;
        checker.fired_as(ticket.key, Timing::Sleep);
    }
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    far: usize,
    sleeps: usize,
    in_lane: usize,
    /// How long a quiet window is.
    quiet: Duration,
    hog_max: Duration,
    sleep_max: Duration,
    /// How many times slower than the reference machine this one is.
    slowness: f64,
}

/// Arms what is waited for all the time: timers that are minutes to hours ahead, so that none of them fires in a run, ..
fn arm_far(alarms: &Rc<Alarms>, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let patience = alarms.checker.control.patience() * 10;
        let ahead = patience + rng.log_uniform(FAR_MIN, FAR_MAX);
        alarms.arm(Instant::now() + ahead, async {});
    }
}

/// .. and sleeps, one after the other.
fn sleep_again_and_again(alarms: Rc<Alarms>, mut rng: Rng, longest: Duration) {
    let wait = rng.log_uniform(SLEEP_MIN.min(longest / 4), longest);
    let again = Rc::clone(&alarms);
    let due = async move { sleep_again_and_again(again, rng, longest) };
    alarms.arm(Instant::now() + wait, due);
}

const FAR_MIN: Duration = Duration::from_secs(10 * 60);
const FAR_MAX: Duration = Duration::from_secs(48 * 3_600);
const SLEEP_MIN: Duration = Duration::from_secs(1);

/// The model counts in `Instant`s, which end somewhere after this.
const CENTURIES: Duration = Duration::from_secs(200 * 365 * 24 * 3_600);
const NEVER: usize = 16;

/// An executor that nothing wakes but a foreign thread, every now and then.
///
/// No sweeper, no timer that comes due: it sleeps in the kernel for seconds, with thousands of timers set, until another
/// thread calls the waker of its one task. A wake that is lost is lost for good here, while elsewhere the next timer would hide
/// it.
async fn sleep_until_woken(checker: Rc<Checker>, mut rng: Rng, sizes: Sizes) {
    let alarms = Alarms::new(&checker, None);
    arm_far(&alarms, &mut rng, sizes.far);
    let (wakes, mut woken) = watch::shared(());
    let (answers, answered) = mpsc::channel();
    let waking = WakingThread {
        stats: Arc::clone(&checker.stats),
        control: Arc::clone(&checker.control),
        wakes,
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
    while woken.changed().await.is_ok() {
        // The thread is gone only if it has given up.
        let _ = answers.send(());
    }
    alarms.cancel_all();
    // It has dropped its sender, and is at its end.
    thread.join().expect("it does not panic");
}

/// The foreign thread.
struct WakingThread {
    stats: Arc<ExecutorStats>,
    control: Arc<Control>,
    wakes: SharedSender<()>,
    answered: Receiver<()>,
    rng: Rng,
    sizes: Sizes,
}

impl WakingThread {
    fn wake_until_drained(mut self) {
        while !self.control.is_draining() {
            let quiet = self.sizes.quiet;
            let pause = self.rng.log_uniform(quiet / 8, quiet * 2);
            let meter = Meter::start(&self.stats);
            if !self.sleep(pause) {
                break;
            }
            if let Some(meter) = meter {
                meter.judge(&self.stats, pause, INTERRUPTIONS, self.sizes.slowness);
            }
            self.wake();
        }
    }

    /// `false`: the run drains.
    fn sleep(&self, pause: Duration) -> bool {
        let steps = pause.div_duration_f64(NAP) as u64;
        for _ in 0..steps.max(1) {
            if self.control.is_draining() {
                return false;
            }
            thread::sleep(NAP.min(pause));
        }
        true
    }

    /// Wakes the task, which must answer before the run's patience ends.
    fn wake(&self) {
        let is_heard = self.wakes.send(()).is_ok();
        debug_assert!(is_heard, "the task waits for as long as there is a sender");
        let (ledger, patience) = (&self.stats.ledger, self.control.patience());
        // Counted in steps and not by the clock: while the process is stopped nothing is late.
        let steps = patience.div_duration_f64(NAP) as u64;
        for _ in 0..steps {
            match self.answered.recv_timeout(NAP) {
                Ok(()) => return ledger.passed(Invariant::NothingLost),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        ledger.check(Invariant::NothingLost, nanos(patience), || {
            "a task woken by a foreign thread did not run".to_owned()
        });
    }
}

const NAP: Duration = Duration::from_millis(50);

/// The way back into the kernel after the last wake, and being stopped and continued.
const INTERRUPTIONS: u64 = 4;

/// Quiet, in which waiting must cost nothing, and between the quiet a task that hogs the thread: the conductor, in the default
/// task queue.
///
/// A *rude* hog never yields: nothing can fire meanwhile, and all that was due fires once and in order as soon as it ends. The
/// span is noted, so that lateness is judged without it. A *polite* one runs for as long as timers of another task queue have
/// not fired, and asks after every few microseconds whether it should yield: it would run for ever if it were not told to.
struct Hogs {
    checker: Rc<Checker>,
    rng: Rng,
    sizes: Sizes,
    /// Where timers are armed and hogs run: the conductor's, and one with other shares and
    /// latency.
    queues: [(TaskQueueHandle, Lane); 2],
}

impl Hogs {
    fn new(checker: &Rc<Checker>, rng: Rng, sizes: Sizes) -> Self {
        let own = executor().current_task_queue();
        let other =
            executor().create_task_queue(Shares::Static(250), Latency::Matters(LATENCY), "hogs");
        Hogs {
            checker: Rc::clone(checker),
            rng,
            sizes,
            queues: [(own, Lane(0)), (other, Lane(1))],
        }
    }

    /// Until the run drains.
    async fn run(mut self) {
        let [own, other] = self.queues;
        while !self.checker.control.is_draining() {
            self.quiet().await;
            self.rude(own).await;
            self.rude(other).await;
            self.polite(own, other).await;
        }
    }

    /// Waits, and asks how much processor time the thread has taken for it.
    async fn quiet(&self) {
        let (stats, began) = (&self.checker.stats, Instant::now());
        // Tasks woken by what came before have run by then.
        sleep(SETTLED_AFTER).await;
        let Some(meter) = Meter::start(stats) else {
            return;
        };
        let mut events = self.sizes.quiet.div_duration_f64(SWEEP_EVERY) as u64;
        while began.elapsed() < self.sizes.quiet {
            if self.checker.control.is_draining() {
                return;
            }
            sleep(LOOK_EVERY.min(self.sizes.quiet)).await;
            events += 1;
        }
        meter.judge(stats, self.sizes.quiet, events, self.sizes.slowness);
    }

    /// Keeps the thread from a task in `queue`, in which timers come due meanwhile.
    async fn rude(&mut self, (queue, lane): (TaskQueueHandle, Lane)) {
        if self.checker.control.is_draining() {
            return;
        }
        let span = self.span();
        let ahead = self.arm(queue, lane, span, Timing::Lateness).await;
        let checker = Rc::clone(&self.checker);
        run_in(queue, async move {
            let from = Instant::now();
            while from.elapsed() < span {
                std::hint::spin_loop();
            }
            checker.stats.hogs.note(from, Instant::now());
        })
        .await;
        // What has not fired then is written off by the sweeper.
        self.checker.until_none(|| ahead.get()).await;
    }

    /// Works in one queue, yielding when needed, until timers of the other have fired.
    async fn polite(
        &mut self,
        (timers, lane): (TaskQueueHandle, Lane),
        (queue, _): (TaskQueueHandle, Lane),
    ) {
        if self.checker.control.is_draining() {
            return;
        }
        let span = self.span();
        let ahead = self.arm(timers, lane, span, Timing::Neighbour).await;
        let patience = span + self.checker.control.patience();
        // Counted in pieces of work, not by the clock: while the process is stopped nothing is
        // late.
        let mut pieces_left = patience.div_duration_f64(PIECE) as u64;
        let watching = Rc::clone(&ahead);
        run_in(queue, async move {
            while watching.get() > 0 && pieces_left > 0 {
                pieces_left -= 1;
                let began = Instant::now();
                while began.elapsed() < PIECE {
                    std::hint::spin_loop();
                }
                yield_if_needed().await;
            }
        })
        .await;
        let left = ahead.get();
        let overdue = if left > 0 { nanos(patience) } else { 0 };
        self.checker.check(Invariant::NothingLost, overdue, || {
            format!("{left} timers did not fire beside a task that yields if needed")
        });
        self.checker.until_none(|| ahead.get()).await;
    }

    fn span(&mut self) -> Duration {
        let longest = self.sizes.hog_max;
        self.rng.log_uniform(longest / 10, longest)
    }

    /// Arms timers that come due within `span` in `queue`, some of them at one moment, and are
    /// timed as `timing`: how many of them are ahead.
    async fn arm(
        &mut self,
        queue: TaskQueueHandle,
        lane: Lane,
        span: Duration,
        timing: Timing,
    ) -> Rc<Cell<usize>> {
        let ahead = Rc::new(Cell::new(self.sizes.in_lane));
        // By then all of them are armed.
        let first = Instant::now() + span / 10;
        let mut deadline = first;
        let mut keys = Vec::new();
        for _ in 0..self.sizes.in_lane {
            if !self.rng.chance(1, 4) {
                deadline = first + self.rng.uniform(Duration::ZERO, span);
            }
            let ticket = self.checker.arm(deadline);
            keys.push(ticket.key);
            let (checker, ahead) = (Rc::clone(&self.checker), Rc::clone(&ahead));
            let action = async move {
                let _live = ticket.live;
                if checker.fired_as(ticket.key, timing) {
                    ahead.set(ahead.get() - 1);
                }
            };
            // It fires all the same when its handle is dropped.
            drop(TimerActionOnce::do_at_into(ticket.deadline, action, queue).expect(LIVES));
        }
        // The queue runs its tasks in the order in which they were spawned: a task behind them
        // finds them waiting for their timers.
        let checker = Rc::clone(&self.checker);
        run_in(queue, async move {
            for key in keys {
                checker.join_lane(key, lane);
            }
        })
        .await;
        ahead
    }
}

async fn run_in(queue: TaskQueueHandle, work: impl Future<Output = ()> + 'static) {
    spawn_local_into(work, queue).expect(LIVES).await;
}

/// The processor time of an executor's thread, and what it fired, at a moment.
struct Meter {
    core_time: CoreTime,
    fired: u64,
}

impl Meter {
    /// `None`: the kernel does not count it.
    fn start(stats: &ExecutorStats) -> Option<Self> {
        Some(Meter {
            core_time: stats.core_time()?,
            fired: stats.gauges.timers_fired.load(Ordering::Relaxed),
        })
    }

    /// Judges what was taken since then, in which the thread had nothing to do for `window` but
    /// `events` and the timers that fired.
    fn judge(self, stats: &ExecutorStats, window: Duration, events: u64, slowness: f64) {
        let Some(now) = Meter::start(stats) else {
            return;
        };
        let took = now.core_time.since(self.core_time).ran;
        let events = events + (now.fired - self.fired);
        let of_events = EVENT * u32::try_from(events).unwrap_or(u32::MAX);
        let bound = (window / IDLE_DIVISOR + of_events).mul_f64(slowness.max(1.0));
        let over = nanos(took.saturating_sub(bound));
        stats.ledger.check(Invariant::IdleCpu, over, || {
            format!(
                "{} in {} with {events} events, instead of at most {}",
                numbers::duration(took),
                numbers::duration(window),
                numbers::duration(bound),
            )
        });
    }
}

/// Of the second queue.
const LATENCY: Duration = Duration::from_millis(5);

const LIVES: &str = "no task queue is ever removed here";

/// How long a polite hog works before it asks.
const PIECE: Duration = Duration::from_micros(20);

const LOOK_EVERY: Duration = Duration::from_millis(100);
const SETTLED_AFTER: Duration = Duration::from_millis(10);

/// A twentieth of a percent. An executor that sleeps for two seconds takes nothing at all; one that
/// woke a hundred times a second to look at its timers would take some 3 ms of them.
const IDLE_DIVISOR: u32 = 2_000;

/// For what wakes the thread: 60 µs were seen on the reference machine when all others were busy,
/// as nothing is in the caches any more.
const EVENT: Duration = Duration::from_micros(250);
