//! One operation in the table.

use std::rc::Rc;
use std::task::Waker;

use slab::Slab;

use super::super::io_counters::OpCounter;
use super::super::op::OutcomeSink;
use super::super::user_data::OpKey;
use super::stored::StoredOp;
#[cfg(feature = "debugging")]
use crate::ring::Asked;

/// Where an operation is on its way; the table draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    QueuedDetached,
    Submitted,
    Detached,
    Completed,
}

/// What is told of completions.
pub(in crate::reactor) enum CompletionTarget {
    /// The task that polled last, if any has.
    Task(Option<Waker>),
    Sink(Rc<dyn OutcomeSink>),
}

pub(super) struct Record {
    pub(super) generation: u32,
    pub(super) phase: Phase,
    pub(super) op: StoredOp,
    pub(super) target: CompletionTarget,
    /// If the operation is counted.
    pub(super) counter: Option<OpCounter>,
    /// What the kernel was first asked for.
    #[cfg(feature = "debugging")]
    pub(super) asked: Asked,
}

impl Record {
    /// No handle names it any more. A sink stays: it hears of all further completions.
    pub(super) fn detach(&mut self, phase: Phase) -> Abandoned {
        self.phase = phase;
        let waker = match &mut self.target {
            CompletionTarget::Task(waker) => waker.take(),
            CompletionTarget::Sink(_) => None,
        };
        Abandoned {
            op: None,
            target: Some(CompletionTarget::Task(waker)),
        }
    }
}

/// What is left of an operation that was given up, to be dropped with nothing borrowed.
#[derive(Default)]
#[cfg_attr(not(test), expect(dead_code, reason = "held for their destructors"))]
pub(in crate::reactor) struct Abandoned {
    pub(super) op: Option<StoredOp>,
    pub(super) target: Option<CompletionTarget>,
}

#[cfg(test)]
impl Abandoned {
    pub(in crate::reactor) fn is_nothing(&self) -> bool {
        self.op.is_none() && self.target.is_none()
    }
}

/// The record that `key` names.
pub(super) fn lookup(records: &mut Slab<Record>, key: OpKey) -> Option<&mut Record> {
    records
        .get_mut(key.index as usize)
        .filter(|record| record.generation == key.generation)
}
