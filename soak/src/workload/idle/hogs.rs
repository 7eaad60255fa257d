//! Quiet, in which waiting must cost nothing, and between the quiet a task that hogs the thread.
//!
//! A *rude* hog never yields: nothing can fire meanwhile, and all that was due fires once and in
//! order as soon as it ends. The span is noted, so that lateness is judged without it. A *polite*
//! one runs for as long as timers of another task queue have not fired, and asks after every few
//! microseconds whether it should yield: it would run for ever if it were not told to.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::timer::{TimerActionOnce, sleep};
use glommio::{Latency, Shares, TaskQueueHandle, executor, spawn_local_into, yield_if_needed};
use support::generator::{Draw, Rng};
use support::numbers;

use super::sizes::Sizes;
use crate::check::checker::Checker;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::Invariant;
use crate::check::model::Lane;
use crate::check::probe::Timing;
use crate::measure::nanos;
use crate::measure::process::CoreTime;

/// The conductor, in the default task queue.
pub(super) struct Hogs {
    checker: Rc<Checker>,
    rng: Rng,
    sizes: Sizes,
    /// Where timers are armed and hogs run: the conductor's, and one with other shares and
    /// latency.
    queues: [(TaskQueueHandle, Lane); 2],
}

impl Hogs {
    pub(super) fn new(checker: &Rc<Checker>, rng: Rng, sizes: Sizes) -> Self {
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
    pub(super) async fn run(mut self) {
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
        self.wait_for(&ahead).await;
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
        let kept_from_firing = if ahead.get() > 0 { nanos(patience) } else { 0 };
        self.checker
            .check(Invariant::NothingLost, kept_from_firing, || {
                format!(
                    "{} timers did not fire beside a task that yields if needed",
                    ahead.get()
                )
            });
        self.wait_for(&ahead).await;
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

    /// What has not fired after the run's patience is written off by the sweeper.
    async fn wait_for(&self, ahead: &Cell<usize>) {
        let steps = self.checker.control.patience().div_duration_f64(STEP) as u64;
        for _ in 0..steps {
            if ahead.get() == 0 {
                return;
            }
            sleep(STEP).await;
        }
    }
}

async fn run_in(queue: TaskQueueHandle, work: impl Future<Output = ()> + 'static) {
    spawn_local_into(work, queue).expect(LIVES).await;
}

/// The processor time of an executor's thread, and what it fired, at a moment.
pub(super) struct Meter {
    core_time: CoreTime,
    fired: u64,
}

impl Meter {
    /// `None`: the kernel does not count it.
    pub(super) fn start(stats: &ExecutorStats) -> Option<Self> {
        Some(Meter {
            core_time: stats.core_time()?,
            fired: stats.fired(),
        })
    }

    /// Judges what was taken since then, in which the thread had nothing to do for `window` but
    /// `events` and the timers that fired.
    pub(super) fn judge(self, stats: &ExecutorStats, window: Duration, events: u64, slowness: f64) {
        let Some(now) = Meter::start(stats) else {
            return;
        };
        let took = now.core_time.since(self.core_time).ran;
        let events = events + (now.fired - self.fired);
        let bound = bound(window, events, slowness);
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

fn bound(window: Duration, events: u64, slowness: f64) -> Duration {
    let events = u32::try_from(events).unwrap_or(u32::MAX);
    (window / IDLE_DIVISOR + EVENT * events).mul_f64(slowness.max(1.0))
}

/// Of the second queue.
const LATENCY: Duration = Duration::from_millis(5);

const LIVES: &str = "no task queue is ever removed here";

/// How long a polite hog works before it asks.
const PIECE: Duration = Duration::from_micros(20);

const STEP: Duration = Duration::from_millis(2);
const LOOK_EVERY: Duration = Duration::from_millis(100);
pub(super) const SETTLED_AFTER: Duration = Duration::from_millis(10);

/// As the checker does.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// A twentieth of a percent. An executor that sleeps for two seconds takes nothing at all; one that
/// woke a hundred times a second to look at its timers would take some 3 ms of them.
const IDLE_DIVISOR: u32 = 2_000;

/// For what wakes the thread: 60 µs were seen on the reference machine when all others were busy,
/// as nothing is in the caches any more.
const EVENT: Duration = Duration::from_micros(250);
