//! Every tick has one slot, on the lowest level that reaches it.

use proptest::prelude::*;

use crate::tests::cases;
use crate::wheel::level::Levels;
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

/// Slots and ticks to a slot of each level, as powers of two.
fn spans() -> Vec<(u32, u32)> {
    let mut ticks = 0;
    (0..ROWS - 2 * WIDE + 2)
        .map(|level| {
            let slots = (if level < 2 { ROW * WIDE } else { ROW }).ilog2();
            let span = (slots, ticks);
            ticks += slots - 1;
            span
        })
        .collect()
}

/// The slot is ahead of the cursor's by less than a revolution, covers the tick, and no lower level
/// has such a slot.
fn check_position(cursor: u64, tick: u64) {
    let spans = spans();
    let at = Levels::position(Tick::new(cursor), Tick::new(tick));
    let (slots, ticks) = spans[at.level as usize];
    let distance = (tick >> ticks) - (cursor >> ticks);
    assert_eq!(at.number, tick >> ticks);
    assert!((1..1 << slots).contains(&distance));
    if at.level > 0 {
        let (slots, ticks) = spans[at.level as usize - 1];
        assert!((tick >> ticks) - (cursor >> ticks) >= 1 << slots);
    }
    assert!(Levels::start(at) <= Tick::new(tick));
    assert!(Levels::covers(at, tick << TICK_BITS));
}

/// All that lies in the slot after the cursor's can be placed a level further down.
fn check_next(cursor: u64, level: usize, at: u64) {
    let spans = spans();
    let level = 1 + level % (spans.len() - 1);
    let (_, ticks) = spans[level];
    let next = ((cursor >> ticks) + 1) << ticks;
    let tick = next + (at & ((1 << ticks) - 1));
    if tick <= u64::MAX >> TICK_BITS {
        assert!(Levels::position(Tick::new(cursor), Tick::new(tick)).level < level as u8);
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
