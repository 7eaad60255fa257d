//! The table of operations between `submit` and the reaping of their last completion.
//!
//! ```text
//!                  flush              last completion
//!  Queued ───────────────▶ Submitted ──────────────▶ Completed ──poll──▶ (gone)
//!    │ │                       │                         │
//!    │ │ abandon               │ abandon (+ one cancel)  │ abandon: discarded
//!    │ │ (OnDrop::Finish)      ▼                         ▼
//!    │ └─▶ QueuedDetached ─▶ Detached ───────────────▶ (gone)
//!    │              flush             last completion: discarded
//!    └─▶ (gone, no system call)
//!     abandon (OnDrop::Cancel)
//! ```
//!
//! In place of what the kernel cannot do, or has cancelled unasked for want of a worker, a wait for a
//! blocking thread that does it is `Queued` ([`elsewhere`]).
//!
//! An operation that no handle names any more is *detached*. Discarded means completed, and the
//! output dropped, with nothing borrowed.
//!
//! Operations whose completions go to a sink are not polled: the last completion takes them out of
//! the table at once. A multishot operation completes many times, each time saying whether more
//! will follow; all but the last leave it in the phase that it is in. One that was given up is no
//! different: until the kernel has heard of it, it goes on completing, and its sink has to care for
//! what that brings.
//!
//! The theorem on which all buffers rest: memory that the kernel may touch belongs to the [`Op`] in
//! a record, or outlives it: its submission borrows it from there. From `Submitted` on, a record
//! leaves the table only when the last completion of its key, the one after which no more follow,
//! has been reaped. Dropping a future moves its record to `Detached` and changes nothing else. A
//! table that is dropped before the kernel is done, which takes a ring that no longer works, leaks
//! the records that the kernel may still know.
//!
//! Keys carry a generation, so that a late completion or a stale key cannot hit the next operation of
//! a slot. Records move when the table grows, and may: the operations lie in places of their own
//! ([`stored`]).
//!
//! Cost: no allocation for an operation that is polled to its end, or goes to a sink, unless more
//! are in flight than before. One that is given up frees its place, which the next allocates.

#![allow(unsafe_code)]

mod elsewhere;
mod record;
mod stored;

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

pub(super) use elsewhere::Job;
use elsewhere::{Done, Elsewhere, Wait};
pub(super) use record::{Abandoned, CompletionTarget};
use record::{Phase, Record, lookup};
use slab::Slab;
use stored::{SpareSlots, StoredOp};

use super::io_counters::{IoCounters, OpCounter};
use super::op::{OnDrop, Op, OutcomeSink};
use super::user_data::{IGNORED, MAX_IN_FLIGHT, OpKey};
use crate::panic;
#[cfg(feature = "debugging")]
use crate::ring::Asked;
use crate::ring::{Call, Completion, Outcome, QueueFull, Ring, Submission};
use crate::sys::descriptor::Descriptor;
use crate::sys::door::is_simulated;

/// What to do, with nothing borrowed, about a reaped completion.
pub(super) enum Delivery {
    Wake(Waker),
    Sink(Rc<dyn OutcomeSink>, Outcome),
    /// An operation does not need it any more, whether or not its result is taken: to be dropped.
    Release(Descriptor),
    /// Nothing waits for it: to be dropped.
    Discard(StoredOp),
}

/// What a look at an operation found.
pub(super) enum Polled<O> {
    Ready(O, Outcome),
    Pending,
    /// To be asked again with a clone of the waker.
    WantsSpare,
    /// To be asked again when a blocking thread has got this.
    Elsewhere(Job),
}

pub(super) struct InFlight {
    records: Slab<Record>,
    spares: SpareSlots,
    io_counters: IoCounters,
    backlog: Backlog,
    /// Records of operations that [wait for a device](Op::WAITS_FOR_DEVICE) and have not completed.
    device_waits: usize,
    /// What blocking threads do.
    elsewhere: Vec<Elsewhere>,
    /// Submitted operations to cancel. Bounded by the records.
    cancels: VecDeque<OpKey>,
    last_generation: u32,
}

impl InFlight {
    pub(super) fn new(io_counters: IoCounters) -> Self {
        InFlight {
            records: Slab::new(),
            spares: SpareSlots::default(),
            io_counters,
            backlog: Backlog::default(),
            device_waits: 0,
            elsewhere: Vec::new(),
            cancels: VecDeque::new(),
            last_generation: 0,
        }
    }

    /// What the operations were counted as.
    pub(super) fn io_counters(&mut self) -> &mut IoCounters {
        &mut self.io_counters
    }

