//! The timer queue seen from outside: what goes in, what comes out, and when.
//!
//! With the features `audit` and `metrics` it takes the place of the queue, whose methods it has.
//! The deadline of a timer is kept beside its payload, so that what expires is judged, and its
//! lateness counted, by what was asked for and not by what the queue has made of it.

#[cfg(feature = "audit")]
use std::time::Duration;
use std::time::Instant;

#[cfg(feature = "audit")]
use crate::audit::Audit;
#[cfg(feature = "audit")]
use crate::clock;
use crate::timer_queue::{Handle, TimerQueue};

/// See the module, and the queue for the methods of the same names.
#[derive(Debug)]
pub(super) struct WatchedQueue<T> {
    queue: TimerQueue<Armed<T>>,
    /// Scratch space, kept for its allocation.
    expired: Vec<Armed<T>>,
    last_expired: Vec<Instant>,
    #[cfg(feature = "audit")]
    audit: Audit,
}

/// A timer in the queue.
#[derive(Debug)]
struct Armed<T> {
    payload: T,
    deadline: Instant,
    /// How many passes there were before it was set to the deadline.
    #[cfg(feature = "audit")]
    passes: u64,
}

impl<T> WatchedQueue<T> {
    pub(super) fn new(epoch: Instant) -> Self {
        WatchedQueue {
            queue: TimerQueue::new(epoch),
            expired: Vec::new(),
            last_expired: Vec::new(),
            #[cfg(feature = "audit")]
            audit: Audit::default(),
        }
    }

    pub(super) fn insert(&mut self, deadline: Instant, payload: T) -> Handle {
        let armed = Armed {
            payload,
            deadline,
            #[cfg(feature = "audit")]
            passes: self.audit.armed(deadline),
        };
        self.queue.insert(deadline, armed)
    }

    pub(super) fn cancel(&mut self, handle: Handle) -> Option<T> {
        let armed = self.queue.cancel(handle)?;
        #[cfg(feature = "audit")]
        self.audit.found(armed.deadline, armed.passes);
        Some(armed.payload)
    }

    pub(super) fn rearm(&mut self, handle: Handle, deadline: Instant) -> bool {
        if !self.queue.rearm(handle, deadline) {
            return false;
        }
        let armed = self.queue.get_mut(handle);
        let armed = armed.expect("a timer that was re-armed is armed");
        #[cfg(feature = "audit")]
        {
            self.audit.found(armed.deadline, armed.passes);
            armed.passes = self.audit.armed(deadline);
        }
        armed.deadline = deadline;
        true
    }

    pub(super) fn compact(&mut self, handle: Handle) -> Option<Handle> {
        self.queue.compact(handle)
    }

    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.queue.get_mut(handle).map(|armed| &mut armed.payload)
    }

    pub(super) fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<T>) -> bool {
        #[cfg(feature = "audit")]
        let clock = clock::now();
        let has_more = self.queue.expire(now, budget, &mut self.expired);
        self.last_expired.clear();
        for armed in self.expired.drain(..) {
            self.last_expired.push(armed.deadline);
            expired.push(armed.payload);
        }
        #[cfg(feature = "audit")]
        {
            let next = self.queue.next_expiry();
            self.audit
                .passed((now, clock), &self.last_expired, has_more, next);
        }
        has_more
    }

    /// The deadlines of the timers that the last [`expire`](Self::expire) has handed out, in their
    /// order.
    #[cfg(feature = "metrics")]
    pub(super) fn last_expired(&self) -> &[Instant] {
        &self.last_expired
    }

    pub(super) fn next_expiry(&mut self) -> Option<Instant> {
        let next = self.queue.next_expiry();
        #[cfg(feature = "audit")]
        self.audit.announced(next);
        next
    }

    pub(super) fn next_upkeep(&mut self) -> Option<Instant> {
        self.queue.next_upkeep()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn disarm_all(&mut self) -> Vec<T> {
        let armed = self.queue.disarm_all().into_iter();
        armed.map(|armed| armed.payload).collect()
    }

    /// One of what the last pass has handed out is about to be woken.
    #[cfg(feature = "audit")]
    pub(super) fn waking(&mut self) {
        self.audit.waking();
    }

    /// There will be no pass before `end`, and timers may expire so much later than they are due.
    #[cfg(feature = "audit")]
    pub(super) fn is_to_wait_until(&mut self, end: Instant, slack: Duration) {
        let next = self.queue.next_expiry();
        if let Some(limit) = next.and_then(|next| next.checked_add(slack)) {
            self.audit.lasts_until(end, limit);
        }
    }
}
