//! Every tick has one slot, on the lowest level that reaches it.

use proptest::prelude::*;

use crate::tests::cases;
use crate::wheel::level::{LEVELS, Levels, SLOTS, tick_bits};
use crate::wheel::tick::{TICK_BITS, Tick};

fn ticks() -> impl Strategy<Value = u64> {
    let last = u64::MAX >> TICK_BITS;
    prop_oneof![
        0..=last,
        (0u32..44).prop_flat_map(move |bits| 0..=last >> bits),
        (0u32..44, -2i64..=2).prop_map(move |(bits, offset)| {
            (1u64 << bits).saturating_add_signed(offset).min(last)
        }),
    ]
}

/// The slot is ahead of the cursor's by less than a revolution, covers the tick, and no lower level
/// has such a slot.
fn check_position(cursor: u64, tick: u64) {
    let at = Levels::position(Tick::new(cursor), Tick::new(tick));
    let distance = |level| (tick >> tick_bits(level)) - (cursor >> tick_bits(level));
    assert_eq!(at.number, tick >> tick_bits(at.level));
    assert!((1..SLOTS as u64).contains(&distance(at.level)));
    assert!(at.level == 0 || distance(at.level - 1) >= SLOTS as u64);
    assert!(Levels::start(at) <= Tick::new(tick));
    assert!(Levels::covers(at, tick << TICK_BITS));
}

/// All that lies in the slot after the cursor's can be placed a level further down.
fn check_next(cursor: u64, level: usize, at: u64) {
    let level = 1 + (level % (LEVELS - 1)) as u8;
    let ticks = tick_bits(level);
    let next = ((cursor >> ticks) + 1) << ticks;
    let tick = next + (at & ((1 << ticks) - 1));
    if tick <= u64::MAX >> TICK_BITS {
        assert!(Levels::position(Tick::new(cursor), Tick::new(tick)).level < level);
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_timer_is_placed_on_the_lowest_level_that_reaches_it(a in ticks(), b in ticks()) {
        prop_assume!(a != b);
        check_position(a.min(b), a.max(b));
    }

    #[test]
    fn the_next_slot_fits_the_level_below(
        cursor in ticks(),
        level in any::<usize>(),
        at in any::<u64>(),
    ) {
        check_next(cursor, level, at);
    }
}
