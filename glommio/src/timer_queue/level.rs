//! The levels of the wheel: where a timer waits until its tick is near.
//!
//! Time is cut into ticks of 2^20 ns (1.05 ms). Level 0 has a slot for each of the next 63 ticks, a
//! slot of every further level covers as much as 32 slots of the one below:
//!
//! ```text
//!                cursor
//!   level 0   ─────┤·├─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬ ─ ─ 63 slots of 1 tick
//!   level 1   ──┤···········├───────────┬───────────┬─ ─ ─ 63 slots of 32 ticks
//!   level 2   ┤··············································├─ ─ ─ of 1024 ticks
//!     ...            · the cursor's slot: always empty           9 levels: all of u64
//! ```
//!
//! A timer goes to the lowest level where its slot is 1 to 63 slots ahead of the cursor's. So nothing
//! ever wraps round, the slots of a level are disjoint and ascending from the cursor, and the first
//! occupied one holds the level's earliest timer. And since the 63 slots of a level span the whole
//! *next* slot of the level above, wherever in its own slot the cursor stands, that next slot can be
//! moved down at any time before the cursor arrives: piece by piece, never all at once.
//!
//! Invariants: a bit is set exactly when its list is not empty, the count is the list's length, the
//! links agree both ways; `min_ns` lies in the slot's interval and is no later than any deadline in
//! the list; a record may wait in a slot *before* that of its deadline (it was re-armed to a later
//! one and is placed anew when the slot is emptied), never in one behind.
//!
//! Linking and unlinking touch a record, its neighbours and the slot. The slot width of the design
//! (Varghese and Lauck, SOSP 1987, scheme 7; IEEE/ACM ToN 1997) is theirs, the distance rule and the
//! early moves are what keeps the worst poll short.

use super::entry::{NIL, State};
use super::epoch::NEVER;
use super::records::Records;

/// Nanoseconds to a tick, as a power of two.
pub(super) const TICK_BITS: u32 = 20;

/// The tick a deadline lies in.
#[inline]
pub(super) fn tick_of(ns: u64) -> u64 {
    ns >> TICK_BITS
}

/// `SLOTS` slots on each of `LEVELS` levels, half as many slots between one level and the next.
#[derive(Debug)]
pub(super) struct Levels<const SLOTS: usize, const LEVELS: usize> {
    /// A bit for each slot with timers.
    occupied: [u64; LEVELS],
    /// A bit for each level with timers.
    active: u64,
    slots: [[Slot; SLOTS]; LEVELS],
}

/// The list of one slot, in order of linking.
///
/// Packed, since the tables of all levels together are to be small: 20 bytes instead of 24.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
pub(super) struct Slot {
    /// A lower bound of the deadlines, and one of them unless stale.
    min_ns: u64,
    head: u32,
    tail: u32,
    /// Records in the list; the highest bit says stale: the timer that `min_ns` was taken from may
    /// have left.
    count: u32,
}

/// A slot by level and by how many slots of that width fit between the epoch and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) level: usize,
    pub(super) number: u64,
}

impl Slot {
    const EMPTY: Slot = Slot {
        min_ns: u64::MAX,
        head: NIL,
        tail: NIL,
        count: 0,
    };
    const STALE: u32 = 1 << 31;

    #[inline]
    pub(super) fn min_ns(&self) -> u64 {
        self.min_ns
    }

    #[inline]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.count & !Self::STALE
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.count & Self::STALE != 0
    }

    /// States the earliest deadline, from the deadline itself.
    #[inline]
    fn set_min(&mut self, min_ns: u64) {
        self.min_ns = min_ns;
        self.count &= !Self::STALE;
    }

    #[inline]
    fn mark_stale(&mut self) {
        self.count |= Self::STALE;
    }
}

impl<const SLOTS: usize, const LEVELS: usize> Levels<SLOTS, LEVELS> {
    const SLOT_BITS: u32 = SLOTS.trailing_zeros();
    /// One bit less than the slots have: two slots of a level span the level below.
    const RATIO_BITS: u32 = Self::SLOT_BITS - 1;

    /// The lowest level that reaches as far as a distance with so many leading zeros.
    const LEVEL_BY_ZEROS: [u8; 65] = {
        assert!(SLOTS.is_power_of_two() && SLOTS >= 4 && SLOTS <= 64);
        assert!(LEVELS <= 64 && SLOTS * LEVELS <= u16::MAX as usize);
        assert!(
            Self::SLOT_BITS + (LEVELS as u32 - 1) * Self::RATIO_BITS >= u64::BITS - TICK_BITS,
            "the top level must reach the last tick without wrapping round",
        );
        let mut levels = [0; 65];
        let mut bits = 0;
        while bits <= 64 {
            let beyond = (bits as u32).saturating_sub(Self::SLOT_BITS);
            levels[64 - bits] = beyond.div_ceil(Self::RATIO_BITS) as u8;
            bits += 1;
        }
        levels
    };