    /// Adds an operation; the kernel hears of it at the next [`flush`](Self::flush).
    pub(super) fn insert<O: Op>(
        &mut self,
        op: O,
        target: CompletionTarget,
        counter: Option<OpCounter>,
    ) -> OpKey {
        assert!(
            self.records.len() < MAX_IN_FLIGHT,
            "more operations in flight than keys exist"
        );
        // Never zero: that is how `IGNORED` differs from every key.
        self.last_generation = self.last_generation.checked_add(1).unwrap_or(1);
        let generation = self.last_generation;
        #[cfg_attr(
            not(feature = "debugging"),
            expect(unused_mut, reason = "a submission is not looked at")
        )]
        let mut op = StoredOp::new(op, &mut self.spares);
        let index = self.records.insert(Record {
            generation,
            phase: Phase::Queued,
            #[cfg(feature = "debugging")]
            asked: Asked::by(&op.submission()),
            op,
            target,
            counter,
        });
        let key = OpKey {
            index: index as u32,
            generation,
        };
        self.device_waits += usize::from(O::WAITS_FOR_DEVICE);
        self.backlog.add(key);
        key
    }

    /// Whether something waits to be pushed to the ring.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.keys.is_empty() || !self.cancels.is_empty()
    }

    /// Operations that wait to be pushed to the ring.
    pub(super) fn queued(&self) -> usize {
        self.backlog.queued
    }

    /// Whether a device works on one of the operations, or is about to.
    pub(super) fn waits_for_device(&self) -> bool {
        self.device_waits > 0
    }

    /// Whether a cancellation waits to be pushed to the ring.
    pub(super) fn has_cancels(&self) -> bool {
        !self.cancels.is_empty()
    }

    /// Operations that have not left the table.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Pushes cancellations, then new operations, until all are pushed or the ring is full.
    #[inline]
    pub(super) fn flush(&mut self, ring: &Ring) -> Result<(), QueueFull> {
        // As a rule: sockets that are read often have their polls in the ring.
        if self.cancels.is_empty() && self.backlog.keys.is_empty() {
            return Ok(());
        }
        self.push_all(ring)
    }

    fn push_all(&mut self, ring: &Ring) -> Result<(), QueueFull> {
        while let Some(&key) = self.cancels.front() {
            if self.record(key).is_some() {
                let cancel = Submission::cancel(key.user_data()).with_user_data(IGNORED);
                // SAFETY: a cancellation points to no memory.
                unsafe { ring.push(&cancel) }?;
            }
            self.cancels.pop_front();
        }
        self.backlog.flush(&mut self.records, ring)
    }

    /// Takes in a completion of one of our operations. Adds to `deliveries` what is to be told, if
    /// anything.
    pub(super) fn complete(&mut self, completion: Completion, deliveries: &mut VecDeque<Delivery>) {
        let key = OpKey::from_user_data(completion.user_data);
        let mut outcome = completion.outcome;
        if outcome.raw == -libc::ECANCELED || !self.elsewhere.is_empty() {
            match self.settle(key, outcome, deliveries) {
                Some(settled) => outcome = settled,
                None => return,
            }
        }
        let Some(record) = lookup(&mut self.records, key) else {
            debug_assert!(false, "completion {completion:?} names no operation");
            return;
        };
        debug_assert!(
            matches!(record.phase, Phase::Submitted | Phase::Detached),
            "an operation completes between its submission and its last completion"
        );
        let waker = match &mut record.target {
            CompletionTarget::Sink(sink) => {
                let sink = Rc::clone(sink);
                if !outcome.has_more() {
                    self.device_waits -= usize::from(record.op.waits_for_device());
                    // This was its last completion: the kernel does not have the operation any more.
                    self.records.remove(key.index as usize);
                }
                return deliveries.push_back(Delivery::Sink(sink, outcome));
            }
            CompletionTarget::Task(waker) => waker.take(),
        };
        debug_assert!(!outcome.has_more(), "it was to complete once");
        self.device_waits -= usize::from(record.op.waits_for_device());
        if let Some(counter) = &mut record.counter {
            self.io_counters.completed(counter, outcome);
        }
        // SAFETY: this is its last completion: no more follow.
        let released = unsafe { record.op.completed(outcome) };
        deliveries.extend(released.map(Delivery::Release));
        if record.phase == Phase::Detached {
            let record = self.records.remove(key.index as usize);
            return deliveries.push_back(Delivery::Discard(record.op));
        }
        record.phase = Phase::Completed;
        deliveries.extend(waker.map(Delivery::Wake));
    }

    /// The outcome of what has completed: that of the blocking thread, if one has done it. `None` if one is
    /// to do it, which its task hands over.
    #[cold]
    fn settle(
        &mut self,
        key: OpKey,
        outcome: Outcome,
        deliveries: &mut VecDeque<Delivery>,
    ) -> Option<Outcome> {
        let Some(record) = lookup(&mut self.records, key) else {
            return Some(outcome);
        };
        if let Some(place) = self.elsewhere.iter().position(|it| it.key == key) {
            let Some(&result) = self.elsewhere[place].done.result.get() else {
                // The ring was short of memory for the wait.
                record.phase = match record.phase {
                    Phase::Submitted => Phase::Queued,
                    _ => Phase::QueuedDetached,
                };
                self.backlog.add(key);
                return None;
            };
            let Elsewhere { op, .. } = self.elsewhere.swap_remove(place);
            // The wait that it stands in for is dropped: it has completed.
            record.op = op;
            return Some(Outcome::of(result));
        }
        let is_asked_for = record.phase != Phase::Submitted || !record.op.waits_for_device();
        if outcome.raw != -libc::ECANCELED || is_asked_for || !self.send_elsewhere(key) {
            return Some(outcome);
        }
        let record = lookup(&mut self.records, key)?;
        record.phase = Phase::Queued;
        if let CompletionTarget::Task(waker) = &mut record.target {
            deliveries.extend(waker.take().map(Delivery::Wake));
        }
        self.backlog.add(key);
        None
    }

    /// Has a blocking thread do an operation that the kernel does not have. Whether there is a call
    /// that does the same, and a signal for its end.
    pub(super) fn send_elsewhere(&mut self, key: OpKey) -> bool {
        if is_simulated() {
            return false;
        }
        let Some(record) = lookup(&mut self.records, key) else {
            return false;
        };
        let (Some(call), Ok(done)) = (Call::of(&record.op.submission()), Done::new()) else {
            return false;
        };
        let wait = StoredOp::new(Wait(Arc::clone(&done)), &mut self.spares);
        self.elsewhere.push(Elsewhere {
            key,
            // Taken out when there is a result (`settle`), forgotten if the table is dropped before.
            op: mem::replace(&mut record.op, wait),
            job: Some(Job {
                call,
                done: Arc::clone(&done),
            }),
            done,
        });
        true
    }

    /// The operation and its outcome if it has completed; else remembers what to wake.
    ///
    /// That is `waker`, cloned by the caller into `spare` with nothing borrowed: cloning is code of
    /// others. `spare` is asked for only if it is needed, and holds what is to be dropped
    /// afterwards.
    #[inline]
    pub(super) fn poll<O: Op>(
        &mut self,
        key: OpKey,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> Polled<O> {
        let record = lookup(&mut self.records, key)
            .expect("the handle has neither abandoned nor consumed the operation");
        if record.phase == Phase::Completed {
            let record = self.records.remove(key.index as usize);
            if let Some(counter) = record.counter {
                self.io_counters.taken(counter);
            }
            let (op, outcome) = record.op.take(&mut self.spares);
            return Polled::Ready(op, outcome);
        }
        if let Some(elsewhere) = self.elsewhere.iter_mut().find(|it| it.key == key)
            && let Some(job) = elsewhere.job.take()
        {
            return Polled::Elsewhere(job);
        }
        let CompletionTarget::Task(known) = &mut record.target else {
            unreachable!("an operation with a sink is not polled");
        };
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            if spare.is_none() {
                return Polled::WantsSpare;
            }
            mem::swap(known, spare);
        }
        Polled::Pending
    }

    /// What an operation asks the kernel for, if it has not completed.
    #[cfg(feature = "debugging")]
    pub(super) fn asked(&self, key: OpKey) -> Option<Asked> {
        let record = self.record(key)?;
        (record.phase != Phase::Completed).then(|| record.asked.clone())
    }

    /// Whether the kernel has the operation, so that there will be a last completion.
    pub(super) fn is_submitted(&self, key: OpKey) -> bool {
        self.record(key)
            .is_some_and(|record| record.phase == Phase::Submitted)
    }

    /// Whether the kernel has not got the operation yet.
    pub(super) fn is_queued(&self, key: OpKey) -> bool {
        let is_elsewhere = self.elsewhere.iter().any(|it| it.key == key);
        self.record(key)
            .is_some_and(|record| record.phase == Phase::Queued && !is_elsewhere)
    }

    #[cfg(test)]
    pub(super) fn is_completed(&self, key: OpKey) -> bool {
        self.record(key)
            .is_some_and(|record| record.phase == Phase::Completed)
    }

    /// Takes out who waits for the operation, if it has not completed.
    pub(super) fn take_waker(&mut self, key: OpKey) -> Option<Waker> {
        match &mut self.record_mut(key)?.target {
            CompletionTarget::Task(waker) => waker.take(),
            CompletionTarget::Sink(_) => None,
        }
    }

    /// Puts back what [`take_waker`](Self::take_waker) gave. An operation that has completed
    /// meanwhile, or has got another waker, gives it back: to be woken, so that nothing is
    /// missed.
    pub(super) fn put_waker(&mut self, key: OpKey, waker: Waker) -> Option<Waker> {
        match self.record_mut(key) {
            Some(Record {
                phase: Phase::Queued | Phase::Submitted,
                target: CompletionTarget::Task(place @ None),
                ..
            }) => {
                *place = Some(waker);
                None
            }
            _ => Some(waker),
        }
    }

    /// Gives the operation up. What is queued is forgotten, and what the kernel has is cancelled,
    /// unless the operation is one to be finished; what the kernel has stays in the table until
    /// its last completion.
    pub(super) fn abandon(&mut self, key: OpKey) -> Abandoned {
        if let Some(elsewhere) = self.elsewhere.iter().find(|it| it.key == key) {
            elsewhere.done.give_up();
        }
        let Some(record) = self.record_mut(key) else {
            return Abandoned::default();
        };
        match (record.phase, record.op.on_drop()) {
            (Phase::QueuedDetached | Phase::Detached, _) => Abandoned::default(),
            (Phase::Queued, OnDrop::Finish) => record.detach(Phase::QueuedDetached),
            (Phase::Submitted, OnDrop::Finish) => record.detach(Phase::Detached),
            (Phase::Submitted, OnDrop::Cancel) => {
                let left = record.detach(Phase::Detached);
                self.cancels.push_back(key);
                left
            }
            (phase @ (Phase::Queued | Phase::Completed), _) => {
                let record = self.records.remove(key.index as usize);
                if phase == Phase::Queued {
                    self.backlog.forget();
                    self.device_waits -= usize::from(record.op.waits_for_device());
                }
                Abandoned {
                    op: Some(record.op),
                    target: Some(record.target),
                }
            }
        }
    }

    /// The keys of everything in the table.
    pub(super) fn keys(&self) -> Vec<OpKey> {
        self.records
            .iter()
            .map(|(index, record)| OpKey {
                index: index as u32,
                generation: record.generation,
            })
            .collect()
    }

    fn record(&self, key: OpKey) -> Option<&Record> {
        self.records
            .get(key.index as usize)
            .filter(|record| record.generation == key.generation)
    }

    fn record_mut(&mut self, key: OpKey) -> Option<&mut Record> {
        lookup(&mut self.records, key)
    }
}

