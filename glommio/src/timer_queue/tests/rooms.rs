//! The rooms under the queues, each against its own law.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::timer_queue::epoch::{Epoch, NEVER};
use crate::timer_queue::level::{Levels, TICK_BITS};
use crate::timer_queue::peak::Peak;

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

/// Reading an instant's fields or subtracting instants: the same number.
#[test]
fn instants_are_read_as_they_are_subtracted() {
    let now = Instant::now();
    for epoch_ns in [0, 1, 999_999_999, 123_456_789] {
        let epoch = now + Duration::from_nanos(epoch_ns);
        let (read, subtracted) = (Epoch::new(epoch), Epoch::unreadable(epoch));
        assert!(read.is_readable() && !subtracted.is_readable());
        for ns in [
            0,
            1,
            999_999_999,
            1_000_000_000,
            30_000_000_001,
            u64::MAX - 1,
        ] {
            let deadline = epoch + Duration::from_nanos(ns);
            assert_eq!(read.deadline_ns(deadline), ns);
            assert_eq!(subtracted.deadline_ns(deadline), ns);
        }
        let before = epoch - Duration::from_nanos(1);
        assert_eq!(
            (read.deadline_ns(before), subtracted.deadline_ns(before)),
            (0, 0)
        );
        let beyond = epoch + Duration::from_secs(u64::MAX / 1_000_000_000 + 1);
        assert_eq!(read.deadline_ns(beyond), NEVER);
        assert_eq!(subtracted.deadline_ns(beyond), NEVER);
    }
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

/// Slots and ticks to a slot of each level, as powers of two.
fn spans<const ROW: usize, const WIDE: usize, const ROWS: usize>() -> Vec<(u32, u32)> {
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
fn check_position<const ROW: usize, const WIDE: usize, const ROWS: usize>(cursor: u64, tick: u64) {
    let spans = spans::<ROW, WIDE, ROWS>();
    let at = Levels::<ROW, WIDE, ROWS>::position(cursor, tick);
    let (slots, ticks) = spans[at.level as usize];
    let distance = (tick >> ticks) - (cursor >> ticks);
    assert_eq!(at.number, tick >> ticks);
    assert!((1..1 << slots).contains(&distance));
    if at.level > 0 {
        let (slots, ticks) = spans[at.level as usize - 1];
        assert!((tick >> ticks) - (cursor >> ticks) >= 1 << slots);
    }
    assert!(Levels::<ROW, WIDE, ROWS>::start(at) <= tick);
    assert!(Levels::<ROW, WIDE, ROWS>::covers(at, tick << TICK_BITS));
}

/// All that lies in the slot after the cursor's can be placed a level further down.
fn check_next<const ROW: usize, const WIDE: usize, const ROWS: usize>(
    cursor: u64,
    level: usize,
    at: u64,
) {
    let spans = spans::<ROW, WIDE, ROWS>();
    let level = 1 + level % (spans.len() - 1);
    let (_, ticks) = spans[level];
    let next = ((cursor >> ticks) + 1) << ticks;
    let tick = next + (at & ((1 << ticks) - 1));
    if tick <= u64::MAX >> TICK_BITS {
        assert!(Levels::<ROW, WIDE, ROWS>::position(cursor, tick).level < level as u8);
    }
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn a_timer_is_placed_on_the_lowest_level_that_reaches_it(a in ticks(), b in ticks()) {
        prop_assume!(a != b);
        check_position::<32, 8, 24>(a.min(b), a.max(b));
        check_position::<64, 1, 9>(a.min(b), a.max(b));
        check_position::<4, 2, 43>(a.min(b), a.max(b));
        check_position::<4, 1, 43>(a.min(b), a.max(b));
    }

    #[test]
    fn the_next_slot_fits_the_level_below(
        cursor in ticks(),
        level in any::<usize>(),
        at in any::<u64>(),
    ) {
        check_next::<32, 8, 24>(cursor, level, at);
        check_next::<4, 2, 43>(cursor, level, at);
        check_next::<4, 1, 43>(cursor, level, at);
    }
}
