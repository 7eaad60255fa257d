//! Histories: what can happen to a queue, told so that the same words fit every queue.
//!
//! The property tests draw histories at random, the fuzz target reads them from bytes (`bytes.rs`).
//! Times are told from the latest poll and timers by their place among those armed, so that any
//! sequence of operations makes sense.

use std::time::{Duration, Instant};

use super::model::{Pair, Queue};
use crate::wheel::TICK_BITS;

#[derive(Clone, Debug)]
pub(super) enum Op {
    Arm(When),
    /// Many at once, so that the inline stage is left.
    ArmMany(u16, When, u32),
    /// Cancels, re-arms or looks up any timer there ever was, mostly one that is armed.
    Cancel(Which),
    Rearm(Which, When),
    LookUp(Which),
    /// Cancels a share of what is armed, of 256.
    CancelMany(u8),
    Poll(Step, Budget),
    /// Asks for the next expiry. Not after every operation: the queue may be ill only until asked.
    Ask,
    /// Cancels all but one in so many of what is armed, as when all connections are closed after a
    /// peak.
    CancelAllBut(u8),
    /// Polls at a time at which much is due, but fires nothing: the run is gathered and stays so.
    Gather(Step),
    /// Polls at the next expiry until something fires, so many times.
    Sleep(u8),
    /// Polls as an executor with nothing else to do: at the next expiry, and when the queue asks
    /// for it, until something fires.
    Doze(u8),
    /// Leaves the free records so many generations before the last, with those it has been through.
    Age(u8),
    /// As when an executor ends.
    DisarmAll,
    /// So many thousand million timers were armed and are gone.
    SkipArms(u8),
}

/// A deadline, seen from the latest poll.
#[derive(Clone, Debug)]
pub(super) enum When {
    BeforeEpoch,
    Past(u64),
    Now,
    /// The same nanosecond as another timer's, or so much before or after it.
    Beside(Which, i64),
    Within(u64),
    /// A nanosecond before, at or after a border of a level.
    Border {
        level_bits: u32,
        slots: u64,
        offset_ns: i8,
    },
    /// Past the reach of the queues' clock.
    Never,
    /// The last instant there is.
    LastInstant,
    /// Counted from the end of the queues' clock.
    End(u64),
}

#[derive(Clone, Debug)]
pub(super) enum Which {
    Any(u16),
    /// In firing order.
    Armed(u16),
    First,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Within(u64),
    Back(u64),
    /// To a deadline, or beside it.
    Deadline(Which, i8),
    /// To a border of a level, or beside it.
    Border {
        level_bits: u32,
        offset_ns: i8,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Budget {
    Exactly(usize),
    /// Polls until nothing is left, with so much each time.
    Repeated(usize),
}

impl<Q: Queue> Pair<Q> {
    pub(super) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Arm(ref when) => {
                let (deadline, deadline_ns) = self.deadline(when);
                self.arm_at(deadline, deadline_ns);
            }
            Op::ArmMany(count, ref when, seed) => self.arm_many(count, when, seed),
            Op::Cancel(ref which) => {
                if let Some(id) = self.pick(which) {
                    self.cancel(id);
                }
            }
            Op::Rearm(ref which, ref when) => {
                if let Some(id) = self.pick(which) {
                    let (deadline, deadline_ns) = self.deadline(when);
                    self.rearm_at(id, deadline, deadline_ns);
                }
            }
            Op::LookUp(ref which) => {
                if let Some(id) = self.pick(which) {
                    self.look_up(id);
                }
            }
            Op::CancelMany(share) => {
                let armed: Vec<usize> = self.armed().collect();
                for id in armed {
                    if id.wrapping_mul(167) % 256 <= share as usize {
                        self.cancel(id);
                    }
                }
            }
            Op::CancelAllBut(one_in) => {
                let armed: Vec<usize> = self.armed().collect();
                for (n, id) in armed.into_iter().enumerate() {
                    if !n.is_multiple_of(one_in as usize + 1) {
                        self.cancel(id);
                    }
                }
            }
            Op::Gather(ref step) => {
                self.poll(self.stepped_ns(step), 0);
            }
            Op::Poll(ref step, budget) => {
                let now_ns = self.stepped_ns(step);
                match budget {
                    Budget::Exactly(budget) => {
                        self.poll(now_ns, budget);
                    }
                    Budget::Repeated(budget) => {
                        self.poll_all(now_ns, budget);
                    }
                }
            }
            Op::Ask => self.check_next(),
            Op::Sleep(times) => {
                for _ in 0..times {
                    self.sleep();
                }
            }
            Op::Doze(times) => {
                for _ in 0..times {
                    self.doze();
                }
            }
            Op::Age(left) => self.queue.age(u32::MAX - u32::from(left)),
            Op::DisarmAll => self.disarm_all(),
            Op::SkipArms(count) => self.queue.skip_arms(u64::from(count) << 30),
        }
        self.check_shape();
    }

