//! Every deadline has one slot, on the lowest level that reaches it.

use proptest::prelude::*;

use super::super::super::tuning::{FINEST_BITS, SLOT_BITS};
use super::super::level::Levels;
use crate::tests::cases;

fn ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u32..64).prop_flat_map(move |bits| 0..=u64::MAX >> bits),
        (0u32..64, -2i64..=2).prop_map(|(bits, by)| (1u64 << bits).saturating_add_signed(by)),
    ]
}

/// Nanoseconds to a slot, as a power of two.
fn width_bits(level: u8) -> u32 {
    FINEST_BITS + u32::from(level) * (SLOT_BITS - 1)
}

/// The slot is ahead of the cursor's by less than a revolution, covers the deadline, and no lower level
/// has such a slot.
fn check_position(cursor_ns: u64, deadline_ns: u64) {
    let at = Levels::position(cursor_ns, deadline_ns);
    let distance = |level| (deadline_ns >> width_bits(level)) - (cursor_ns >> width_bits(level));
    assert!((at.level as usize) < Levels::LEVELS);
    assert!(distance(at.level) < 1 << SLOT_BITS);
    assert!(at.level == 0 || distance(at.level - 1) >= 1 << SLOT_BITS);
    let (begin_ns, last_ns) = Levels::interval(at);
    assert!((begin_ns..=last_ns).contains(&deadline_ns));
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_timer_is_placed_on_the_lowest_level_that_reaches_it(a in ns(), b in ns()) {
        check_position(a.min(b), a.max(b));
    }

    /// What lies in the cursor's slot or the next one can be placed a level further down.
    #[test]
    fn what_is_near_fits_the_level_below(
        cursor_ns in ns(),
        level in 1..Levels::LEVELS as u8,
        at in any::<u64>(),
    ) {
        for slot in Levels::near(level, cursor_ns) {
            let begin_ns = u128::from(slot.number) << width_bits(level);
            let deadline_ns = begin_ns as u64 + (at & ((1 << width_bits(level)) - 1));
            if begin_ns < 1 << u64::BITS && deadline_ns >= cursor_ns {
                assert!(Levels::is_near(slot, cursor_ns));
                assert!(Levels::position(cursor_ns, deadline_ns).level < level);
            }
        }
    }
}
