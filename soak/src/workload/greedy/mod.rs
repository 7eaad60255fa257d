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
//!       and the listing of a directory
//!
//!   in both: a timer every two milliseconds and a ping, in a task queue whose latency matters
//! ```
//!
//! None of the tasks pauses while there is something to take, so that nothing but the budget brings
//! them back to their executor. Each counts what it does, and looks at the clock: when a timer of
//! the other queue is due, they may do only so much more before it fires. What is counted does not
//! depend on the machine; the latencies of timers and pings are judged besides.
//!
//! The floods come in rounds, so that they take a tenth of a core.

mod blocking;
mod disk;
mod due_timer;
mod floods;
mod sizes;

use std::rc::Rc;
use std::time::Duration;
use std::{fs, process};

use glommio::channels::{oneshot, shared_channel};
use glommio::{GlommioError, Latency, Shares, Task, executor, spawn_local, spawn_local_into};

use self::due_timer::DueTimer;
use self::floods::{Sink, Source};
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::check::probe::Workload;
use crate::workload::executor::{Executor, Plan};
use crate::workload::ping::Ping;
use sizes::Sizes;

/// Starts the executors.
pub(crate) fn start(plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
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
    let sink = Executor::start(plan, Workload::Greedy, "sink", move |checker| async move {
        let attending = Attending::start(&checker);
        let sink = Sink::new(&checker, &attending.due_timer, sizes);
        let ended = spawn_greedy(sink.run(address, meet, receiver)).await;
        judge_end(&checker, ended);
        attending.end().await;
        checker.settle().await;
    })?;
    let address = plan.address();
    let source = Executor::start(
        plan,
        Workload::Greedy,
        "source",
        move |checker| async move {
            let attending = Attending::start(&checker);
            let writing = spawn_greedy(disk::run(
                Rc::clone(&checker),
                Rc::clone(&attending.due_timer),
                directory.join("flushed"),
                sizes,
            ));
            // A call that others do not wait for is about threads, of which a simulation has one.
            let blocking =
                (!is_simulated).then(|| spawn_local(blocking::run(Rc::clone(&checker), directory)));
            let source = Source::new(&checker, &attending.due_timer, sizes);
            let ended = spawn_greedy(source.run(address, met, sender)).await;
            judge_end(&checker, ended);
            judge_end(&checker, writing.await);
            if let Some(blocking) = blocking {
                judge_end(&checker, blocking.await);
            }
            attending.end().await;
            checker.settle().await;
        },
    )?;
    Ok(vec![sink, source])
}

/// Spawns a greedy task, and what it spawns, into a queue of few shares: for time that the machine
/// takes away in a turn of the prompt ones, their queue may have to pay, and these would have many
/// times as much before it has its turn.
fn spawn_greedy<T: 'static>(task: impl Future<Output = T> + 'static) -> Task<T> {
    let queue = executor().create_task_queue(Shares::Static(50), Latency::NotImportant, "greedy");
    spawn_local_into(task, queue).expect("the queue was just made")
}

/// Those that wait beside the greedy ones: a timer and a ping, in a queue whose latency matters.
struct Attending {
    due_timer: Rc<DueTimer>,
    task: Task<()>,
}

impl Attending {
    fn start(checker: &Rc<Checker>) -> Self {
        checker.spawn_sweeper();
        let queue =
            executor().create_task_queue(Shares::Static(1000), Latency::Matters(LATENCY), "prompt");
        let due_timer = Rc::new(DueTimer::new(checker));
        let attending = {
            let (checker, due_timer) = (Rc::clone(checker), Rc::clone(&due_timer));
            async move {
                let ping = Ping::start(&checker);
                ping.go_on();
                due_timer.attend().await;
                ping.end().await;
            }
        };
        let task = spawn_local_into(attending, queue).expect("the queue was just made");
        Attending { due_timer, task }
    }

    /// Waits for the end, which comes by itself when the run drains.
    async fn end(self) {
        self.task.await;
    }
}

/// Sockets, channels and files do not fail here.
fn judge_end<E: std::fmt::Debug>(checker: &Checker, ended: Result<(), E>) {
    checker.holds(Invariant::Deliveries, ended.is_ok(), || {
        format!("a greedy task ended with {ended:?}")
    });
}

/// Messages of a local channel in a round: as many as it takes to hold an executor for long.
const LOCAL: usize = 600_000;

/// In a simulation, where time stands still meanwhile: enough to see whether others are polled in between.
const LOCAL_SIMULATED: usize = 50_000;

const LATENCY: Duration = Duration::from_millis(1);
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(1);

/// Messages that are in the channel between the executors, at the most.
const CHANNEL: usize = 1_024;
