//! Timers armed and cancelled as fast as one executor can, beside 0 to 100,000 others that wait.
//!
//! ```text
//!   standing population, in turn:  100,000  0  100  255  256  257  1,000  10,000
//!
//!   20 ms at full speed               rest
//!   ├─ modelled ──┬─ raw ────┤─────────────────────────┤─ modelled ─ ...
//!   arm, reset,     arm, cancel
//!   drop, poll      uncounted by the model, which takes longer than the library
//! ```
//!
//! The staged wheel moves from its first stage to the wheel at 256 timers, so populations stand
//! around that number too. It goes back when it is empty: between populations no timer is armed but
//! the one that this executor sleeps by, and none once that has fired.

mod arrivals;
mod population;

use std::task::Wake;

use self::population::{Deadlines, Population, SPREADS, Spread, until};
use crate::check::peak::Peaks;
use crate::workload::prelude::*;

/// Starts the executor.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let sizes = Sizes {
        // The greatest first: what a run needs at most it takes before it is called warm.
        populations: [
            plan.scaled(100_000, 1_200),
            0,
            100,
            255,
            256,
            257,
            plan.scaled(1_000, 300),
            plan.scaled(10_000, 600),
        ],
        population_lasts: (plan.duration / 16).clamp(POPULATION_LASTS_MIN, POPULATION_LASTS_MAX),
        // Bounded, since a burst is meant to be followed by a rest on any machine.
        burst: BURST.mul_f64(plan.load.clamp(0.1, 5.0)),
    };
    let seed = plan.seed;
    plan.start("churn", move |checker| run(checker, seed, sizes))
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    populations: [usize; 8],
    population_lasts: Duration,
    burst: Duration,
}

async fn run(checker: Rc<Checker>, seed: u64, sizes: Sizes) {
    let mut rng = stream(seed, STREAM);
    let mut peaks = Peaks::new(&checker);
    let mut spreads = SPREADS.into_iter().cycle();
    'run: loop {
        for population in sizes.populations {
            peaks.begin();
            let began = Instant::now();
            let population = Population::new(&checker, population);
            let collector = population.gather(&mut rng).await;
            peaks.look();
            while began.elapsed() < sizes.population_lasts && !checker.control.is_draining() {
                let spread = spreads.next().expect("it goes on for ever");
                burst(&checker, &population, &mut rng, spread, sizes.burst).await;
                population.ripen(&mut rng);
                checker.pause(sizes.burst * REST_PER_BURST).await;
            }
            peaks.look();
            population.scatter().await;
            drop((collector, population));
            if checker.control.is_draining() {
                break 'run;
            }
            peaks.judge().await;
        }
    }
}

/// One burst, half of it modelled, in slices: other tasks and the reactor have their turns.
async fn burst(
    checker: &Rc<Checker>,
    population: &Rc<Population>,
    rng: &mut Rng,
    spread: Spread,
    lasts: Duration,
) {
    let began = Instant::now();
    let mut drawn = Deadlines::new(spread);
    while began.elapsed() < lasts / 2 {
        for _ in 0..MODELLED_A_TURN {
            population.step(rng, &mut drawn);
        }
        yield_now().await;
    }
    // Unmodelled: nothing but the library, as fast as it goes. What it has dropped shows all the
    // same, as each timer that waits has a share of the token.
    let token = Arc::new(Token(Arc::clone(&checker.stats)));
    let waker = Waker::from(Arc::clone(&token));
    let (mut timers, mut armed) = (Vec::with_capacity(ARMED_MAX), 0);
    while began.elapsed() < lasts {
        armed += churn(checker, &mut timers, &waker, rng, &mut drawn);
        yield_now().await;
    }
    drop(waker);
    let left = Arc::strong_count(&token) - 1;
    checker.check(Invariant::LiveTimers, left as u64, || {
        format!("{left} wakers outlive {armed} cancelled timers")
    });
}

/// At a load of 1: an eighth of the executor's core, more or less.
const BURST: Duration = Duration::from_millis(20);
const REST_PER_BURST: u32 = 7;

const POPULATION_LASTS_MIN: Duration = Duration::from_millis(200);
const POPULATION_LASTS_MAX: Duration = Duration::from_secs(4);

/// About a tenth of a millisecond.
const MODELLED_A_TURN: usize = 64;

/// Apart from every other workload that draws from the same seed.
const STREAM: u64 = u64::MAX - 13;

/// A waker that must not be called: its timers are seconds ahead, and cancelled before the reactor
/// has a turn.
struct Token(Arc<ExecutorStats>);

impl Wake for Token {
    fn wake(self: Arc<Self>) {
        self.0.ledger.holds(Invariant::CancelsHold, false, || {
            "a waker was called whose timers were cancelled".to_owned()
        });
    }
}

/// Some thousand timers: armed, a few of them moved, all of them cancelled, in one of three orders.
/// How many.
fn churn(
    checker: &Checker,
    timers: &mut Vec<Timer>,
    waker: &Waker,
    rng: &mut Rng,
    deadlines: &mut Deadlines,
) -> u64 {
    let count = 1 + rng.usize(..ARMED_MAX);
    let mut cx = Context::from_waker(waker);
    for _ in 0..count {
        let mut timer = Timer::new(until(deadlines.draw_far(rng)));
        let polled = Pin::new(&mut timer).poll(&mut cx);
        debug_assert_eq!(polled, Poll::Pending, "it is seconds ahead");
        timers.push(timer);
    }
    let moved = rng.usize(..count);
    for timer in &mut timers[..moved] {
        timer.reset(until(deadlines.draw_far(rng)));
    }
    match rng.u64(..3) {
        // First in, first out.
        0 => timers.drain(..).for_each(drop),
        1 => timers.drain(..).rev().for_each(drop),
        _ => {
            while !timers.is_empty() {
                drop(timers.swap_remove(rng.usize(..timers.len())));
            }
        }
    }
    let gauges = &checker.stats.gauges;
    add(&gauges.timers_armed, count as u64);
    add(&gauges.timers_cancelled, count as u64);
    add(&gauges.timers_rearmed, moved as u64);
    count as u64
}

/// About half a millisecond's worth.
const ARMED_MAX: usize = 2_048;
