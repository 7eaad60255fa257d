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

mod burst;
mod sizes;

use std::rc::Rc;
use std::time::Duration;

use glommio::GlommioError;
use support::generator::stream;

use self::burst::{Burst, Shape};
use crate::check::checker::Checker;
use crate::check::peak::Peaks;
use crate::check::probe::Workload;
use crate::clock;
use crate::workload::executor::{Executor, Plan};
use crate::workload::ping::Ping;
use sizes::Sizes;

/// Starts the executor.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    let sizes = Sizes {
        timers: plan.scaled(100_000, 500),
        neighbours: plan.scaled(1_000, 16),
        every: (plan.duration / 5).clamp(EVERY_MIN, EVERY_MAX),
    };
    let seed = plan.seed;
    let executor = Executor::start(plan, Workload::Cluster, "cluster", move |checker| {
        run(checker, seed, sizes)
    })?;
    Ok(vec![executor])
}

async fn run(checker: Rc<Checker>, seed: u64, sizes: Sizes) {
    checker.spawn_sweeper();
    let mut rng = stream(seed, STREAM);
    let mut peaks = Peaks::new(&checker);
    let ping = Ping::start(&checker);
    for shape in Shape::ALL.into_iter().cycle() {
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
        while !checker.control.is_draining() && clock::since(began) < sizes.every {
            checker.pause(LOOK_EVERY).await;
        }
    }
    ping.end().await;
    checker.settle().await;
}

const EVERY_MIN: Duration = Duration::from_millis(400);
const EVERY_MAX: Duration = Duration::from_secs(6);
const AHEAD_MAX: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Apart from every other workload that draws from the same seed.
const STREAM: u64 = u64::MAX - 11;
