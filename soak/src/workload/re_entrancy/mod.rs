//! Timers that act on each other from inside their callbacks: the hard questions for a timer queue.
//!
//! ```text
//!   actions   a TimerActionOnce fires ──▶ destroys, re-arms, replaces, detaches, joins others
//!   wakers    a Timer's waker is called ─▶ resets, drops, polls other Timers, inside the wake itself
//!             a Timer's waker is dropped ▶ the same, inside the destructor
//!   repeats   TimerActionRepeat: periods, zero periods, stopped from outside and from inside
//! ```
//!
//! All of it runs in one executor against one model. Choices come from the seed; their order depends
//! on when timers fire, so a seed repeats the kind of run, not each step of it.

mod actions;
mod repeats;
mod wakers;

use std::rc::Rc;
use std::time::Duration;

use glommio::GlommioError;
use glommio::timer::sleep;

use crate::rng::Rng;
use crate::watch::Watch;
use crate::workload::{Crew, Plan};

/// Starts the executor.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Crew>, GlommioError<()>> {
    let sizes = Sizes {
        actions: plan.scaled(1_500, 8),
        wakers: plan.scaled(700, 8),
        repeats: plan.scaled(24, 3),
    };
    let seed = plan.seed;
    let crew = Crew::start(plan, "re-entrancy", move |watch| run(watch, seed, sizes))?;
    Ok(vec![crew])
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    actions: usize,
    wakers: usize,
    repeats: usize,
}

async fn run(watch: Rc<Watch>, seed: u64, sizes: Sizes) {
    watch.spawn_sweeper();
    let actions = actions::Actions::start(&watch, Rng::new(seed, 1), sizes.actions);
    let wakers = wakers::Arena::start(&watch, Rng::new(seed, 2), sizes.wakers);
    let repeats = repeats::start(&watch, Rng::new(seed, 3), sizes.repeats);
    while !watch.control.is_draining() {
        sleep(REFILL_EVERY).await;
        actions.refill();
        wakers.refill();
    }
    actions.cancel_all();
    wakers.cancel_all();
    for repeat in repeats {
        repeat.await;
    }
    watch.settle().await;
    actions.judge_canaries();
    wakers.judge_hooks();
}

/// A delay between a millisecond and two seconds; one in fifty is none at all.
fn delay(rng: &mut Rng) -> Duration {
    if rng.chance(1, 50) {
        return Duration::ZERO;
    }
    rng.log_uniform(Duration::from_millis(1), Duration::from_secs(2))
}

const REFILL_EVERY: Duration = Duration::from_millis(10);
