//! Random histories: every queue does what a sorted map does.

use proptest::collection::vec;
use proptest::prelude::*;

use super::bytes::follow_bytes;
use super::history::{Budget, Op, Step, When, Which};
use super::model::{Pair, Queue};
use crate::classic::ClassicQueue;
use crate::wheel::{StagedWheel, TICK_BITS};

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
        3 => which().prop_map(|which| When::Beside(which, 0)),
        2 => (which(), span_ns(), any::<bool>()).prop_map(|(which, span_ns, is_later)| {
            let span_ns = span_ns as i64;
            When::Beside(which, if is_later { span_ns } else { -span_ns })
        }),
        8 => span_ns().prop_map(When::Within),
        4 => (16u32..64, 0u64..70, -1i8..=1).prop_map(|(level_bits, slots, offset_ns)| {
            When::Border { level_bits, slots, offset_ns }
        }),
        1 => Just(When::Never),
        1 => Just(When::LastInstant),
        1 => prop_oneof![0u64..3, span_ns()].prop_map(When::End),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..20_000_000).prop_map(Step::Within),
        2 => span_ns().prop_map(Step::Within),
        1 => span_ns().prop_map(Step::Back),
        6 => (which(), -1i8..=1).prop_map(|(which, offset_ns)| Step::Deadline(which, offset_ns)),
        2 => (16u32..64, -1i8..=1).prop_map(|(level_bits, offset_ns)| {
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
        1 => any::<u8>().prop_map(Op::CancelAllBut),
        2 => step().prop_map(Op::Gather),
        8 => (step(), budget()).prop_map(|(step, budget)| Op::Poll(step, budget)),
        8 => Just(Op::Ask),
        4 => (1u8..20).prop_map(Op::Sleep),
        4 => (1u8..20).prop_map(Op::Doze),
        1 => (0u8..4).prop_map(Op::Age),
        1 => (0u8..8).prop_map(Op::SkipArms),
        1 => Just(Op::DisarmAll),
    ]
}

/// What happens to bursts.
fn burst_op() -> impl Strategy<Value = Op> {
    let many = (1u16..800, when(), any::<u32>());
    prop_oneof![
        4 => many.prop_map(|(n, when, seed)| Op::ArmMany(n, when, seed)),
        2 => any::<u8>().prop_map(Op::CancelMany),
        2 => any::<u8>().prop_map(Op::CancelAllBut),
        1 => prop_oneof![(0u8..8).prop_map(Op::SkipArms), Just(Op::DisarmAll)],
        2 => step().prop_map(Op::Gather),
        4 => (1u8..20).prop_map(Op::Doze),
        1 => (1u8..20).prop_map(Op::Sleep),
        2 => (which(), when()).prop_map(|(which, when)| Op::Rearm(which, when)),
        2 => (step(), budget()).prop_map(|(step, budget)| Op::Poll(step, budget)),
        1 => Just(Op::Ask),
    ]
}

fn follow<Q: Queue>(mut pair: Pair<Q>, ops: &[Op], moves_per_poll: Option<usize>) {
    if let Some(moves) = moves_per_poll {
        pair.bound_moves(moves);
    }
    for op in ops {
        pair.apply(op);
    }
    pair.check();
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn the_classic_queue_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow(Pair::<ClassicQueue<usize>>::new(), &ops, None);
    }

    #[test]
    fn the_wheel_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow(Pair::<StagedWheel<usize>>::wheel(), &ops, None);
    }

    #[test]
    fn the_staged_wheel_agrees_with_a_sorted_map(ops in vec(op(), 1..120)) {
        follow(Pair::<StagedWheel<usize>>::new(), &ops, None);
    }

    #[test]
    fn a_wheel_of_few_moves_agrees_with_a_sorted_map(ops in vec(op(), 1..120), moves in 1usize..20) {
        follow(Pair::<StagedWheel<usize>>::wheel(), &ops, Some(moves));
    }

    /// Bursts that come, are gathered or made ready, and are cancelled, with few moves to a poll.
    #[test]
    fn bursts_of_a_wheel_of_few_moves_agree_with_a_sorted_map(
        ops in vec(burst_op(), 1..60),
        moves in 1usize..60,
    ) {
        follow(Pair::<StagedWheel<usize>>::new(), &ops, Some(moves));
        follow(Pair::<ClassicQueue<usize>>::new(), &ops, None);
    }

    /// The histories of the fuzz target.
    #[test]
    fn all_queues_agree_with_a_sorted_map_on_any_bytes(bytes in vec(any::<u8>(), 0..500)) {
        follow_bytes(&bytes);
    }
}
