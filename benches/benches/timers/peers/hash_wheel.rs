//! hierarchical_hash_wheel_timer: four wheels of 256 slots, ticked by the millisecond.
//!
//! Times are relative to its current tick. As in its own timers, a deadline is rounded up to a tick
//! and the present down, so that nothing fires early, and empty ticks are skipped. It drops what is
//! cancelled.

use std::convert::TryFrom;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{
    CancellableTimerEntry, QuadWheelWithOverflow,
};

use super::spare::Spare;
use crate::queues::{Queue, TimerQueue};

/// The cancellable wheel and its clock.
pub struct Wheel {
    queue: QuadWheelWithOverflow<Entry>,
    epoch: Instant,
    /// Ticks so far.
    now_ms: u64,
    next_id: u64,
    spare: Spare,
}

/// What it keeps.
#[derive(Debug)]
pub struct Entry {
    id: u64,
    waker: Waker,
}

impl CancellableTimerEntry for Entry {
    type Id = u64;

    #[inline]
    fn id(&self) -> &u64 {
        &self.id
    }
}

impl Wheel {
    fn at(&self, ms: u64) -> Instant {
        self.epoch + Duration::from_millis(ms)
    }
}

impl Queue for Wheel {
    const NAME: &'static str = "hash_wheel 1.4";
    type Handle = u64;

    fn new(epoch: Instant) -> Self {
        Wheel {
            queue: QuadWheelWithOverflow::new(),
            epoch,
            now_ms: 0,
            next_id: 0,
            spare: Spare::new(),
        }
    }

    #[inline]
    fn insert(&mut self, deadline: Instant, waker: Waker) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let deadline_ns = deadline.saturating_duration_since(self.epoch).as_nanos();
        let deadline_ms = deadline_ns.div_ceil(1_000_000) as u64;
        // It refuses what is due in this tick.
        let delay = Duration::from_millis(deadline_ms.saturating_sub(self.now_ms).max(1));
        self.queue
            .insert_ref_with_delay(Rc::new(Entry { id, waker }), delay)
            .expect("at least a tick ahead");
        id
    }

    #[inline]
    fn cancel(&mut self, handle: u64) -> Option<Waker> {
        self.queue.cancel(&handle).ok()?;
        Some(self.spare.take())
    }

    fn lay_in(&mut self, cancels: usize) {
        self.spare.lay_in(cancels);
    }
}

impl TimerQueue for Wheel {
    #[inline]
    fn release(&mut self, handle: u64) {
        let _ = self.queue.cancel(&handle);
    }

    #[inline]
    fn expire(&mut self, now: Instant, _budget: usize, expired: &mut Vec<Waker>) -> bool {
        let target_ms = now.saturating_duration_since(self.epoch).as_millis() as u64;
        while self.now_ms < target_ms {
            let left = u32::try_from(target_ms - self.now_ms).unwrap_or(u32::MAX);
            let skipped = match self.queue.can_skip() {
                Skip::Empty => left,
                Skip::Millis(empty) => empty.min(left),
                Skip::None => {
                    for entry in self.queue.tick() {
                        let entry = Rc::into_inner(entry).expect("only weakly held elsewhere");
                        expired.push(entry.waker);
                    }
                    self.now_ms += 1;
                    continue;
                }
            };
            self.queue.skip(skipped);
            self.now_ms += u64::from(skipped);
        }
        false
    }

    #[inline]
    fn next_expiry(&mut self) -> Option<Instant> {
        match self.queue.can_skip() {
            Skip::Empty => None,
            Skip::Millis(empty) => Some(self.at(self.now_ms + u64::from(empty) + 1)),
            Skip::None => Some(self.at(self.now_ms + 1)),
        }
    }
}
