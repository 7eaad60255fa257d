//! The rooms under the queues, each against its own law.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use crate::timer_queue::epoch::{Epoch, NEVER};
use crate::timer_queue::level::{Levels, TICK_BITS};
use crate::timer_queue::peak::Peak;
use crate::timer_queue::sort::{RunKey, Sorter};

#[test]
fn deadlines_are_clamped_at_both_ends() {
    let start = Instant::now() + Duration::from_secs(100);
    let epoch = Epoch::new(start);
    let last = Duration::from_nanos(u64::MAX);
    for (deadline, ns) in [
        (start - Duration::from_secs(1), 0),
        (start, 0),
        (start + Duration::from_nanos(1), 1),
        (start + last - Duration::from_nanos(1), NEVER - 1),
        (start + last, NEVER),
        (start + last + Duration::from_nanos(1), NEVER),
        (start + 3 * last, NEVER),
    ] {
        assert_eq!(epoch.deadline_ns(deadline), ns);
        assert_eq!(epoch.now_ns(deadline), ns.min(NEVER - 1));
    }
    assert_eq!(epoch.instant(NEVER), None);
    assert_eq!(epoch.instant(0), Some(start));
    assert_eq!(
        epoch.instant(NEVER - 1),
        Some(start + last - Duration::from_nanos(1))
    );
}

#[test]
fn a_peak_is_remembered_for_two_windows() {
    let mut peak = Peak::default();
    peak.note(7);
    peak.note(3);
    assert_eq!(peak.roll(2), 7);
    assert_eq!(peak.roll(0), 7);
    assert_eq!(peak.roll(0), 2);
    assert_eq!(peak.roll(0), 0);
}

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
fn check_position<const SLOTS: usize, const LEVELS: usize>(cursor: u64, tick: u64) {
    let ratio_bits = SLOTS.ilog2() - 1;
    let at = Levels::<SLOTS, LEVELS>::position(cursor, tick);
    let distance = |level: usize| {
        let shift = level as u32 * ratio_bits;
        (tick >> shift) - (cursor >> shift)
    };
    assert!(at.level < LEVELS);
    assert_eq!(at.number, tick >> (at.level as u32 * ratio_bits));
    assert!((1..SLOTS as u64).contains(&distance(at.level)));
    assert!(at.level == 0 || distance(at.level - 1) >= SLOTS as u64);
    assert!(Levels::<SLOTS, LEVELS>::start(at) <= tick);
    assert!(Levels::<SLOTS, LEVELS>::covers(at, tick << TICK_BITS));
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn a_timer_is_placed_on_the_lowest_level_that_reaches_it(a in ticks(), b in ticks()) {
        prop_assume!(a != b);
        check_position::<64, 9>(a.min(b), a.max(b));
        check_position::<16, 15>(a.min(b), a.max(b));
        check_position::<4, 43>(a.min(b), a.max(b));
    }

    /// All that lies in the slot after the cursor's can be placed a level further down.
    #[test]
    fn the_next_slot_fits_the_level_below(cursor in ticks(), level in 1usize..9, at in any::<u64>()) {
        let shift = level as u32 * 5;
        let next = ((cursor >> shift) + 1) << shift;
        let tick = next + (at & ((1 << shift) - 1));
        prop_assume!(tick <= u64::MAX >> TICK_BITS);
        assert!(Levels::<64, 9>::position(cursor, tick).level < level);
    }

    #[test]
    fn keys_are_sorted(
        keys in vec((any::<u32>(), any::<u8>()), 0..3000),
        offset_bits in 0u32..=TICK_BITS,
    ) {
        let mut keys: Vec<RunKey> = keys
            .into_iter()
            .zip(0..)
            .map(|((offset_ns, seq), index)| {
                RunKey::new(offset_ns & ((1 << offset_bits) - 1), seq.into(), index)
            })
            .collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        Sorter::default().sort(&mut keys);
        assert_eq!(keys, sorted);
    }
}
