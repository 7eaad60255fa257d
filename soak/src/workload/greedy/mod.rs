//! Peers, producers, writers and blocking calls that take all that they are given, and who waits
//! beside them.
//!
//! ```text
//!   executor `source`                              executor `sink`
//!     writes to a stream ────────── TCP ────────▶    reads
//!     sends datagrams ───────────── UDP ────────▶    receives
//!     sends ─────────────────── shared_channel ─▶    receives
//!     a writer of a file, and a flush beside it      a producer and a consumer of a local channel
//!     a blocking call of a second,                   a leaf of its own, by `consume_budget`
//!       and the listing of a directory               awaits that are ready at once
//!     a long read, and a long directory
//!
//!   in both: a timer every two milliseconds and a ping, in a task queue whose latency matters
//! ```
//!
//! None of the tasks pauses while there is something to take, so that nothing but the budget brings
//! them back to their executor. Each counts what it does: when the executor wants its thread back, they
//! may do only so much more in that poll. What is counted does not depend on the machine; the latencies
//! of timers and pings are judged besides.
//!
//! The floods come in rounds, so that they take a tenth of a core.

mod calls;
mod floods;
mod turns;

use std::process;

use glommio::channels::{oneshot, shared_channel};
use glommio::{Latency, Shares, spawn_local_into};

use self::floods::Sink;
use self::turns::{Sizes, Turns};
use crate::workload::ping::Ping;
use crate::workload::prelude::*;

/// Starts the executors.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let is_simulated = plan.nodes.is_some();
    let sizes = Sizes {
        reads: plan.scaled(8_000, 500),
        datagrams: plan.scaled(5_000, 500),
        messages: plan.scaled(30_000, 1_000),
        // Not less at a lower load: it takes that many to hold an executor for long.
        local: if is_simulated { LOCAL_SIMULATED } else { LOCAL },
        every: (plan.duration / 10).clamp(EVERY_MIN, EVERY_MAX),
    };
    let mut directory = plan.files_in.clone();
    if !is_simulated {
        directory.push(format!("greedy-{}", process::id()));
        fs::create_dir(&directory)?;
    }
    let (meet, met) = oneshot::shared();
    let (sender, receiver) = shared_channel::new_bounded(CHANNEL);
    let address = plan.address();
    plan.start("sink", move |checker| async move {
        let attending = Attending::start(&checker);
        let ready = calls::run_ready(Rc::clone(&checker), Rc::clone(&attending.turns), sizes);
        let ready = attending.spawn(Invariant::ReadyAwaits, ready);
        let sink = Sink::new(Rc::clone(&attending.turns), sizes);
        let ended = (attending.spawn(Invariant::Turns, sink.run(address, meet, receiver))).await;
        checker.ended(Invariant::Deliveries, "a greedy task", ended);
        checker.ended(Invariant::Deliveries, "a greedy task", ready.await);
        attending.task.await;
    })?;
    let address = plan.address();
    let work = move |checker: Rc<Checker>| async move {
        let attending = Attending::start(&checker);
        let (own, turns) = (|| Rc::clone(&checker), || Rc::clone(&attending.turns));
        let path = directory.join("flushed");
        let writing = calls::flush_beside_a_writer(own(), turns(), path, sizes);
        let mut others = vec![attending.spawn(Invariant::Turns, writing)];
        // These are about threads, of which a simulation has one, and about computing, which takes no time there.
        if !is_simulated {
            let long_calls = calls::make_long_calls(own(), turns(), directory.clone(), sizes);
            others.push(attending.spawn(Invariant::LongCalls, long_calls));
            let listing = calls::list_beside_a_blocking_call(own(), directory);
            others.push(spawn_local(listing));
        }
        let source = floods::send(turns(), sizes, address, met, sender);
        let ended = attending.spawn(Invariant::Turns, source).await;
        checker.ended(Invariant::Deliveries, "a greedy task", ended);
        for other in others {
            checker.ended(Invariant::Deliveries, "a greedy task", other.await);
        }
        attending.task.await;
    };
    plan.start("source", work)
}

/// Those that wait beside the greedy ones: a timer and a ping, in a queue whose latency matters.
struct Attending {
    turns: Rc<Turns>,
    task: Task<()>,
}

impl Attending {
    fn start(checker: &Rc<Checker>) -> Self {
        checker.spawn_sweeper();
        let queue =
            executor().create_task_queue(Shares::Static(1000), Latency::Matters(LATENCY), "prompt");
        let turns = Rc::new(Turns::new(checker));
        let attending = {
            let (checker, turns) = (Rc::clone(checker), Rc::clone(&turns));
            async move {
                let ping = Ping::start(&checker);
                ping.hurry(clock::now() + FOR_LONG);
                turns.attend().await;
                ping.end().await;
            }
        };
        let task = spawn_local_into(attending, queue).expect("the queue was just made");
        Attending { turns, task }
    }

    /// Spawns a greedy task, and what it spawns, into a queue of few shares: for time that the machine
    /// takes away in a turn of the prompt ones, their queue may have to pay, and these would have many
    /// times as much before it has its turn. Its polls are held against `promise`.
    fn spawn<T: 'static>(
        &self,
        promise: Invariant,
        task: impl Future<Output = T> + 'static,
    ) -> Task<T> {
        let queue =
            executor().create_task_queue(Shares::Static(50), Latency::NotImportant, "greedy");
        let task = Rc::clone(&self.turns).judge(promise, task);
        spawn_local_into(task, queue).expect("the queue was just made")
    }
}

/// Messages of a local channel in a round: as many as it takes to hold an executor for long.
const LOCAL: usize = 600_000;

/// In a simulation, where time stands still meanwhile: enough to see whether others are polled in between.
const LOCAL_SIMULATED: usize = 50_000;

/// No burst is due in a run.
const FOR_LONG: Duration = Duration::from_secs(366 * 24 * 3_600);

const LATENCY: Duration = Duration::from_millis(1);
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(1);

/// Messages that are in the channel between the executors, at the most.
const CHANNEL: usize = 1_024;
