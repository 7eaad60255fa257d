//! A node: its executors, its clock, and whether it runs.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use super::spec::{Main, NodeSpec};
use crate::clock::{self, Clock};
use crate::executor::{LocalExecutor, LocalExecutorBuilder, Task};
use crate::panic;
use crate::simulated::{End, NodeId, Time, World};
use simulated_kernel::disk::DiskSettings;

pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) name: String,
    main: Main,
    shard_count: usize,
    pub(super) is_client: bool,
    pub(super) shards: Vec<Shard>,
    clock: NodeClock,
    /// It stands still until then.
    pub(super) paused_until: Time,
    /// So does its side of the network.
    pub(super) stands_still: bool,
    /// It has no power, and starts again then.
    pub(super) starts_at: Option<Time>,
}

pub(super) struct Shard {
    executor: LocalExecutor,
    /// Its future. Nothing else holds it while it waits for nothing that could wake it.
    _main: Task<()>,
    /// How its future has ended, if it has.
    output: Rc<RefCell<Option<Result<(), String>>>>,
}

/// A clock that says `said` at the time `at`, and goes on as much faster than time as it drifts.
#[derive(Clone, Copy)]
struct NodeClock {
    said: Instant,
    at: Time,
    ppm: i32,
}

const MILLION: i128 = 1_000_000;

impl NodeClock {
    fn at(self, time: Time) -> Instant {
        let passed = time.saturating_sub(self.at);
        if self.ppm == 0 {
            return self.said + passed;
        }
        let passed = passed.as_nanos() as i128;
        let shown = passed * (MILLION + i128::from(self.ppm)) / MILLION;
        self.said + nanoseconds(shown)
    }

    /// The first time at which it says `instant`, or more.
    fn time_of(self, instant: Instant) -> Time {
        let ahead = instant.saturating_duration_since(self.said);
        if self.ppm == 0 {
            return self.at + ahead;
        }
        let ahead = ahead.as_nanos() as i128;
        let pace = MILLION + i128::from(self.ppm);
        self.at + nanoseconds((ahead * MILLION + pace - 1) / pace)
    }
}

fn nanoseconds(number: i128) -> Time {
    Time::from_nanos(u64::try_from(number).unwrap_or(u64::MAX / 2))
}

impl Node {
    pub(super) fn new(spec: NodeSpec, disk: DiskSettings, world: &World) -> Self {
        let NodeSpec {
            name,
            shards,
            main,
            is_client,
        } = spec;
        Node {
            id: world.add_node(&name, disk),
            name,
            main,
            shard_count: shards,
            is_client,
            shards: Vec::new(),
            clock: NodeClock {
                said: world.start(),
                at: Time::ZERO,
                ppm: 0,
            },
            paused_until: Time::ZERO,
            stands_still: false,
            starts_at: None,
        }
    }

    /// Makes its executors, each with its future as a task.
    pub(super) fn start(&mut self, world: &World) -> Result<(), String> {
        let before = world.set_here(Some(self.id));
        world.start_node(self.id);
        self.starts_at = None;
        let clock = clock::replace(Clock::Paused(self.now(world)));
        let made: Result<Vec<_>, _> = (0..self.shard_count).map(|_| self.shard()).collect();
        clock::replace(clock);
        world.set_here(before);
        self.shards = made?;
        Ok(())
    }

    fn shard(&self) -> Result<Shard, String> {
        let made = LocalExecutorBuilder::default().name(&self.name).make();
        let executor = made.map_err(|error| format!("an executor cannot be made: {error}"))?;
        let output = Rc::new(RefCell::new(None));
        let main = Rc::clone(&self.main);
        let result = Rc::clone(&output);
        let main = executor.spawn(async move {
            let ended = main().await;
            *result.borrow_mut() = Some(ended);
        });
        Ok(Shard {
            executor,
            _main: main,
            output,
        })
    }

