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

mod asleep;
mod hogs;
mod short_sleeps;
mod sizes;
mod sleepers;

use std::rc::Rc;
use std::time::Duration;

use glommio::GlommioError;
use support::generator::stream;

use self::hogs::Hogs;
use self::sleepers::Sleepers;
use crate::check::checker::Checker;
use crate::check::probe::Workload;
use crate::workload::executor::{Executor, Plan};
use sizes::Sizes;

/// Starts the executors.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
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
    let idle = Executor::start(plan, Workload::Idle, "idle", move |checker| {
        run(checker, seed, sizes)
    })?;
    let asleep = Executor::start(plan, Workload::Idle, "asleep", move |checker| {
        asleep::run(checker, stream(seed, 13), sizes)
    })?;
    let sleeps = Executor::start(plan, Workload::Idle, "short-sleeps", short_sleeps::run)?;
    Ok(vec![idle, asleep, sleeps])
}

async fn run(checker: Rc<Checker>, seed: u64, sizes: Sizes) {
    checker.spawn_sweeper();
    let sleepers = Sleepers::start(&checker, stream(seed, 11), sizes);
    Hogs::new(&checker, stream(seed, 12), sizes).run().await;
    sleepers.cancel_all().await;
    checker.settle().await;
}

const QUIET: Duration = Duration::from_secs(2);
const HOG_MAX: Duration = Duration::from_millis(200);
const SLEEP_MAX: Duration = Duration::from_secs(20);
