//! Bursts of timers that are all due at one instant, crowds that are due one after the other, and a
//! ping beside them.
//!
//! ```text
//!   arm, a chunk a turn          cancel some   due: 100,000 callbacks       rest
//!   ├─────────────────────────────────┼────────┼───────────────────────┼─────────────┤
//!   ping: a message a millisecond     as fast as answers come          is memory back?
//! ```
//!
//! The timers are actions (`TimerActionOnce::do_at`), which can be given one and the same instant
//! to the nanosecond, or tasks that await `Timer`s, which begin to count a little after one
//! another. Both must come in order of deadline, then of arming. Some actions are neighbours, a
//! nanosecond to a microsecond off.
//!
//! A crowd is as many actions, spread evenly and armed in any order: none may be late because of
//! the others, not even the first.
//!
//! A callback that comes after 50,000 others waits for them, and for what the model has to do for
//! each. So their lateness is kept apart from that of timers that are due by themselves.

use futures_lite::future::poll_fn;
use glommio::spawn_local_into;
use glommio::timer::sleep_until;

use crate::check::model::Lane;
use crate::check::peak::Peaks;
use crate::workload::ping::Ping;
use crate::workload::prelude::*;

/// Starts the executor.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let sizes = Sizes {
        timers: plan.scaled(100_000, 500),
        neighbours: plan.scaled(1_000, 16),
        every: (plan.duration / 5).clamp(EVERY_MIN, EVERY_MAX),
    };
    let seed = plan.seed;
    plan.start("cluster", move |checker| run(checker, seed, sizes))
}

async fn run(checker: Rc<Checker>, seed: u64, sizes: Sizes) {
    checker.spawn_sweeper();
    let mut rng = stream(seed, STREAM);
    let mut peaks = Peaks::new(&checker);
    let ping = Ping::start(&checker);
    for shape in SHAPES.into_iter().cycle() {
        if checker.control.is_draining() {
            break;
        }
        let began = clock::now();
        let ahead = (sizes.every / 3).min(AHEAD_MAX);
        peaks.begin();
        Burst::new(&checker, shape, sizes, began + ahead)
            .run(&mut rng, &ping, &mut peaks)
            .await;
        peaks.judge().await;
        checker.rest(began + sizes.every).await;
    }
    ping.end().await;
}

const EVERY_MIN: Duration = Duration::from_millis(400);
const EVERY_MAX: Duration = Duration::from_secs(6);
const AHEAD_MAX: Duration = Duration::from_secs(1);

/// Apart from every other workload that draws from the same seed.
const STREAM: u64 = u64::MAX - 11;

#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Of one burst.
    timers: usize,
    /// Those among them that are a little off.
    neighbours: usize,
    /// From the beginning of one burst to that of the next.
    every: Duration,
}

/// What a burst is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Actions, due one after the other for half of the time until the next burst.
    Crowd,
    /// Actions, some of them a little off.
    Neighbours,
    /// Tasks that await timers.
    Timers,
    /// Actions, all of one instant.
    Actions,
    /// Half actions, half tasks.
    Both,
}

/// In the order in which they come.
const SHAPES: [Shape; 5] = {
    use Shape::{Actions, Both, Crowd, Neighbours, Timers};
    [Crowd, Neighbours, Timers, Actions, Both]
};

/// The burst at hand.
struct Burst {
    checker: Rc<Checker>,
    shape: Shape,
    sizes: Sizes,
    deadline: Instant,
    progress: Rc<Progress>,
}

/// What the callbacks of a burst write down.
struct Progress {
    checker: Rc<Checker>,
    timing: Timing,
    fired: Cell<usize>,
    cancelled: Cell<usize>,
    /// The deadline that the last timer named, and its turn of arming.
    last_named: Cell<Option<(Instant, usize)>>,
}

/// A timer, as its owner holds it.
enum Waiting {
    Action(Key, TimerActionOnce<()>),
    Awaited(Key, Task<()>),
}

