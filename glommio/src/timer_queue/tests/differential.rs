//! Random histories: every queue does what a sorted map does.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{Pair, Queue, SmallStagedWheel, SmallWheel};
use crate::timer_queue::classic::ClassicQueue;
use crate::timer_queue::level::TICK_BITS;
use crate::timer_queue::staged::StagedWheel;
use crate::timer_queue::timing_wheel::TimingWheel;

#[derive(Clone, Debug)]
enum Op {
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
    /// Polls at the next expiry, so many times.
    Sleep(u8),
}

/// A deadline, seen from the latest poll.
#[derive(Clone, Debug)]
enum When {
    BeforeEpoch,
    Past(u64),
    Now,
    /// The same nanosecond as another timer's.
    SameAs(Which),
    Within(u64),
    /// A nanosecond before, at or after a border of a level.
    Border {
        level_bits: u32,
        slots: u64,
        offset_ns: i8,
    },
    Never,
    /// Counted from the end of time.
    End(u64),
}

#[derive(Clone, Debug)]
enum Which {
    Any(u16),
    /// In firing order.
    Armed(u16),
    First,
}

#[derive(Clone, Debug)]
enum Step {
    Within(u64),
    Back(u64),
    /// To the earliest deadline, or beside it.
    Deadline(i8),
    /// To a border of a level, or beside it.
    Border {
        level_bits: u32,
        offset_ns: i8,
    },
}

#[derive(Clone, Copy, Debug)]
enum Budget {
    Exactly(usize),
    /// Polls until nothing is left, with so much each time.
    Repeated(usize),
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        2 => any::<u16>().prop_map(Which::Any),
        4 => any::<u16>().prop_map(Which::Armed),
        2 => Just(Which::First),
    ]
}

/// Lengths of time of every size.
fn span_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..1u64 << TICK_BITS,
        6 => 1_000_000u64..30_000_000_000,
        2 => 1_000_000u64..100_000_000,
        1 => 0..10 * 86_400_000_000_000u64,
        1 => 0..100 * 365 * 86_400_000_000_000u64,
        2 => (0u32..63).prop_flat_map(|bits| 0..2u64 << bits),
    ]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        1 => Just(When::BeforeEpoch),
        1 => span_ns().prop_map(When::Past),
        1 => Just(When::Now),
        3 => which().prop_map(When::SameAs),
        8 => span_ns().prop_map(When::Within),
        4 => (20u32..64, 0u64..70, -1i8..=1).prop_map(|(level_bits, slots, offset_ns)| {
            When::Border { level_bits, slots, offset_ns }
        }),
        1 => Just(When::Never),
        1 => prop_oneof![0u64..3, span_ns()].prop_map(When::End),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..20_000_000).prop_map(Step::Within),
        2 => span_ns().prop_map(Step::Within),
        1 => span_ns().prop_map(Step::Back),
        6 => (-1i8..=1).prop_map(Step::Deadline),
        2 => (20u32..64, -1i8..=1).prop_map(|(level_bits, offset_ns)| {
            Step::Border { level_bits, offset_ns }
        }),
    ]
}

fn budget() -> impl Strategy<Value = Budget> {
    prop_oneof![
        1 => Just(Budget::Exactly(0)),
        2 => Just(Budget::Exactly(1)),
        2 => Just(Budget::Exactly(7)),
        2 => Just(Budget::Exactly(usize::MAX)),
        1 => Just(Budget::Repeated(1)),
        2 => Just(Budget::Repeated(256)),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => when().prop_map(Op::Arm),
        1 => (1u16..400, when(), any::<u32>()).prop_map(|(n, when, seed)| Op::ArmMany(n, when, seed)),
        6 => which().prop_map(Op::Cancel),
        6 => (which(), when()).prop_map(|(which, when)| Op::Rearm(which, when)),
        1 => which().prop_map(Op::LookUp),
        1 => any::<u8>().prop_map(Op::CancelMany),
        8 => (step(), budget()).prop_map(|(step, budget)| Op::Poll(step, budget)),
        4 => (1u8..20).prop_map(Op::Sleep),
    ]
}

impl<Q: Queue> Pair<Q> {
    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Arm(ref when) => self.arm_when(when),
            Op::ArmMany(count, ref when, seed) => {
                self.arm_when(when);
                let mut random = u64::from(seed) | 1;
                for _ in 1..count {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    // A crowd in one tick, then one over two minutes.
                    let spread_ns = if seed % 2 == 0 {
                        1 << TICK_BITS
                    } else {
                        1 << 37
                    };
                    let ahead_ns = self
                        .deadline_ns(when)
                        .saturating_add((random >> 20) % spread_ns);
                    self.arm(ahead_ns);
                }
            }
            Op::Cancel(ref which) => {
                if let Some(id) = self.pick(which) {
                    self.cancel(id);
                }
            }
            Op::Rearm(ref which, ref when) => {
                if let Some(id) = self.pick(which) {
                    self.rearm(id, self.deadline_ns(when));
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
            Op::Sleep(times) => {
                for _ in 0..times {
                    self.sleep();
                }
            }
        }
        self.check();
    }

