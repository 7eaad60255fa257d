//! Who waits at one end of a channel, and what the two ends tell each other about that.
//!
//! An end that changes something, by an item that it stores or takes, has to check whether a task
//! waits for that at the other end. [`Waiters`] does that by a read-modify-write, which also waits
//! until the change can be seen by the other processor: several times the cost of the change. So a
//! check is put off while the other end is awake, and one covers many changes.
//!
//! # An item for a receiver that sleeps
//!
//! After each item the sender asks `waiting`, by a plain load. A receiver that has slept for a while
//! is seen, and notified before the send is done: the thread of the sender may block next. A load
//! misses a receiver only if that begins to wait at this moment, within the time that a store takes
//! to be seen. Without a read-modify-write or a fence neither side can know of the other one then
//! (Attiya et al., "Laws of Order", POPL 2011). So the receiver is told that checks are put off, and
//! does not rely on them:
//!
//! ```text
//!   sender                                     receiver
//!   first item of a round:                     1. waiting := 1, or more (swap)
//!     1. store the item                        2. look; go on if there is something
//!     2. puts_off := true                      3. ── fence ──
//!     3. ── fence ──                           4. puts_off? ── no ──▶ sleep until notified
//!     4. waiting > 0? notify                      │
//!   each other item of the round:                 yes: looks_again := true
//!     1. store the item                           │
//!     2. waiting > 0 (plain load)?                ├─ after 50 µs: looks_again := false, look
//!        and not looks_again? notify              └─ after 100 µs: look; from here on it sleeps
//!   end of the round:
//!     1. puts_off := false
//!     2. waiting > 0 (compare-exchange)? notify
//! ```
//!
//! 1. *The first item of a round, and a receiver that begins to wait.* Of the two fences one comes
//!    first. If it is the sender's, the receiver reads that checks are put off. If it is the
//!    receiver's, the sender reads that one waits.
//! 2. *No checks are put off.* Either none were when the receiver began to wait, and the next item is
//!    the first of a round: case 1. Or the round was just over: its end is a check by a
//!    read-modify-write, for which the proof at the head of [`waiters`](crate::waiters) holds.
//! 3. *Checks are put off.* The receiver counts as awake until it has looked twice more, by timers.
//!    Items that the sender stored before it could see `waiting`, or that `looks_again` is false, are
//!    found by the look that follows 50 µs after that, which is far longer than a store takes to be
//!    seen. Later ones notify.
//!
//! While a receiver looks again by itself, the sender notifies it once half of the capacity was
//! sent, or when its poll is over: on one processor, or a busy one, a task that is woken for the
//! first of many items takes that one and falls asleep again.
//!
//! Where no executor runs there are no timers: a receiver is polled again and again while checks are
//! put off, and a sender puts none off.
//!
//! # An item for a receiver that goes
//!
//! The same two fences: the sender looks after each item, by a plain load, whether the receiver is
//! gone, and has the item [dropped](crate::channels::spsc_queue#a-consumer-that-retires) then. A
//! receiver that goes while checks are put off looks again after the time that a store takes to be
//! seen.

use std::sync::OnceLock;
use std::task::{Wake, Waker};
use std::time::Duration;

use super::standby::Standby;
use crate::channels::spsc_queue::Lines;
use crate::clock;
use crate::loom::hint;
use crate::loom::sync::Arc;
use crate::loom::sync::atomic::{AtomicBool, Ordering, fence};
use crate::waiters::Waiters;

/// Which end it is.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Sending,
    Receiving,
}

impl Side {
    /// The tasks at this end.
    pub(super) fn own(self, lines: &Lines<Waits>) -> &Waits {
        match self {
            Side::Sending => &lines.consumer.beside,
            Side::Receiving => &lines.producer.beside,
        }
    }

    /// The tasks at the other end.
    #[inline]
    pub(super) fn others(self, lines: &Lines<Waits>) -> &Waits {
        match self {
            Side::Sending => &lines.producer.beside,
            Side::Receiving => &lines.consumer.beside,
        }
    }
}

