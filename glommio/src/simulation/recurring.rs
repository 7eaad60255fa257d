//! Faults that happen again and again, by chance, and rather where much depends on it.
//!
//! ```text
//!   now ─────── from ────────────── at
//!                └─ the node begins a sync, has renamed a file, has sent something:
//!                   the fault happens within that operation, or right after it
//!                                   └─ at the latest
//! ```
//!
//! A sync takes a millisecond of seconds, and what follows it less: faults that are spread evenly in time hardly
//! meet either. So most faults wait, from a time on that chance says, for a moment of a kind that chance says,
//! out of those that the node has had.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

use super::fault::Fault;
use crate::simulated::{Moment, NodeId, Time, World, generator};

/// Tells the generator of these faults from that of all else.
const RECURRING: u64 = 0x7265_7374_6172_7473;

/// Of so many faults one happens at any time.
const EVENLY: u32 = 4;

/// What has ended just now has done so for at most two to the power of this many nanoseconds: a millisecond.
const AFTER_MAX: u32 = 20;

/// A fault that happens again and again.
#[derive(Clone)]
pub(super) struct Recurring {
    pub(super) what: What,
    /// The node that it happens to; none if it is between nodes.
    pub(super) node: Option<String>,
    /// How long nothing happens before it.
    pub(super) every: Range<Duration>,
    pub(super) length: Range<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    PowerCut,
    Kill,
    Pause,
    Stop,
    Partition,
}

impl Recurring {
    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        let Recurring {
            what,
            node,
            every,
            length,
        } = self;
        let of = match node {
            Some(node) => format!("{what:?} of node {node:?}"),
            None => format!("{what:?}"),
        };
        if every.is_empty() || length.is_empty() {
            return Err(format!("{of} has an empty range: {every:?}, {length:?}"));
        }
        if every.start.is_zero() {
            return Err(format!(
                "{of} may follow at once on the one before: begin its range above zero"
            ));
        }
        Ok(())
    }

    fn fault(&self, length: Duration, rng: &mut Rng, names: &[String]) -> Fault {
        let node = self.node.clone().unwrap_or_default();
        match self.what {
            What::PowerCut => Fault::PowerCut {
                node,
                off_for: length,
            },
            What::Kill => Fault::Kill {
                node,
                off_for: length,
            },
            What::Pause => Fault::Pause { node, length },
            What::Stop => Fault::Stop { node, length },
            What::Partition => {
                let mut names = names.to_vec();
                rng.shuffle(&mut names);
                let count = rng.usize(1..names.len().max(2));
                let other = names.split_off(count.min(names.len()));
                let groups = vec![names, other];
                Fault::Partition { groups }
            }
        }
    }
}

/// When the faults of a run happen that happen again and again.
pub(super) struct Schedule {
    planned: Vec<Planned>,
    /// Of these faults alone: without them all else is drawn as with them.
    rng: Rng,
    /// What nodes have had.
    seen: BTreeMap<NodeId, BTreeSet<Moment>>,
}

struct Planned {
    recurring: Recurring,
    node: Option<NodeId>,
    /// From then on it waits for a moment.
    from: Time,
    /// Of this kind, once there was one to choose.
    sought: Option<Moment>,
    /// When it happens, which may become sooner.
    at: Time,
}

impl Schedule {
    /// The nodes of the faults have the ids that `id_of` says.
    pub(super) fn new(
        seed: u64,
        recurring: Vec<Recurring>,
        id_of: impl Fn(&str) -> Option<NodeId>,
        world: &World,
    ) -> Self {
        if !recurring.is_empty() {
            world.moments().keep();
        }
        let mut rng = generator(seed, RECURRING);
        let planned = recurring.into_iter().map(|recurring| {
            let node = recurring.node.as_deref().and_then(&id_of);
            let mut planned = Planned {
                recurring,
                node,
                from: Time::ZERO,
                sought: None,
                at: Time::ZERO,
            };
            planned.plan(Time::ZERO, &mut rng);
            planned
        });
        Schedule {
            planned: planned.collect(),
            rng,
            seen: BTreeMap::new(),
        }
    }

    /// None happens any more.
    pub(super) fn stop(&mut self) {
        self.planned.clear();
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.planned.iter().map(|it| it.at).min()
    }

    /// Looks at what the world has seen of its nodes: the faults that wait for that happen soon.
    pub(super) fn seek(&mut self, world: &World) {
        for (node, moment, takes) in world.moments().take() {
            let seen = self.seen.entry(node).or_default();
            seen.insert(moment);
            for it in &mut self.planned {
                it.meet(world.now(), (node, moment, takes), seen, &mut self.rng);
            }
        }
    }

    /// A fault whose time has come, and how long it lasts.
    pub(super) fn take(&mut self, now: Time, names: &[String]) -> Option<(Fault, Duration)> {
        let due = self.planned.iter_mut().find(|it| it.at <= now)?;
        let length = draw_span(&mut self.rng, &due.recurring.length);
        let fault = due.recurring.fault(length, &mut self.rng, names);
        due.plan(now + length, &mut self.rng);
        Some((fault, length))
    }

    /// A node has no power until then. What would happen to it before is counted from when it runs again.
    pub(super) fn node_is_off(&mut self, node: NodeId, until: Time) {
        for it in &mut self.planned {
            if it.node == Some(node) && it.from <= until {
                it.plan(until, &mut self.rng);
            }
        }
    }
}

impl Planned {
    /// Plans the next one, where nothing happens before `from`.
    fn plan(&mut self, from: Time, rng: &mut Rng) {
        let mut one = || from + draw_span(rng, &self.recurring.every);
        let (one, other) = (one(), one());
        (self.from, self.at) = (one.min(other), one.max(other));
        self.sought = None;
        if rng.u32(..EVENLY) == 0 {
            (self.from, self.at) = (one, one);
        }
    }

    /// A moment has come of a node, which has had `seen`.
    fn meet(
        &mut self,
        now: Time,
        (node, moment, takes): (NodeId, Moment, Time),
        seen: &BTreeSet<Moment>,
        rng: &mut Rng,
    ) {
        if !(self.from..self.at).contains(&now) || self.node.is_some_and(|it| it != node) {
            return;
        }
        let sought = match (self.recurring.what, self.sought) {
            (What::Partition, _) => Moment::Sent,
            (_, Some(sought)) => sought,
            (_, None) => rng.choice(seen).copied().unwrap_or(moment),
        };
        self.sought = Some(sought);
        if sought == moment {
            let after = match moment.is_in_flight() {
                true => rng.u64(1..(takes.as_nanos() as u64).max(2)),
                false => 1 << rng.u32(..=AFTER_MAX),
            };
            // It has its moment.
            self.from = self.at;
            self.at = self.at.min(now + Duration::from_nanos(after));
        }
    }
}

fn draw_span(rng: &mut Rng, range: &Range<Duration>) -> Duration {
    let most = (range.end - range.start).as_nanos().min(u64::MAX.into()) as u64;
    range.start + Duration::from_nanos(rng.u64(..most.max(1)))
}
