//! The loop of a simulation.
//!
//! ```text
//!   ┌─▶ a shard that has work, by chance ──▶ a turn of it ──┐
//!   │        │ none has                                     │
//!   │        ▼                                              │
//!   │   tasks that wait for that ──▶ woken ─────────────────┤
//!   │        │ none                                         │
//!   │        ▼                                              │
//!   │   time moves to what comes next: a deadline, the end ─┤
//!   │   of an operation, a fault                            │
//!   └───────────────────────────────────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use super::disk::Disk;
use super::fault::Fault;
use super::injected;
use super::network::Network;
use super::node::{Ended, Node};
use super::recurring::Schedule;
use super::report::{Failure, FailureKind, Report, Seen};
use super::spec::{Invariant, OnStart, Spec};
use crate::clock::{self, Ticking};
use crate::panic;
use crate::simulated::{self, End, Event, Time, World};

/// So many times the most turns without the end of an operation are too many with some.
const WITH_PROGRESS: u64 = 200;

/// How far the clock by which tasks share time goes with each reading, in nanoseconds: at one turn's
/// pace a slice of 100 ms is over after some thousand readings, at another's after 200,000.
const STEPS: RangeInclusive<u64> = 512..=32_768;

/// How long a simulation goes on.
pub(super) enum Until {
    /// Until all clients have ended, which they have to by then.
    ClientsEnd {
        limit: Time,
    },
    At(Time),
    /// Until that is true, which it has to be by then.
    Reached {
        is_reached: Box<dyn FnMut() -> bool>,
        limit: Time,
    },
}

pub(super) struct Run {
    world: Rc<World>,
    seed: u64,
    nodes: Vec<Node>,
    names: Vec<String>,
    /// The shards that have work, with their nodes; kept for its memory.
    runnable: Vec<(usize, usize)>,
    /// By time, and by the order in which they were planned.
    faults: BTreeMap<(Time, u64), Fault>,
    planned: u64,
    recurring: Schedule,
    on_start: Vec<OnStart>,
    invariants: Vec<Invariant>,
    /// What networks and disks are like without errors.
    calm: (Network, Disk),
    /// What nodes ask for does not happen.
    is_replay: bool,
    happened: Vec<(Time, Fault)>,
    turns_max: u64,
}

impl Run {
    pub(super) fn new(mut spec: Spec, seed: u64) -> Self {
        if spec.swarm {
            spec.leave_out(seed);
        }
        let world = World::new(seed, clock::real());
        simulated::raise_descriptor_limit();
        world.set_random_task_order(spec.random_task_order);
        world.set_descriptors_max(spec.descriptors_max);
        let nodes = spec.nodes.into_iter();
        let nodes = nodes
            .map(|node| Node::new(node, spec.disk.settings(), &world))
            .collect::<Vec<_>>();
        let recurring = match &spec.only {
            Some(_) => Vec::new(),
            None => spec.recurring,
        };
        let id_of = |name: &str| nodes.iter().find(|it| it.name == name).map(|it| it.id);
        let recurring = Schedule::new(seed, recurring, id_of, &world);
        let mut run = Run {
            seed,
            names: nodes.iter().map(|it| it.name.clone()).collect(),
            nodes,
            runnable: Vec::new(),
            faults: BTreeMap::new(),
            planned: 0,
            is_replay: spec.only.is_some(),
            happened: Vec::new(),
            turns_max: spec.turns_max,
            recurring,
            on_start: spec.on_start,
            invariants: spec.invariants,
            calm: (spec.network.clone().calm(), spec.disk.clone().calm()),
            world,
        };
        for (at, fault) in spec.only.unwrap_or(spec.plan) {
            run.plan(at, fault);
        }
        let link = spec.network.link();
        run.world
            .with_network(|network| network.set_default_link(link));
        run
    }

    /// Until all clients have ended, or for a whole time.
    pub(super) fn run(mut self, end: Until) -> Result<Report, Failure> {
        let _entered = simulated::enter(Rc::clone(&self.world));
        let ticking = Ticking {
            next: self.world.start(),
            step: Duration::from_nanos(*STEPS.start()),
        };
        let before = clock::replace_real(Some(ticking));
        let _restored = scopeguard::guard(before, |before| {
            clock::replace_real(before);
            injected::take();
        });
        let ended = self.run_until(end);
        let result = ended.map_err(|(node, kind)| self.failure(node, kind));
        for node in &mut self.nodes {
            node.end(End::Power, &self.world);
        }
        result.map(|()| Report {
            seed: self.seed,
            elapsed: self.world.now(),
            digest: self.world.digest(),
            events: self.world.events(),
            coverage: self.coverage(),
        })
    }