    fn arm_when(&mut self, when: &When) {
        let deadline_ns = self.deadline_ns(when);
        let deadline = match when {
            When::BeforeEpoch => self.epoch - Duration::from_millis(700),
            When::Never => self.epoch + Duration::from_secs(600 * 366 * 86_400),
            _ => self.instant(deadline_ns),
        };
        self.arm_at(deadline, deadline_ns);
    }

    fn deadline_ns(&self, when: &When) -> u64 {
        match *when {
            When::BeforeEpoch => 0,
            When::Past(span_ns) => self.now_ns.saturating_sub(span_ns),
            When::Now => self.now_ns,
            When::SameAs(ref which) => self
                .pick(which)
                .and_then(|id| self.deadline_of(id))
                .unwrap_or(self.now_ns),
            When::Within(span_ns) => self.now_ns.saturating_add(span_ns),
            When::Border {
                level_bits,
                slots,
                offset_ns,
            } => {
                let border = (self.now_ns >> level_bits).saturating_add(slots);
                let border_ns = u128::from(border) << level_bits;
                u64::try_from(border_ns)
                    .unwrap_or(u64::MAX)
                    .saturating_add_signed(offset_ns.into())
            }
            When::Never => u64::MAX,
            When::End(span_ns) => u64::MAX - span_ns,
        }
    }

    fn stepped_ns(&self, step: &Step) -> u64 {
        match *step {
            Step::Within(span_ns) => self.now_ns.saturating_add(span_ns).min(u64::MAX - 1),
            Step::Back(span_ns) => self.now_ns.saturating_sub(span_ns),
            Step::Deadline(offset_ns) => self
                .true_next_ns()
                .unwrap_or(self.now_ns)
                .saturating_add_signed(offset_ns.into())
                .min(u64::MAX - 1),
            Step::Border {
                level_bits,
                offset_ns,
            } => {
                let border = (self.now_ns >> level_bits) + 1;
                // The last border of all is the end of time: stay.
                u64::try_from(u128::from(border) << level_bits)
                    .unwrap_or(self.now_ns)
                    .saturating_add_signed(offset_ns.into())
                    .min(u64::MAX - 1)
            }
        }
    }

    fn pick(&self, which: &Which) -> Option<usize> {
        let any = |n: u16, len: usize| (len > 0).then(|| n as usize % len);
        match *which {
            Which::Any(n) => any(n, self.armed_so_far()),
            Which::Armed(n) => any(n, self.queue.len()).and_then(|n| self.armed().nth(n)),
            Which::First => self.armed().next(),
        }
    }

    /// Polls at the next expiry. An empty wake must lead to a later one.
    fn sleep(&mut self) {
        if let Some(next_ns) = self.next_ns() {
            let now_ns = self.now_ns.max(next_ns);
            let fired = self.poll_all(now_ns, 256);
            if fired == 0 {
                assert!(self.next_ns().is_none_or(|after_ns| after_ns > next_ns));
            }
        }
    }
}

fn follow<Q: Queue>(ops: &[Op], moves_per_poll: Option<usize>) {
    let mut pair = Pair::<Q>::new();
    if let Some(moves) = moves_per_poll {
        pair.bound_moves(moves);
    }
    for op in ops {
        pair.apply(op);
    }
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn the_classic_queue_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow::<ClassicQueue<usize>>(&ops, None);
    }

    #[test]
    fn the_wheel_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow::<TimingWheel<usize>>(&ops, None);
    }

    #[test]
    fn the_staged_wheel_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow::<StagedWheel<usize>>(&ops, None);
    }

    #[test]
    fn a_small_wheel_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow::<SmallWheel>(&ops, Some(usize::MAX));
    }

    #[test]
    fn a_small_staged_wheel_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow::<SmallStagedWheel>(&ops, None);
    }

    #[test]
    fn a_wheel_of_few_moves_agrees_with_a_sorted_map(ops in vec(op(), 1..120), moves in 1usize..20) {
        follow::<TimingWheel<usize>>(&ops, Some(moves));
        follow::<SmallWheel>(&ops, Some(moves));
    }
}