    pub(super) fn new() -> Self {
        Levels {
            occupied: [0; LEVELS],
            active: 0,
            slots: [[Slot::EMPTY; SLOTS]; LEVELS],
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// Where a timer due in `tick` belongs while the cursor is at `cursor`, an earlier tick.
    #[inline]
    pub(super) fn position(cursor: u64, tick: u64) -> Position {
        debug_assert!(tick > cursor);
        let zeros = (tick - cursor).leading_zeros();
        let level = Self::LEVEL_BY_ZEROS[zeros as usize] as u32;
        let shift = level * Self::RATIO_BITS;
        let number = tick >> shift;
        if number - (cursor >> shift) < SLOTS as u64 {
            Position {
                level: level as usize,
                number,
            }
        } else {
            // The distance fits in ticks but straddles one slot border too many.
            Position {
                level: level as usize + 1,
                number: number >> Self::RATIO_BITS,
            }
        }
    }

    /// Appends the record to the list of the slot its deadline belongs to.
    #[inline]
    pub(super) fn link(&mut self, records: &mut Records, index: u32, cursor: u64) {
        let deadline_ns = records.at(index).deadline_ns;
        let at = Self::position(cursor, tick_of(deadline_ns));
        let slot_index = at.number as usize & (SLOTS - 1);
        let slot = &mut self.slots[at.level][slot_index];
        let tail = slot.tail;
        if tail == NIL {
            slot.head = index;
            slot.set_min(deadline_ns);
            self.occupied[at.level] |= 1 << slot_index;
            self.active |= 1 << at.level;
        } else if deadline_ns <= slot.min_ns {
            slot.set_min(deadline_ns);
        }
        slot.tail = index;
        slot.count += 1;
        let record = records.at_mut(index);
        record.next = NIL;
        record.prev = tail;
        record.place = (at.level << Self::SLOT_BITS | slot_index) as u16;
        record.state = State::Listed;
        if tail != NIL {
            records.at_mut(tail).next = index;
        }
    }

    /// Takes a listed record out of its list.
    #[inline]
    pub(super) fn unlink(&mut self, records: &mut Records, index: u32) {
        let record = records.at(index);
        debug_assert_eq!(record.state, State::Listed);
        let (deadline_ns, next, prev) = (record.deadline_ns, record.next, record.prev);
        let (level, slot_index) = Self::split_place(record.place);
        if next != NIL {
            debug_assert_eq!(records.at(next).place, records.at(index).place);
            records.at_mut(next).prev = prev;
        }
        if prev != NIL {
            debug_assert_eq!(records.at(prev).place, records.at(index).place);
            records.at_mut(prev).next = next;
        }
        let slot = &mut self.slots[level][slot_index];
        debug_assert!(!slot.is_empty() && (prev != NIL || slot.head == index));
        if next == NIL {
            slot.tail = prev;
        }
        if prev == NIL {
            slot.head = next;
        }
        slot.count -= 1;
        if slot.is_empty() {
            slot.count = 0;
            self.clear_bit(level, slot_index);
        } else if deadline_ns == slot.min_ns {
            slot.mark_stale();
        }
    }

    /// Gives a listed record a new deadline where it is, if its slot is not behind that deadline's.
    /// The caller writes the record.
    #[inline]
    pub(super) fn can_keep(
        &mut self,
        place: u16,
        cursor: u64,
        old_ns: u64,
        deadline_ns: u64,
    ) -> bool {
        let (level, slot_index) = Self::split_place(place);
        let at = self.at_distance(level, slot_index, cursor);
        let tick = tick_of(deadline_ns);
        // What is never due must not stay in a list, or there would be a next expiry.
        if tick < Self::start(at) || deadline_ns == NEVER {
            return false;
        }
        let is_inside = tick >> (level as u32 * Self::RATIO_BITS) == at.number;
        let slot = &mut self.slots[level][slot_index];
        if deadline_ns <= slot.min_ns {
            // Not below the start of the slot, hence inside it.
            debug_assert!(is_inside);
            slot.set_min(deadline_ns);
        } else if old_ns == slot.min_ns && deadline_ns != old_ns {
            slot.mark_stale();
        }
        true
    }

    /// The first occupied slot of each level with timers, from the top level down.
    #[inline]
    pub(super) fn first_slots(&self, cursor: u64) -> impl Iterator<Item = Position> + '_ {
        let mut left = self.active;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let level = left.ilog2() as usize;
                left ^= 1 << level;
                self.first_slot(level, cursor)
            })
        })
    }

    /// The levels with timers, a bit each.
    #[inline]
    pub(super) fn active(&self) -> u64 {
        self.active
    }

    /// The first occupied slot after the cursor's on a level that has timers.
    #[inline]
    pub(super) fn first_slot(&self, level: usize, cursor: u64) -> Position {
        debug_assert_ne!(self.occupied[level], 0);
        let next = (cursor >> (level as u32 * Self::RATIO_BITS)) + 1;
        let turn = next as u32 & (SLOTS as u32 - 1);
        let occupied = self.occupied[level];
        let ahead = if SLOTS == 64 {
            occupied.rotate_right(turn)
        } else {
            occupied >> turn | occupied << (SLOTS as u32 - turn)
        };
        Position {
            level,
            number: next + u64::from(ahead.trailing_zeros()),
        }
    }

    /// The tick a slot begins with.
    #[inline]
    pub(super) fn start(at: Position) -> u64 {
        at.number << (at.level as u32 * Self::RATIO_BITS)
    }

    /// Whether no slot lies between this one and the cursor's.
    #[inline]
    pub(super) fn is_next(at: Position, cursor: u64) -> bool {
        at.number == (cursor >> (at.level as u32 * Self::RATIO_BITS)) + 1
    }

    #[inline]
    pub(super) fn slot(&self, at: Position) -> &Slot {
        &self.slots[at.level][at.number as usize & (SLOTS - 1)]
    }

    /// Drops the first `taken` records from a slot's list, `head` being the one behind them. They are
    /// no longer the slot's: their links now mean something else.
    pub(super) fn cut(&mut self, records: &mut Records, at: Position, taken: u32, head: u32) {
        let slot_index = at.number as usize & (SLOTS - 1);
        let slot = &mut self.slots[at.level][slot_index];
        debug_assert!(taken <= slot.len() && (taken == slot.len()) == (head == NIL));
        if head == NIL {
            *slot = Slot::EMPTY;
            self.clear_bit(at.level, slot_index);
        } else {
            slot.head = head;
            slot.count -= taken;
            slot.mark_stale();
            records.at_mut(head).prev = NIL;
        }
    }

    /// Whether a deadline lies in the interval of the slot.
    #[inline]
    pub(super) fn covers(at: Position, deadline_ns: u64) -> bool {
        tick_of(deadline_ns) >> (at.level as u32 * Self::RATIO_BITS) == at.number
    }

    /// States the earliest deadline of a slot anew.
    pub(super) fn set_min(&mut self, at: Position, min_ns: u64) {
        debug_assert!(Self::covers(at, min_ns));
        let slot = &mut self.slots[at.level][at.number as usize & (SLOTS - 1)];
        slot.set_min(min_ns);
    }

    #[inline]
    fn clear_bit(&mut self, level: usize, slot_index: usize) {
        self.occupied[level] &= !(1 << slot_index);
        if self.occupied[level] == 0 {
            self.active &= !(1 << level);
        }
    }

    #[inline]
    fn split_place(place: u16) -> (usize, usize) {
        let place = place as usize;
        (place >> Self::SLOT_BITS, place & (SLOTS - 1))
    }

    /// The one slot of that index which is ahead of the cursor.
    #[inline]
    fn at_distance(&self, level: usize, slot_index: usize, cursor: u64) -> Position {
        let cursor = cursor >> (level as u32 * Self::RATIO_BITS);
        let distance = (slot_index as u64).wrapping_sub(cursor) & (SLOTS as u64 - 1);
        debug_assert_ne!(distance, 0, "the cursor's slot is empty");
        Position {
            level,
            number: cursor + distance,
        }
    }

    /// Asserts the invariants of the module and returns how many records are listed.
    #[cfg(test)]
    pub(super) fn check_invariants(&self, records: &Records, cursor: u64) -> usize {
        let mut listed = 0;
        for level in 0..LEVELS {
            assert_eq!(self.active >> level & 1 == 1, self.occupied[level] != 0);
            for slot_index in 0..SLOTS {
                let slot = &self.slots[level][slot_index];
                let is_occupied = self.occupied[level] >> slot_index & 1 == 1;
                assert_eq!(is_occupied, !slot.is_empty());
                if !is_occupied {
                    assert_eq!((slot.head(), { slot.tail }, { slot.count }), (NIL, NIL, 0));
                    continue;
                }
                let at = self.at_distance(level, slot_index, cursor);
                assert!(Self::covers(at, slot.min_ns));
                let mut count = 0;
                let mut has_min = false;
                let (mut prev, mut index) = (NIL, slot.head);
                while index != NIL {
                    let record = records.at(index);
                    assert_eq!(record.state, State::Listed);
                    assert_eq!(Self::split_place(record.place), (level, slot_index));
                    assert_eq!(record.prev, prev);
                    assert!(record.deadline_ns >= slot.min_ns);
                    assert!(tick_of(record.deadline_ns) > cursor);
                    has_min |= record.deadline_ns == slot.min_ns;
                    (prev, index) = (index, record.next);
                    count += 1;
                    assert!(count <= slot.len(), "a circle of records");
                }
                assert_eq!({ slot.tail }, prev);
                assert_eq!(slot.len(), count);
                assert!(has_min || slot.is_stale());
                listed += count as usize;
            }
        }
        listed
    }
}
