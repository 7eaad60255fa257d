//! Timers that act on each other from inside their callbacks: the hard questions for a timer queue.
//!
//! ```text
//!   actions   a TimerActionOnce fires ──▶ destroys, re-arms, replaces, detaches, joins others
//!             an action's future is dropped ▶ the same, inside the destructor
//!   wakers    a Timer's waker is called ─▶ resets, drops, polls other Timers, inside the wake itself
//!             a Timer's waker is dropped ▶ the same, inside the destructor
//!   repeats   TimerActionRepeat: periods, zero periods, stopped from outside and from inside
//! ```
//!
//! Meanwhile their number rises to 100,000 and falls to nothing, again and again:
//!
//! ```text
//!   100,000            ╱────╲
//!                     ╱      ╲
//!   usual     ───────╱        ╲
//!   none                       ╲__▁▂▁▂▁  around 256, where the staged wheel changes its stage
//! ```
//!
//! Most of the 100,000 wait for long and are there to be struck by the others, so that no more of
//! them fire than usually do. At the bottom the executor's queue is empty altogether, and what the
//! peak took must be back.
//!
//! All of it runs in one executor against one model. Choices come from the seed; their order
//! depends on when timers fire, so a seed repeats the kind of run, not each step of it.

mod actions;
mod cycle;
mod repeats;
mod slots;
mod wakers;

use actions::Actions;
use wakers::Arena;

use self::cycle::{Cycle, Range, Waits};
use crate::check::peak::Peaks;
use crate::workload::prelude::*;

/// Starts the executor.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let sizes = Sizes {
        actions: Range {
            usual: plan.scaled(1_500, 8),
            top: plan.scaled(60_000, 300),
        },
        wakers: Range {
            usual: plan.scaled(700, 8),
            top: plan.scaled(40_000, 200),
        },
        repeats: plan.scaled(24, 3),
        cycle_lasts: (plan.duration / 3).clamp(SEASON_LASTS_MIN, SEASON_LASTS_MAX),
    };
    let seed = plan.seed;
    plan.start("re-entrancy", move |checker| run(checker, seed, sizes))
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    actions: Range,
    wakers: Range,
    repeats: usize,
    /// From one bottom to the next, and a moment longer.
    cycle_lasts: Duration,
}

async fn run(checker: Rc<Checker>, seed: u64, sizes: Sizes) {
    let waits = |range: Range| Waits {
        usual: range.usual,
        short_max: SHORT_MAX.min(sizes.cycle_lasts / 4),
    };
    let actions = Actions::start(&checker, stream(seed, 1), waits(sizes.actions));
    let wakers = Arena::start(&checker, stream(seed, 2), waits(sizes.wakers));
    let mut rng = stream(seed, 3);
    let mut peaks = Peaks::new(&checker);
    while !checker.control.is_draining() {
        peaks.begin();
        let cycle = Cycle::new(&checker, sizes.cycle_lasts);
        let repeats = repeats::start(&cycle, stream(rng.u64(..), 0), sizes.repeats);
        while let Some(part) = cycle.part() {
            let counts = (sizes.actions.at(part), sizes.wakers.at(part));
            bring_to(counts, &actions, &wakers).await;
            actions.refill();
            wakers.refill();
            peaks.look();
            checker.pause(LOOK_EVERY).await;
        }
        cycle.end();
        bring_to((0, 0), &actions, &wakers).await;
        for repeat in repeats {
            repeat.await;
        }
        // What was detached fires by itself.
        while checker.armed() > 0 && !checker.control.is_draining() {
            checker.pause(LOOK_EVERY).await;
        }
        cross(&checker, &mut rng, sizes.cycle_lasts / 10).await;
        if !checker.control.is_draining() {
            peaks.judge().await;
        }
    }
    checker.settle().await;
    actions.judge_canaries();
    wakers.judge_hooks();
}

/// Changes the numbers of timers, a few in each turn: the others must not be late for it.
async fn bring_to((on_actions, on_wakers): (usize, usize), actions: &Rc<Actions>, wakers: &Arena) {
    let counts = || (actions.slots.count(), wakers.slots.count());
    while counts() != (on_actions, on_wakers) {
        actions.resize(stepped(actions.slots.count(), on_actions));
        wakers.resize(stepped(wakers.slots.count(), on_wakers));
        yield_now().await;
    }
}

fn stepped(from: usize, to: usize) -> usize {
    to.clamp(from.saturating_sub(STEP_MAX), from + STEP_MAX)
}

const STEP_MAX: usize = 128;
const SHORT_MAX: Duration = Duration::from_secs(2);
const SEASON_LASTS_MIN: Duration = Duration::from_millis(400);
const SEASON_LASTS_MAX: Duration = Duration::from_secs(8);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Goes up and down across 256 timers, where the staged wheel leaves its first stage, for so long, or until the run drains. Nothing is left armed.
async fn cross(checker: &Rc<Checker>, rng: &mut Rng, lasts: Duration) {
    let began = clock::now();
    while clock::since(began) < lasts && !checker.control.is_draining() {
        let mut armed = Vec::new();
        for _ in 0..CROSSINGS {
            arm_or_cancel(checker, &mut armed, BRINK - 3 + rng.usize(..7));
        }
        arm_or_cancel(checker, &mut armed, 0);
        // When the timer of this pause fires, there is none.
        checker.pause(PAUSE).await;
    }
}

/// Arms timers, or cancels the latest, until there are `count`.
fn arm_or_cancel(checker: &Rc<Checker>, armed: &mut Vec<(Timer, Key, Live)>, count: usize) {
    while armed.len() < count {
        let ticket = checker.arm(clock::now() + FAR);
        let mut timer = Timer::new(ticket.delay());
        let polled = Pin::new(&mut timer).poll(&mut Context::from_waker(Waker::noop()));
        debug_assert!(polled.is_pending(), "it is an hour ahead");
        armed.push((timer, ticket.key, ticket.live));
    }
    for (timer, key, live) in armed.drain(count..) {
        checker.cancel(key);
        drop((timer, live));
    }
}

/// As many timers as the first stage does not take.
const BRINK: usize = 256;
const CROSSINGS: usize = 20;
const FAR: Duration = Duration::from_secs(3_600);
const PAUSE: Duration = Duration::from_millis(2);
