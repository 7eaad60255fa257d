//! The bare timer queues, without a runtime: both of them, whichever the build uses.
//!
//! Here a queue has a clock of its own, which stands still, jumps by hours and runs backwards, and
//! each answer is compared with a sorted map at once ([`trial`]). What a runtime would hide, as it
//! asks the real clock again or polls once more, shows. Apart from that, [`judge`] lets a queue grow
//! and become empty, and asks the allocator what is left when its clock says that it was long ago.
//!
//! A twentieth of a core is spent on it.

mod trial;

use staged_wheel::{ClassicQueue, StagedWheel};

use self::trial::{BareQueue, Payload, Trial};
use crate::check::peak::{BYTES_PER_TIMER_ELSEWHERE, until_back};
use crate::counts;
use crate::measure::memory;
use crate::workload::prelude::*;

/// Starts the executor.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let seed = plan.seed;
    let peak = plan.scaled(100_000, 50_000).min(200_000);
    plan.start("queues", move |checker| run(checker, seed, peak))
}

async fn run(checker: Rc<Checker>, seed: u64, peak: usize) {
    let stats = || Arc::clone(&checker.stats);
    let mut classic = Trial::<ClassicQueue<Payload>>::new("classic", stats(), stream(seed, 31));
    let mut wheel = Trial::<StagedWheel<Payload>>::new("wheel", stats(), stream(seed, 32));
    let mut turns: u64 = 0;
    while !checker.control.is_draining() {
        if turns.is_multiple_of(PEAK_EVERY) {
            judge::<StagedWheel<Payload>>(&checker, stream(seed, 33 + turns), peak).await;
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
}

const TURN: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_millis(19);

/// Between two looks at the real clock.
const STEPS: usize = 32;

const STEPS_SIMULATED: usize = 512;

/// In turns: some three seconds.
const PEAK_EVERY: u64 = 150;

/// Fills a queue with `count` timers, empties it, lets time pass on its clock, and judges whether its memory was given back.
///
/// The allocator is counted for the whole process. What the other executors' timers may have taken meanwhile is excused, as in
/// [`crate::check::peak`]; a workload that runs alone is excused nothing.
async fn judge<Q: BareQueue>(checker: &Rc<Checker>, mut rng: Rng, count: usize) {
    let elsewhere = || checker.control.live_timers() - checker.live();
    let (before, others) = (memory::allocated().bytes, elsewhere());
    let epoch = clock::now();
    let mut queue = Q::new(epoch);
    fill(&mut queue, &mut rng, (epoch, count)).await;
    let mut now = epoch + LASTS;
    let mut expired = Vec::new();
    // At rest a reactor polls when it is asked to, or for others: more than once in a while.
    for _ in 0..POLLS {
        now += POLL_EVERY;
        while queue.expire(now, BUDGET, &mut expired) {
            expired.clear();
        }
        expired.clear();
    }
    drop(expired);
    let excess = || {
        let excused = (elsewhere() - others).unsigned_abs() * BYTES_PER_TIMER_ELSEWHERE;
        let now = memory::allocated().bytes;
        now.saturating_sub(before + KEPT_BYTES + excused)
    };
    let suspected = until_back(checker, excess).await;
    // The models of others grow by megabytes at a time: what the queue holds goes with it.
    let with_queue = memory::allocated().bytes;
    drop(queue);
    let held = with_queue.saturating_sub(memory::allocated().bytes);
    let excess = suspected.min(held.saturating_sub(KEPT_BYTES));
    if !checker.control.is_draining() {
        checker.check(Invariant::PeaksReturn, excess, || {
            format!(
                "a queue of {count} timers that has long been empty holds {}",
                counts::bytes(excess + KEPT_BYTES)
            )
        });
    }
}

/// Arms the timers, cancels one half and lets the other fire.
async fn fill<Q: BareQueue>(queue: &mut Q, rng: &mut Rng, (epoch, count): (Instant, usize)) {
    let live = Rc::default();
    let mut handles = Vec::with_capacity(count);
    for id in 0..count {
        let ahead = rng.log_uniform(Duration::from_millis(1), LASTS);
        handles.push(queue.insert(epoch + ahead, Payload::new(id as u64, &live)));
        if id % A_TURN == 0 {
            yield_now().await;
        }
    }
    for (index, &handle) in handles.iter().enumerate().step_by(2) {
        drop(queue.cancel(handle));
        if index % A_TURN == 0 {
            yield_now().await;
        }
    }
    let mut expired = Vec::new();
    while queue.expire(epoch + LASTS, BUDGET, &mut expired) {
        expired.clear();
        yield_now().await;
    }
}

/// The longest timer.
const LASTS: Duration = Duration::from_secs(600);

/// Thirty seconds: memory is kept for two windows of four in case that the peak comes again.
const POLLS: u32 = 600;
const POLL_EVERY: Duration = Duration::from_millis(50);
const BUDGET: usize = 256;

/// What a queue and its process take all the same. Not less: the allocator counts for all threads, whose tables shrink
/// by as much at a time, also just while the queue is dropped. One that keeps its pages holds several times as much.
const KEPT_BYTES: u64 = 1 << 20;

const A_TURN: usize = 512;