impl Burst {
    fn new(checker: &Rc<Checker>, shape: Shape, sizes: Sizes, deadline: Instant) -> Self {
        Burst {
            checker: Rc::clone(checker),
            shape,
            sizes,
            deadline,
            progress: Rc::new(Progress {
                checker: Rc::clone(checker),
                timing: match shape {
                    Shape::Crowd => Timing::Crowd,
                    _ => Timing::Burst,
                },
                fired: Cell::new(0),
                cancelled: Cell::new(0),
                last_named: Cell::new(None),
            }),
        }
    }

    /// From the first arming until every timer has fired or is cancelled.
    async fn run(self, rng: &mut Rng, ping: &Ping, peaks: &mut Peaks) {
        ping.hurry(self.deadline);
        let mut waiting = self.arm_all(rng, peaks).await;
        peaks.look();
        let mut condemned: Vec<_> = (0..waiting.len())
            .filter(|_| rng.chance(1, CANCELS_ONE_IN))
            .collect();
        let late = condemned.split_off(condemned.len() / 2);
        let lead = rng.uniform(Duration::ZERO, CANCEL_LEAD_MAX);
        sleep(time_until(self.deadline).saturating_sub(lead)).await;
        self.cancel(&mut waiting, &condemned).await;
        // The others while the burst goes off. A timer would wait behind it, so this one spins.
        // The first of a crowd is to find the executor asleep.
        while self.progress.timing == Timing::Burst
            && clock::now() < self.deadline
            && !self.checker.control.is_draining()
        {
            match self.checker.control.is_simulated() {
                true => sleep_until(self.deadline).await,
                false => yield_now().await,
            }
        }
        self.cancel(&mut waiting, &late).await;
        self.see_the_rest(&mut waiting).await;
        ping.rest();
    }

    /// Arms every timer, or as many as there is time for before the run drains.
    async fn arm_all(&self, rng: &mut Rng, peaks: &mut Peaks) -> Vec<Option<Waiting>> {
        let mut waiting = Vec::with_capacity(self.sizes.timers);
        let until = self.deadline - time_until(self.deadline) / 3;
        let steps = (time_until(until).as_millis() as usize / STEP_MS).max(1);
        let chunk = self.sizes.timers.div_ceil(steps);
        while waiting.len() < self.sizes.timers && !self.checker.control.is_draining() {
            let began = waiting.len();
            let end = (began + chunk).min(self.sizes.timers);
            for turn in began..end {
                waiting.push(Some(self.arm(rng, turn)));
            }
            // An action's task is not polled where it is made, but put at the end of its queue.
            // When a task that was put there after it has run, so has this one.
            spawn_local_into(async {}, executor().current_task_queue())
                .expect("the queue of the running task exists")
                .await;
            for armed in &waiting[began..] {
                if let Some(Waiting::Action(key, _)) = armed {
                    self.checker.join_lane(*key, ACTIONS);
                }
            }
            peaks.look();
            if clock::now() < until {
                sleep(Duration::from_millis(STEP_MS as u64 - 1)).await;
            } else {
                // Too slow for the plan: what is due already fires as it is armed.
                yield_now().await;
            }
        }
        waiting
    }

    fn arm(&self, rng: &mut Rng, turn: usize) -> Waiting {
        let is_awaited = match self.shape {
            Shape::Actions | Shape::Neighbours | Shape::Crowd => false,
            Shape::Timers => true,
            Shape::Both => rng.chance(1, 2),
        };
        if is_awaited {
            return self.arm_timer(turn);
        }
        let (share, whole) = (self.sizes.neighbours as u64, self.sizes.timers as u64);
        let deadline = match self.shape {
            Shape::Neighbours if rng.chance(share, whole) => neighbour(rng, self.deadline),
            Shape::Crowd => self.deadline + rng.uniform(Duration::ZERO, self.sizes.every / 2),
            _ => self.deadline,
        };
        let ticket = self.checker.arm(deadline);
        let progress = Rc::clone(&self.progress);
        let action = TimerActionOnce::do_at(ticket.deadline, async move {
            let _live = ticket.live;
            progress.fired(ticket.key);
        });
        Waiting::Action(ticket.key, action)
    }