    /// A burst in one tick, or over two minutes.
    fn arm_many(&mut self, count: u16, when: &When, seed: u32) {
        let (_, start_ns) = self.deadline(when);
        let spread_bits = if seed.is_multiple_of(2) {
            TICK_BITS
        } else {
            37
        };
        let mut random = u64::from(seed) | 1;
        self.arm(start_ns);
        for _ in 1..count {
            // Knuth's, TAOCP 3.3.4.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let ahead_ns = (random >> 20) % (1 << spread_bits);
            self.arm(start_ns.saturating_add(ahead_ns));
        }
    }

    /// The deadline, and what the queue should take it for.
    fn deadline(&self, when: &When) -> (Instant, u64) {
        let deadline_ns = self.deadline_ns(when);
        let deadline = match when {
            When::BeforeEpoch => self.epoch - Duration::from_millis(700),
            When::Never => self.epoch + Duration::from_secs(600 * 366 * 86_400),
            When::LastInstant => last_instant(self.epoch),
            _ => self.instant(deadline_ns),
        };
        (deadline, deadline_ns)
    }

    fn deadline_ns(&self, when: &When) -> u64 {
        match *when {
            When::BeforeEpoch => 0,
            When::Past(span_ns) => self.now_ns.saturating_sub(span_ns),
            When::Now => self.now_ns,
            When::Beside(ref which, offset_ns) => self
                .pick(which)
                .and_then(|id| self.deadline_of(id))
                .unwrap_or(self.now_ns)
                .saturating_add_signed(offset_ns),
            When::Within(span_ns) => self.now_ns.saturating_add(span_ns),
            When::Border {
                level_bits,
                slots,
                offset_ns,
            } => self
                .border_ns(level_bits, slots)
                .unwrap_or(u64::MAX)
                .saturating_add_signed(offset_ns.into()),
            When::Never | When::LastInstant => u64::MAX,
            When::End(span_ns) => u64::MAX - span_ns,
        }
    }

    fn stepped_ns(&self, step: &Step) -> u64 {
        let to_ns = match *step {
            Step::Within(span_ns) => self.now_ns.saturating_add(span_ns),
            Step::Back(span_ns) => self.now_ns.saturating_sub(span_ns),
            Step::Deadline(ref which, offset_ns) => self
                .pick(which)
                .and_then(|id| self.deadline_of(id))
                .filter(|&deadline_ns| deadline_ns != u64::MAX)
                .unwrap_or(self.now_ns)
                .saturating_add_signed(offset_ns.into()),
            Step::Border {
                level_bits,
                offset_ns,
            } => self
                .border_ns(level_bits, 1)
                // The last border of all is the end of time: stay.
                .unwrap_or(self.now_ns)
                .saturating_add_signed(offset_ns.into()),
        };
        to_ns.min(u64::MAX - 1)
    }

    /// The start of a slot of so many nanoseconds, told from the latest poll.
    fn border_ns(&self, level_bits: u32, slots: u64) -> Option<u64> {
        let border = (self.now_ns >> level_bits).saturating_add(slots);
        u64::try_from(u128::from(border) << level_bits).ok()
    }

    fn pick(&self, which: &Which) -> Option<usize> {
        let any = |n: u16, len: usize| (len > 0).then(|| n as usize % len);
        match *which {
            Which::Any(n) => any(n, self.armed_so_far()),
            Which::Armed(n) => any(n, self.queue.len()).and_then(|n| self.armed().nth(n)),
            Which::First => self.armed().next(),
        }
    }

    /// Wakes at the next expiry and at nothing else, until a timer fires. An empty wake must lead
    /// to a later one.
    fn sleep(&mut self) {
        let mut last_ns = None;
        while let Some(next_ns) = self.next_ns() {
            assert!(last_ns < Some(next_ns), "woken twice for nothing");
            last_ns = Some(next_ns);
            if self.poll_all(self.now_ns.max(next_ns), 256) > 0 {
                return;
            }
        }
        assert_eq!(self.true_next_ns(), None);
    }

    /// Wakes when the queue wants a poll and at nothing else, until a timer fires. What it does
    /// ahead must end, and must leave it no more to do than there is.
    fn doze(&mut self) {
        // Each moves a record, ends a window, or gives pages back.
        let mut polls_left = self.moves_at_most() / self.moves_per_poll.min(1 << 20)
            + 2 * Q::LEVELS
            + SHRINKING_POLLS;
        while let Some(wake_ns) = self.wake_ns() {
            assert!(polls_left > 0, "woken without end");
            polls_left -= 1;
            let now_ns = self.now_ns.max(wake_ns);
            let (fired, has_more) = self.poll(now_ns, 256);
            if fired > 0 {
                return;
            }
            let is_late = self.true_next_ns().is_some_and(|next_ns| next_ns <= now_ns);
            assert!(has_more || !is_late);
        }
        assert_eq!(self.true_next_ns(), None);
    }
}

/// Polls that a queue may ask for to give memory back, of a table with some ten thousand entries.
const SHRINKING_POLLS: usize = 2000;

/// The furthest that an instant can be added to, whatever the clock's own zero.
fn last_instant(from: Instant) -> Instant {
    (0..u64::BITS).rev().fold(from, |instant, bits| {
        instant
            .checked_add(Duration::from_secs(1 << bits))
            .unwrap_or(instant)
    })
}