/// What is on the line of each side: of the producer that of the receivers, which wait for it.
pub(super) struct Waits {
    /// The tasks that wait for that side.
    pub(super) tasks: Waiters,
    /// Whether that side puts off its checks.
    puts_off: AtomicBool,
    /// Whether the tasks look again by themselves.
    looks_again: AtomicBool,
    /// Whether this end of a channel has come to its executor.
    has_arrived: AtomicBool,
    /// There once several have waited at a time.
    pub(super) standby: OnceLock<Box<Standby>>,
}

/// How long a receiver looks again by itself, and how long after that it does so once more: far
/// longer than what a thread has stored takes to be seen, and than half of a channel takes to fill.
pub(super) const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// How long what a thread has stored takes to be seen, at most: hundreds of times what it usually
/// does.
const SEEN: Duration = Duration::from_micros(10);

impl Waits {
    pub(super) fn new() -> Self {
        Waits {
            tasks: Waiters::new(),
            puts_off: AtomicBool::new(false),
            looks_again: AtomicBool::new(false),
            has_arrived: AtomicBool::new(false),
            standby: OnceLock::new(),
        }
    }

    /// This end has come to its executor. Waits until the one with the tasks `others` has, too, or
    /// `is_gone`.
    pub(super) async fn meet(&self, others: &Waits, is_gone: impl Fn() -> bool) {
        self.has_arrived.store(true, Ordering::Release);
        others.tasks.notify_all();
        let has_come = || others.has_arrived.load(Ordering::Acquire) || is_gone();
        self.tasks.wait(|| has_come().then_some(())).await;
        self.tasks.shrink();
    }

    /// Notifies the oldest task that waits, after something has changed that one of them waits for.
    /// False if none does.
    #[inline]
    pub(super) fn notify_one(&self) -> bool {
        let is_notified = self.tasks.notify_one();
        if is_notified
            && self.tasks.may_wait()
            && let Some(standby) = self.standby.get()
        {
            standby.call();
        }
        is_notified
    }

    /// The other side has made its first change since the last check, and puts off further checks if
    /// `puts_off`. It sees now what the tasks wrote before they [asked](Self::is_put_off) and were
    /// told that it puts off none.
    pub(super) fn begin(&self, puts_off: bool) {
        if puts_off {
            self.puts_off.store(true, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// The other side is going to check.
    pub(super) fn end(&self) {
        // Release: who reads this sees all changes.
        self.puts_off.store(false, Ordering::Release);
    }

    /// Whether the other side puts off its checks. Asked by a task after it has said that it waits,
    /// or goes.
    pub(super) fn is_put_off(&self) -> bool {
        fence(Ordering::SeqCst);
        self.puts_off.load(Ordering::Acquire)
    }

    /// Whether the tasks look again by themselves.
    pub(super) fn looks_again(&self) -> bool {
        self.looks_again.load(Ordering::Relaxed)
    }

    /// The tasks are going to look again by themselves.
    pub(super) fn will_look_again(&self) {
        self.looks_again.store(true, Ordering::Relaxed);
    }

    /// Waits until each change of a side that took these tasks to be there can be seen.
    pub(super) fn wait_until_seen(&self) {
        let mut end = None;
        while self.is_put_off() {
            let now = clock::real();
            // In a model time does not pass.
            if !cfg!(loom) && now >= *end.get_or_insert(now + SEEN) {
                return;
            }
            hint::spin_loop();
        }
    }
}

/// Looks for items on behalf of the receivers that wait, when a timer wakes it.
pub(super) struct Look {
    pub(super) lines: Arc<Lines<Waits>>,
}

impl Look {
    pub(super) fn waker(lines: &Arc<Lines<Waits>>) -> Waker {
        let lines = Arc::clone(lines);
        Waker::from(std::sync::Arc::new(Look { lines }))
    }

    pub(super) fn look(&self) {
        let receivers = &self.lines.producer.beside;
        receivers.looks_again.store(false, Ordering::Relaxed);
        for _ in 0..self.lines.len() {
            if !receivers.notify_one() {
                return;
            }
        }
    }
}

impl Wake for Look {
    fn wake(self: std::sync::Arc<Self>) {
        self.look();
    }
}