    fn arm_timer(&self, turn: usize) -> Waiting {
        let ticket = self.checker.arm(self.deadline);
        let mut timer = Timer::new(ticket.delay());
        // Polled by hand, so that it is in the queue, in its turn, before its task has run.
        let polled = Pin::new(&mut timer).poll(&mut Context::from_waker(Waker::noop()));
        let is_in_time = polled == Poll::Pending && clock::now() < self.deadline;
        let progress = Rc::clone(&self.progress);
        let task = spawn_local(async move {
            let _live = ticket.live;
            let mut polls = 0;
            let named = poll_fn(|cx| {
                polls += 1;
                Pin::new(&mut timer).poll(cx)
            })
            .await;
            // One that is due when its task is first polled has not waited beside the others.
            if is_in_time && polls > 1 {
                progress.judge_turn(ticket.key, named, turn);
            }
            progress.fired(ticket.key);
        });
        Waiting::Awaited(ticket.key, task)
    }

    async fn cancel(&self, waiting: &mut [Option<Waiting>], condemned: &[usize]) {
        for indices in condemned.chunks(CANCELS_A_TURN) {
            for &index in indices {
                match waiting[index].take() {
                    Some(Waiting::Action(key, action)) => {
                        self.progress.cancelling(key);
                        action.destroy();
                    }
                    Some(Waiting::Awaited(key, task)) => {
                        self.progress.cancelling(key);
                        drop(task);
                    }
                    None => {}
                }
            }
            yield_now().await;
        }
    }

    /// Waits until every timer has fired or was cancelled; cancels what is left when the run
    /// drains, or when nothing has happened for too long.
    async fn see_the_rest(&self, waiting: &mut [Option<Waiting>]) {
        let count = waiting.len();
        let missing = || count - self.progress.fired.get() - self.progress.cancelled.get();
        let is_draining = || self.checker.control.is_draining();
        let awaited = || if is_draining() { 0 } else { missing() };
        self.checker.until_none(awaited).await;
        let missing = missing();
        if missing == 0 || !is_draining() {
            let overdue = nanos(clock::since(self.deadline)) * u64::from(missing > 0);
            self.checker.check(Invariant::NothingLost, overdue, || {
                format!("{missing} timers of a burst of {count} neither fired nor were cancelled")
            });
        }
        for indices in (0..count).collect::<Vec<_>>().chunks(CANCELS_A_TURN) {
            self.cancel(waiting, indices).await;
        }
    }
}

impl Progress {
    fn fired(&self, key: Key) {
        if self.checker.fired_as(key, self.timing) {
            self.fired.set(self.fired.get() + 1);
        }
    }

    fn cancelling(&self, key: Key) {
        if self.checker.cancel(key) {
            self.cancelled.set(self.cancelled.get() + 1);
        }
    }

    /// Timers come by the deadlines that they name, those of equal deadline by their arming.
    fn judge_turn(&self, key: Key, named: Instant, turn: usize) {
        let before = self.last_named.replace(Some((named, turn)));
        let is_in_order = before.is_none_or(|before| before < (named, turn));
        self.checker.holds(Invariant::InOrder, is_in_order, || {
            format!("timer {}, armed as number {turn}, came too late", key.0)
        });
    }
}

fn neighbour(rng: &mut Rng, deadline: Instant) -> Instant {
    let off = rng.log_uniform(Duration::from_nanos(1), Duration::from_micros(1));
    if rng.chance(1, 2) {
        deadline + off
    } else {
        deadline - off
    }
}

fn time_until(instant: Instant) -> Duration {
    instant.saturating_duration_since(clock::now())
}

const ACTIONS: Lane = Lane(0);

const CANCELS_ONE_IN: u64 = 10;
const CANCEL_LEAD_MAX: Duration = Duration::from_millis(30);
const CANCELS_A_TURN: usize = 256;
const STEP_MS: usize = 3;
