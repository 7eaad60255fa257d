//! The keys of a [`Run`](super::Run), how they are made of records, and how the chunks' first ones are
//! ordered.

use std::cmp::Ordering;

use crate::wheel::entry::RecordState;
use crate::wheel::slab::Slab;

/// The first key of the chunk at `chunk`, or a bound before it, which is that of no timer. In a
/// [`BinaryHeap`] the smallest comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) key: RunKey,
    pub(super) chunk: u32,
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.key >= other.key
    }

    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.key <= other.key
    }
}

impl Ord for Head {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Deadline (64 bits), arming count from the base of the run (32), index and one (32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKey(u128);

impl RunKey {
    #[inline]
    pub(super) fn new(deadline_ns: u64, arm: u32, index: u32) -> Self {
        RunKey(Self::before(deadline_ns, arm).0 | u128::from(index + 1))
    }

    /// Before the key of any timer with that deadline and count.
    #[inline]
    pub(super) fn before(deadline_ns: u64, arm: u32) -> Self {
        RunKey(u128::from(deadline_ns) << 64 | u128::from(arm) << 32)
    }

    /// Behind it.
    #[inline]
    pub(super) fn behind(deadline_ns: u64, arm: u32) -> Self {
        RunKey(Self::before(deadline_ns, arm).0 | u128::from(u32::MAX))
    }

    #[inline]
    pub(super) fn deadline_ns(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    pub(super) fn seq(self, base_seq: u64) -> u64 {
        base_seq + u64::from((self.0 >> 32) as u32)
    }

    /// No record's if it is [before](Self::before) that of a timer.
    #[inline]
    pub(super) fn index(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }

    /// Whether the timer that the key was made for is still armed and in the run.
    #[inline]
    pub(super) fn is_current<T>(self, slab: &Slab<T>, base_seq: u64) -> bool {
        slab.is_current(self.index(), self.seq(base_seq), RecordState::InRun)
    }
}

/// Makes keys of records.
pub(super) struct Sieve<'a> {
    pub(super) keys: &'a mut Vec<RunKey>,
    pub(super) base_seq: u64,
    pub(super) chunk: u32,
    pub(super) last_ns: u64,
    pub(super) strays: u32,
    pub(super) misfits: u32,
}

impl Sieve<'_> {
    #[inline]
    pub(super) fn take<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let deadline_ns = slab.link(index).deadline_ns;
        let record = slab.at_mut(index);
        let arm = u32::try_from(record.seq.wrapping_sub(self.base_seq));
        let next = if deadline_ns > self.last_ns {
            std::mem::replace(&mut self.strays, index)
        } else if let Ok(arm) = arm {
            record.state = RecordState::InRun;
            self.keys.push(RunKey::new(deadline_ns, arm, index));
            self.chunk
        } else {
            std::mem::replace(&mut self.misfits, index)
        };
        slab.link_mut(index).next = next;
    }
}
