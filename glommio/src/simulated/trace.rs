//! What has happened, for the digest by which two runs are compared, and for the report of a failure.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// So many events are kept, the latest.
const KEPT: usize = 200;

/// Something that has happened in a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// An executor had a turn.
    Turn {
        shard: usize,
    },
    /// The time has come of the next deadline.
    Moved,
    /// An operation was handed over, or has ended with the result.
    Submitted {
        opcode: u8,
    },
    Completed {
        result: i32,
    },
    /// What the plan, or chance, has done to a node.
    Fault {
        what: String,
    },
    /// What a node has said by [`note`](crate::simulation::note).
    Note {
        text: String,
    },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Trace {
    digest: DefaultHasher,
    events: u64,
    kept: VecDeque<Line>,
}

#[derive(Debug)]
struct Line {
    time: Duration,
    node: Option<String>,
    event: Event,
}

impl Trace {
    pub(super) fn new(seed: u64) -> Self {
        let mut digest = DefaultHasher::new();
        seed.hash(&mut digest);
        Trace {
            digest,
            events: 0,
            kept: VecDeque::with_capacity(KEPT),
        }
    }

    pub(super) fn add(&mut self, time: Duration, node: Option<&str>, event: Event) {
        (time, node, &event).hash(&mut self.digest);
        self.events += 1;
        // Turns say little, and there are many.
        if matches!(event, Event::Turn { .. } | Event::Moved) {
            return;
        }
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Line {
            time,
            node: node.map(str::to_owned),
            event,
        });
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// The latest events that say something, a line each.
    pub(super) fn latest(&self) -> Vec<String> {
        self.kept.iter().map(Line::to_string).collect()
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>14.6} s ", self.time.as_secs_f64())?;
        write!(f, "{:<10} ", self.node.as_deref().unwrap_or("-"))?;
        match &self.event {
            Event::Turn { shard } => write!(f, "shard {shard} has a turn"),
            Event::Moved => write!(f, "time moves"),
            Event::Submitted { opcode } => write!(f, "operation {opcode} begins"),
            Event::Completed { result } => write!(f, "completed with {result}"),
            Event::Fault { what } => write!(f, "FAULT: {what}"),
            Event::Note { text } => f.write_str(text),
        }
    }
}
