//! The bare timer queues, without a runtime: both of them, whichever the build uses.
//!
//! Here a queue has a clock of its own, which stands still, jumps by hours and runs backwards, and
//! each answer is compared with a sorted map at once ([`trial`]). What a runtime would hide, as it
//! asks the real clock again or polls once more, shows. Apart from that, [`peak`] lets a queue grow
//! and become empty, and asks the allocator what is left when its clock says that it was long ago.
//!
//! A twentieth of a core is spent on it.

mod bare;
mod peak;
mod trial;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glommio::GlommioError;
use staged_wheel::{ClassicQueue, StagedWheel};
use support::generator::stream;

use self::bare::Payload;
use self::trial::Trial;
use crate::check::checker::Checker;
use crate::check::probe::Workload;
use crate::workload::executor::{Executor, Plan};

/// Starts the executor.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    let seed = plan.seed;
    let peak = plan.scaled(100_000, 50_000).min(200_000);
    let executor = Executor::start(plan, Workload::Queues, "queues", move |checker| {
        run(checker, seed, peak)
    })?;
    Ok(vec![executor])
}

async fn run(checker: Rc<Checker>, seed: u64, peak: usize) {
    let stats = || Arc::clone(&checker.stats);
    let mut classic = Trial::<ClassicQueue<Payload>>::new("classic", stats(), stream(seed, 31));
    let mut wheel = Trial::<StagedWheel<Payload>>::new("wheel", stats(), stream(seed, 32));
    let mut turns: u64 = 0;
    while !checker.control.is_draining() {
        if turns.is_multiple_of(PEAK_EVERY) {
            peak::judge::<StagedWheel<Payload>>(&checker, stream(seed, 33 + turns), peak).await;
        }
        turns += 1;
        let began = Instant::now();
        let mut steps = 0;
        // A simulation does the same each time, however fast the machine is.
        while match checker.control.is_simulated() {
            true => steps < STEPS_SIMULATED,
            false => began.elapsed() < TURN,
        } {
            steps += STEPS;
            for _ in 0..STEPS {
                classic.step();
                wheel.step();
            }
        }
        checker.pause(REST).await;
    }
    checker.settle().await;
}

const TURN: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_millis(19);

/// Between two looks at the real clock.
const STEPS: usize = 32;

const STEPS_SIMULATED: usize = 512;

/// In turns: some three seconds.
const PEAK_EVERY: u64 = 150;