    fn coverage(&self) -> BTreeMap<&'static str, u64> {
        let mut coverage = self.world.sometimes();
        for (_, fault) in &self.happened {
            *coverage.entry(fault.name()).or_default() += 1;
        }
        coverage
    }

    fn failure(&self, node: Option<usize>, kind: FailureKind) -> Failure {
        let waiting = match kind {
            FailureKind::NothingLeft
            | FailureKind::NotReached
            | FailureKind::Unfinished(_)
            | FailureKind::Busy => {
                let nodes = self.nodes.iter();
                nodes.flat_map(|it| it.waiting(&self.world)).collect()
            }
            _ => Vec::new(),
        };
        Failure {
            kind,
            node: node.map(|it| self.nodes[it].name.clone()),
            seed: Some(self.seed),
            is_seed_set: false,
            elapsed: self.world.now(),
            digest: self.world.digest(),
            seen: Box::new(Seen {
                events: self.world.latest_events(),
                faults: self.happened.clone(),
                coverage: self.coverage(),
                waiting,
            }),
        }
    }

    fn run_until(&mut self, mut end: Until) -> Result<(), Bad> {
        for number in 0..self.nodes.len() {
            self.start(number)?;
        }
        let have_clients = self.nodes.iter().any(|it| it.is_client);
        // Without clients, the end of all that happens is waited for, whenever that is.
        let limit = match end {
            Until::At(end) => Some(end),
            Until::ClientsEnd { limit } => have_clients.then_some(limit),
            Until::Reached { limit, .. } => Some(limit),
        };
        let (mut turns, mut turns_without_end, mut ended) = (0, 0, self.world.ended());
        loop {
            let is_over = match &mut end {
                Until::ClientsEnd { .. } => have_clients && self.are_clients_over(),
                Until::Reached { is_reached, .. } => is_reached(),
                Until::At(_) => false,
            };
            if is_over {
                return self.check_invariants(Time::MAX);
            }
            self.take_injected();
            self.recurring.seek(&self.world);
            if self.have_turn()? {
                turns += 1;
                turns_without_end += 1;
                if self.world.ended() != ended {
                    (turns_without_end, ended) = (0, self.world.ended());
                }
                let most = self.turns_max.saturating_mul(WITH_PROGRESS);
                if turns_without_end > self.turns_max || turns > most {
                    return Err((None, FailureKind::Busy));
                }
                continue;
            }
            let mut are_quiescent = false;
            for node in &self.nodes {
                are_quiescent |= node.quiesce(&self.world);
            }
            if are_quiescent {
                continue;
            }
            (turns, turns_without_end) = (0, 0);
            let next = self.next_time();
            self.check_invariants(next.unwrap_or(Time::MAX).min(limit.unwrap_or(Time::MAX)))?;
            let is_waited_for = matches!(end, Until::Reached { .. });
            match (next, limit) {
                (_, Some(limit)) if is_waited_for && next.is_none_or(|next| next > limit) => {
                    self.world.move_to(limit.max(self.world.now()));
                    return Err((None, FailureKind::NotReached));
                }
                (Some(next), Some(limit)) if next > limit => return self.finish(limit),
                (Some(next), _) => self.move_to(next)?,
                (None, _) if have_clients && !self.are_clients_over() => {
                    return Err((None, FailureKind::NothingLeft));
                }
                (None, Some(limit)) => return self.finish(limit),
                (None, None) => return Ok(()),
            }
        }
    }

    /// Looks at what has to be true, where that is to be done by `until`: nothing changes before.
    fn check_invariants(&mut self, until: Time) -> Result<(), Bad> {
        for it in self.invariants.iter_mut().filter(|it| it.next <= until) {
            let intervals = until.as_nanos() / it.interval.as_nanos() + 1;
            let intervals = u32::try_from(intervals).unwrap_or(u32::MAX);
            it.next = it.interval.checked_mul(intervals).unwrap_or(Time::MAX);
            let broken = match panic::catch(&mut it.check) {
                Ok(broken) => broken,
                Err(payload) => {
                    let message = panic::message(&payload).unwrap_or("no message").to_owned();
                    panic::discard(payload);
                    Some(message)
                }
            };
            if let Some(text) = broken {
                return Err((None, FailureKind::Invariant(text)));
            }
        }
        Ok(())
    }

    fn are_clients_over(&self) -> bool {
        let mut clients = self.nodes.iter().filter(|it| it.is_client);
        clients.all(Node::is_over)
    }

    fn finish(&mut self, end: Time) -> Result<(), Bad> {
        self.check_invariants(Time::MAX)?;
        if end > self.world.now() {
            self.world.move_to(end);
        }
        let unfinished = (self.nodes.iter()).filter(|it| it.is_client && !it.is_over());
        let unfinished: Vec<_> = unfinished.map(|it| it.name.clone()).collect();
        match unfinished.is_empty() {
            true => Ok(()),
            false => Err((None, FailureKind::Unfinished(unfinished))),
        }
    }

    /// A turn of a shard that has work; false if none has.
    fn have_turn(&mut self) -> Result<bool, Bad> {
        let world = &self.world;
        self.runnable.clear();
        for (number, node) in self.nodes.iter().enumerate() {
            node.for_each_runnable(world, |shard| self.runnable.push((number, shard)));
        }
        let Some((number, shard)) = world.draw(|rng| rng.choice(&self.runnable)).copied() else {
            return Ok(false);
        };
        let node = &self.nodes[number];
        let before = world.set_here(Some(node.id));
        world.note(Event::Turn { shard });
        world.set_here(before);
        self.draw_pace();
        node.have_turn(shard, world).map_err(|ended| {
            let kind = match ended {
                Ended::Panic(message) => FailureKind::Panic(message),
                Ended::Error(error) => FailureKind::Error(error),
            };
            (Some(number), kind)
        })?;
        match world.take_host_failure() {
            Some(text) => Err((Some(number), FailureKind::Setup(text))),
            None => Ok(true),
        }
    }

    /// How fast tasks use up their time in the next turn.
    fn draw_pace(&self) {
        let step = self.world.draw(|rng| {
            // Each power of two is as likely as the others.
            1 << rng.u32(STEPS.start().ilog2()..=STEPS.end().ilog2())
        });
        let step = Duration::from_nanos(step);
        if let Some(ticking) = clock::replace_real(None) {
            clock::replace_real(Some(Ticking { step, ..ticking }));
        }
    }

    fn next_time(&self) -> Option<Time> {
        let nodes = self.nodes.iter().filter_map(Node::next_time);
        let faults = self.faults.keys().next().map(|(at, _)| *at);
        let recurring = self.recurring.next_time();
        let events = self.world.next_event();
        let pauses = self.nodes.iter().filter(|it| it.is_paused(&self.world));
        let events = events.into_iter().chain(pauses.map(|it| it.paused_until));
        let next = nodes.chain(faults).chain(recurring).chain(events).min()?;
        // A deadline may have passed while a node stood still.
        Some(next.max(self.world.now()))
    }

    fn move_to(&mut self, now: Time) -> Result<(), Bad> {
        for (node, call) in self.world.move_to(now) {
            let paused_until = self.nodes[node.0].paused_until;
            if paused_until > now {
                self.world.postpone(node, paused_until, call);
                continue;
            }
            let before = self.world.set_here(Some(node));
            let made = panic::catch(call);
            self.world.set_here(before);
            if let Err(payload) = made {
                // The calls of a pool catch the panics of users.
                panic::discard(payload);
            }
        }
        while let Some((fault, length)) = self.recurring.take(now, &self.names) {
            if let Fault::Partition { .. } = fault {
                self.plan(now + length, Fault::Heal);
            }
            self.happen(fault)?;
        }
        while let Some(entry) = self.faults.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let fault = entry.remove();
            self.happen(fault)?;
        }
        for node in &mut self.nodes {
            if node.stands_still && node.paused_until <= now {
                node.stands_still = false;
                let node = node.id;
                self.world.with_network(|network| network.resume(node));
            }
        }
        for number in 0..self.nodes.len() {
            if self.nodes[number].starts_at.is_some_and(|at| at <= now) {
                self.start(number)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, number: usize) -> Result<(), Bad> {
        let node = &mut self.nodes[number];
        if let Some(until) = self.world.no_memory_until(node.id) {
            node.starts_at = Some(until);
            self.recurring.node_is_off(node.id, until);
            return Ok(());
        }
        let count = self.world.starts(node.id) + 1;
        for OnStart(hook) in &mut self.on_start {
            hook(&node.name, count);
        }
        let started = node.start(&self.world);
        started.map_err(|text| (Some(number), FailureKind::Setup(text)))
    }

    fn happen(&mut self, fault: Fault) -> Result<(), Bad> {
        if let Err(name) = self.all_named(&fault) {
            return Err((
                None,
                FailureKind::Setup(format!("there is no node {name:?}")),
            ));
        }
        let checked = fault.check();
        checked.map_err(|text| (None, FailureKind::Setup(text)))?;
        let what = fault.to_string();
        self.world.note(Event::Fault { what });
        self.happened.push((self.world.now(), fault.clone()));
        let world = Rc::clone(&self.world);
        match fault {
            Fault::PowerCut { node, off_for } => self.end_node(&node, End::Power, off_for),
            Fault::Kill { node, off_for } => self.end_node(&node, End::Processes, off_for),
            Fault::Pause { node, length } => {
                let node = self.node(&node);
                if node.starts_at.is_none() {
                    world.with_network(|network| network.pause(node.id));
                    node.paused_until = node.paused_until.max(world.now() + length);
                    node.stands_still = true;
                }
            }
            Fault::Stop { node, length } => {
                let node = self.node(&node);
                if node.starts_at.is_none() {
                    node.paused_until = node.paused_until.max(world.now() + length);
                }
            }
            Fault::DiskChange { node, disk } => {
                world.set_disk(self.node(&node).id, disk.settings());
            }
            Fault::Drift { node, ppm } => {
                self.node(&node).drift(&world, ppm);
            }
            Fault::NoDescriptors { node, length } => {
                let (node, until) = (self.node(&node).id, world.now() + length);
                world.used_up().descriptors.set(node, until);
            }
            Fault::NoMemory { node, length } => {
                let (node, until) = (self.node(&node).id, world.now() + length);
                world.used_up().memory.set(node, until);
            }
            Fault::Partition { groups } => {
                let mut of_names = |names: &Vec<String>| {
                    let names = names.iter();
                    names.map(|name| self.node(name).id).collect()
                };
                let groups: Vec<_> = groups.iter().map(&mut of_names).collect();
                world.with_network(|network| network.partition(&groups));
            }
            Fault::Heal => world.with_network(|network| network.heal()),
            Fault::Calm => self.calm_down(),
            Fault::Link { from, to, network } => {
                let (from, to) = (self.node(&from).id, self.node(&to).id);
                world.with_network(|it| it.set_link(from, to, network.link()));
            }
        }
        Ok(())
    }

    /// A node ends, and starts again after `off_for`.
    fn end_node(&mut self, name: &str, end: End, off_for: Duration) {
        let world = Rc::clone(&self.world);
        let node = self.node(name);
        if node.starts_at.is_none() {
            node.make_calls_unseen(&world);
        }
        node.end(end, &world);
        if node.stands_still && end == End::Processes {
            world.with_network(|network| network.resume(node.id));
        }
        let starts_at = (world.now() + off_for).max(node.starts_at.unwrap_or_default());
        node.starts_at = Some(starts_at);
        node.paused_until = Time::ZERO;
        node.stands_still = false;
        let node = node.id;
        self.recurring.node_is_off(node, starts_at);
    }

    fn calm_down(&mut self) {
        let world = Rc::clone(&self.world);
        let (network, disk) = &self.calm;
        let now = world.now();
        world.calm_down();
        world.with_network(|it| it.calm_down(network.link()));
        self.recurring.stop();
        for node in &mut self.nodes {
            world.set_disk(node.id, disk.settings());
            node.drift(&world, 0);
            node.starts_at = node.starts_at.map(|at| at.min(now));
            node.paused_until = node.paused_until.min(now);
        }
    }

    /// Whether all nodes that it names are there; the name of one that is not.
    fn all_named(&self, fault: &Fault) -> Result<(), String> {
        let is_there = |name: &str| self.nodes.iter().any(|it| it.name == name);
        match fault.nodes().into_iter().find(|name| !is_there(name)) {
            Some(name) => Err(name.to_owned()),
            None => Ok(()),
        }
    }

    /// The node of that name, which is there.
    fn node(&mut self, name: &str) -> &mut Node {
        let found = self.nodes.iter_mut().find(|it| it.name == name);
        found.expect("names are checked before")
    }

    fn take_injected(&mut self) {
        for (delay, fault) in injected::take() {
            if self.is_replay {
                continue;
            }
            self.plan(self.world.now() + delay, fault);
        }
    }

    fn plan(&mut self, at: Time, fault: Fault) {
        self.planned += 1;
        self.faults.insert((at, self.planned), fault);
    }
}

/// Why a simulation cannot go on, and on which node.
type Bad = (Option<usize>, FailureKind);