/// What waits to be pushed to the ring.
#[derive(Default)]
struct Backlog {
    /// In order. Unbounded: `ring_depth` bounds only what the kernel's queue holds at once. May
    /// name records that are gone.
    keys: VecDeque<OpKey>,
    /// Records in the phases `Queued` and `QueuedDetached`: those that the keys are for.
    queued: usize,
}

impl Backlog {
    fn add(&mut self, key: OpKey) {
        self.keys.push_back(key);
        self.queued += 1;
    }

    /// One that waited was given up. Its key is left behind, as it may be anywhere in the line; but
    /// a line in which none waits any more is no reason to enter the kernel, and does not grow.
    fn forget(&mut self) {
        self.queued -= 1;
        if self.queued == 0 {
            self.keys.clear();
        }
    }

    /// Pushes the operations, until all are pushed or the ring is full.
    fn flush(&mut self, records: &mut Slab<Record>, ring: &Ring) -> Result<(), QueueFull> {
        while let Some(&key) = self.keys.front() {
            if let Some(record) = lookup(records, key)
                && let Some(next) = match record.phase {
                    Phase::Queued => Some(Phase::Submitted),
                    Phase::QueuedDetached => Some(Phase::Detached),
                    Phase::Submitted | Phase::Detached | Phase::Completed => None,
                }
            {
                let submission = record.op.submission().with_user_data(key.user_data());
                // SAFETY: what the submission borrows from `record.op` stays borrowed: the record
                // leaves the table only when the last completion for `key` has been
                // reaped (module head), and until then the operation is neither
                // moved nor looked at (`StoredOp`).
                unsafe { ring.push(&submission) }?;
                record.phase = next;
                if let Some(counter) = &mut record.counter {
                    counter.handed_over();
                }
                self.queued -= 1;
            }
            self.keys.pop_front();
        }
        Ok(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        // A thread may read and write their memory.
        self.elsewhere.drain(..).for_each(mem::forget);
        for record in self.records.drain() {
            match record.phase {
                Phase::Queued | Phase::QueuedDetached | Phase::Completed => {
                    panic::contain("dropping what waited for an operation panicked", || {
                        drop(record);
                    });
                }
                // The kernel may read and write its memory at any time from now on, also after the
                // ring was closed.
                Phase::Submitted | Phase::Detached => mem::forget(record),
            }
        }
    }
}