    /// It is about to end. Each call that is made by another thread then has been made, without
    /// its result having been seen, or never is.
    pub(super) fn make_calls_unseen(&self, world: &World) {
        let before = world.set_here(Some(self.id));
        for call in world.calls_made_unseen(self.id) {
            if let Err(payload) = panic::catch(call) {
                // The calls of a pool catch the panics of users.
                panic::discard(payload);
            }
        }
        world.set_here(before);
    }

    /// All that runs on it is gone at once. Destructors run, without an effect on the world.
    pub(super) fn end(&mut self, end: End, world: &World) {
        let before = world.set_here(Some(self.id));
        for shard in &self.shards {
            shard.executor.lose_operations();
        }
        world.end_node(self.id, end);
        let clock = clock::replace(Clock::Paused(self.now(world)));
        for shard in self.shards.drain(..) {
            if let Err(payload) = panic::catch(|| drop(shard)) {
                // It would not have been run.
                panic::discard(payload);
            }
        }
        clock::replace(clock);
        world.set_here(before);
    }

    pub(super) fn now(&self, world: &World) -> Instant {
        self.clock.at(world.now())
    }

    pub(super) fn drift(&mut self, world: &World, ppm: i32) {
        self.clock = NodeClock {
            said: self.now(world),
            at: world.now(),
            ppm,
        };
    }

    /// Whether it stands still.
    pub(super) fn is_paused(&self, world: &World) -> bool {
        world.now() < self.paused_until
    }

    /// The next time at which it does something by itself.
    pub(super) fn next_time(&self) -> Option<Time> {
        if self.starts_at.is_some() {
            return self.starts_at;
        }
        let deadlines = self
            .shards
            .iter()
            .filter_map(|it| it.executor.next_deadline());
        let next = deadlines.min().map(|it| self.clock.time_of(it))?;
        Some(next.max(self.paused_until))
    }

    /// Calls `add` with each of its shards that would do something in a turn.
    pub(super) fn for_each_runnable(&self, world: &World, mut add: impl FnMut(usize)) {
        if self.is_paused(world) {
            return;
        }
        let now = self.now(world);
        for (number, shard) in self.shards.iter().enumerate() {
            if shard.executor.has_work(now) {
                add(number);
            }
        }
    }

    /// A turn of a shard. What has gone wrong.
    pub(super) fn have_turn(&self, shard: usize, world: &World) -> Result<(), Ended> {
        let before = world.set_here(Some(self.id));
        let shard = &self.shards[shard];
        let now = self.now(world);
        let turn = panic::catch(|| shard.executor.have_turn(now));
        world.set_here(before);
        if let Err(payload) = turn {
            let message = panic::message(&payload).unwrap_or("no message").to_owned();
            panic::discard(payload);
            return Err(Ended::Panic(message));
        }
        match &*shard.output.borrow() {
            Some(Err(error)) => Err(Ended::Error(error.clone())),
            _ => Ok(()),
        }
    }

    /// Wakes the tasks that wait until nothing but the clock can go on. True if there are any.
    pub(super) fn quiesce(&self, world: &World) -> bool {
        if self.is_paused(world) {
            return false;
        }
        let before = world.set_here(Some(self.id));
        let now = self.now(world);
        let mut are_any = false;
        for shard in &self.shards {
            are_any |= shard.executor.quiesce(now);
        }
        world.set_here(before);
        are_any
    }

    /// What its tasks wait for, a line each.
    pub(super) fn waiting(&self, world: &World) -> Vec<String> {
        let before = world.set_here(Some(self.id));
        let now = self.now(world);
        let shards = self.shards.iter().enumerate();
        let lines = shards.flat_map(|(number, shard)| {
            let tasks = shard.executor.waiting(now).into_iter();
            tasks.map(move |task| format!("{}, shard {number}: {task}", self.name))
        });
        let lines = lines.collect();
        world.set_here(before);
        lines
    }

    /// Whether the futures of all its shards have ended.
    pub(super) fn is_over(&self) -> bool {
        let has_output = |shard: &Shard| shard.output.borrow().is_some();
        !self.shards.is_empty() && self.shards.iter().all(has_output)
    }
}

/// Why a simulation cannot go on.
pub(super) enum Ended {
    Panic(String),
    Error(String),
}
