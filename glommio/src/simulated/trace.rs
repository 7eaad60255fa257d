//! What has happened, for the digest by which two runs are compared, and for the report of a failure.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::ids::NodeId;
use simulated_kernel::network::Entry;

/// So many events are kept, the latest.
const KEPT: usize = 200;

/// Something that has happened in a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// An executor had a turn.
    Turn { shard: usize },
    /// The time has come of the next deadline.
    Moved,
    /// An operation was handed over.
    Begins(Described),
    /// One has ended with the result.
    Ends { what: Described, result: i32 },
    /// What the plan, or chance, has done to a node.
    Fault { what: String },
    /// What a node has said by [`note`](crate::simulation::note).
    Note { text: String },
    /// What became of a packet.
    Packet(Entry),
}

/// What an operation does, and to what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Described {
    pub(crate) what: &'static str,
    pub(crate) of: Named,
    pub(crate) bytes: Option<u64>,
}

/// What a descriptor or a path stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Named {
    Nothing,
    Path(Rc<[u8]>),
    /// By its own address and that of its peer.
    Socket(Option<SocketAddr>, Option<SocketAddr>),
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
    pub(super) fn latest<'a>(&self, name: impl Fn(NodeId) -> &'a str) -> Vec<String> {
        self.kept.iter().map(|it| it.told(&name)).collect()
    }
}

impl Line {
    fn told<'a>(&self, name: &impl Fn(NodeId) -> &'a str) -> String {
        let what = match &self.event {
            Event::Packet(entry) => return entry.told(name),
            Event::Turn { shard } => format!("shard {shard} has a turn"),
            Event::Moved => "time moves".to_owned(),
            Event::Begins(what) => format!("{what} begins"),
            Event::Ends { what, result } if *result < 0 => {
                let error = io::Error::from_raw_os_error(-result);
                format!("{what}: {error}")
            }
            Event::Ends { what, result } => format!("{what}: {result}"),
            Event::Fault { what } => format!("FAULT: {what}"),
            Event::Note { text } => text.clone(),
        };
        let (seconds, node) = (self.time.as_secs_f64(), self.node.as_deref().unwrap_or("-"));
        format!("{seconds:>14.6} s {node:<10} {what}")
    }
}

impl fmt::Display for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        match &self.of {
            Named::Nothing => {}
            Named::Path(path) => write!(f, " {}", String::from_utf8_lossy(path))?,
            Named::Socket(local, peer) => {
                for (word, address) in [("on", local), ("with", peer)] {
                    if let Some(address) = address {
                        write!(f, " {word} {address}")?;
                    }
                }
            }
        }
        match self.bytes {
            Some(bytes) => write!(f, ", {bytes} bytes"),
            None => Ok(()),
        }
    }
}
