//! The levels of the wheel: where a timer waits until its tick is near.
//!
//! Time is cut into ticks of 2^20 ns (1.05 ms). Level 0 has a slot for each of the next 63 ticks,
//! level 1 slots of 32 ticks; the slots of every further level are 32 times as wide:
//!
//! ```text
//!                cursor
//!   level 0   ─────┤·├─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬ ─ ─ 63 slots of 1 tick: 66 ms
//!   level 1   ──┤···········├───────────┬───────────┬─ ─ ─ 63 slots of 32 ticks: 2.1 s
//!   level 2   ┤··············································├─ ─ ─ 63 slots of 2^10 ticks: 68 s
//!   level 3    ...                                         63 slots of 2^15 ticks: 36 min
//!     ...            · the cursor's slot: always empty     9 levels: all of u64
//! ```
//!
//! A timer goes to the lowest level where its slot is ahead of the cursor's by less than the level
//! has slots. So nothing ever wraps round, the slots of a level are disjoint and ascending from the
//! cursor, and the first occupied one holds the level's earliest timer. And since a level spans two
//! slots of the one above, wherever in its own slot the cursor stands, the whole *next* slot of a
//! level can be moved down at any time before the cursor arrives: piece by piece, never all at
//! once.
//!
//! Invariants: a bit is set exactly when its list is not empty, the count is the list's length, the
//! links agree both ways; `min_ns` lies in the slot's interval and is no later than any deadline in
//! the list; a record may wait in a slot *before* that of its deadline (it was re-armed to a later
//! one and is placed anew when the slot is emptied), never in one behind.
//!
//! Linking and unlinking touch a record, its neighbours and the slot. The slot width of the design
//! (Varghese and Lauck, SOSP 1987, scheme 7; IEEE/ACM ToN 1997) is theirs, the distance rule and
//! the early moves are what keeps the worst poll short.

#[cfg(any(test, fuzzing))]
mod tests;

use super::entry::{Link, NIL, RecordState};
use super::slab::Slab;
use super::tick::Tick;
use crate::epoch::NEVER;

#[derive(Debug)]
pub(super) struct Levels {
    /// A bit for each slot with timers.
    occupied: [u64; LEVELS],
    /// A bit for each level with timers.
    pub(super) active: u64,
    slots: [[Slot; SLOTS]; LEVELS],
}

/// The list of one slot, in no order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// A lower bound of the deadlines, and one of them unless stale.
    pub(super) min_ns: u64,
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) len: u32,
    /// A timer that `min_ns` was taken from has left, and maybe no other has taken its place.
    pub(super) is_stale: bool,
}

impl Slot {
    const EMPTY: Slot = Slot {
        min_ns: u64::MAX,
        head: NIL,
        tail: NIL,
        len: 0,
        is_stale: false,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// States the earliest deadline, from the deadline itself.
    #[inline]
    fn set_min(&mut self, min_ns: u64) {
        self.min_ns = min_ns;
        self.is_stale = false;
    }
}

/// A slot by level and by how many slots of that width fit between the epoch and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) level: u8,
    pub(super) number: u64,
}

impl Levels {
    pub(super) fn new() -> Self {
        Levels {
            occupied: [0; LEVELS],
            active: 0,
            slots: [[Slot::EMPTY; SLOTS]; LEVELS],
        }
    }

    /// Where a timer due in `tick` belongs while the cursor is at `cursor`, an earlier tick.
    #[inline]
    pub(super) fn position(cursor: Tick, tick: Tick) -> Position {
        debug_assert!(tick > cursor);
        let bits = u64::BITS - tick.since(cursor).leading_zeros();
        let level = bits.saturating_sub(SLOTS_BITS).div_ceil(RATIO_BITS) as u8;
        let distance = tick.slot(tick_bits(level)) - cursor.slot(tick_bits(level));
        // The distance may fit in ticks but straddle one slot border too many. No branch: half of
        // the timers would take it.
        let level = level + u8::from(distance >= SLOTS as u64);
        Position {
            level,
            number: tick.slot(tick_bits(level)),
        }
    }

    /// Makes room at the end of a slot's list: where the record goes, and behind which one. The
    /// caller writes the record, then [`attach`](Self::attach)es it.
    #[inline(always)]
    pub(super) fn tail(&self, at: Position) -> (u16, u32) {
        let place = Self::place(at);
        (place as u16, self.slots.as_flattened()[place].tail)
    }

    /// Appends a record, whose link names `tail`, to the list of `place`.
    #[inline(always)]
    pub(super) fn attach<T>(
        &mut self,
        slab: &mut Slab<T>,
        index: u32,
        (place, tail): (u16, u32),
        deadline_ns: u64,
    ) {
        let slot = &mut self.slots.as_flattened_mut()[place as usize];
        slot.tail = index;
        // Without a branch: in a slot with few others, any may be the earliest.
        slot.min_ns = slot.min_ns.min(deadline_ns);
        slot.len += 1;
        if tail == NIL {
            slot.head = index;
            self.set_bit(place);
        } else {
            slab.link_mut(tail).next = index;
        }
    }

    /// Appends a record that is in no list to that of the slot its deadline belongs to.
    #[inline]
    pub(super) fn link<T>(&mut self, slab: &mut Slab<T>, index: u32, cursor: Tick) {
        let deadline_ns = slab.link(index).deadline_ns;
        let at = Self::position(cursor, Tick::of(deadline_ns));
        let (place, tail) = self.tail(at);
        let link = slab.link_mut(index);
        link.next = NIL;
        link.prev = tail;
        let record = slab.at_mut(index);
        record.place = place;
        record.state = RecordState::Listed;
        self.attach(slab, index, (place, tail), deadline_ns);
    }

    /// Takes a listed record out of its list.
    #[inline(always)]
    pub(super) fn unlink<T>(&mut self, slab: &mut Slab<T>, index: u32, place: u16) {
        let Link {
            deadline_ns,
            next,
            prev,
        } = *slab.link(index);
        debug_assert_eq!(slab.at(index).place, place);
        let slot = &mut self.slots.as_flattened_mut()[place as usize];
        debug_assert!(!slot.is_empty() && (prev != NIL || slot.head == index));
        slot.is_stale |= deadline_ns == slot.min_ns;
        slot.len -= 1;
        if next != NIL {
            debug_assert_eq!(slab.at(next).place, place);
            slab.link_mut(next).prev = prev;
        } else {
            slot.tail = prev;
        }
        if prev != NIL {
            debug_assert_eq!(slab.at(prev).place, place);
            slab.link_mut(prev).next = next;
        } else {
            slot.head = next;
            if next == NIL {
                *slot = Slot::EMPTY;
                self.clear_bit(place);
            }
        }
    }

    /// Gives a listed record a new deadline where it is, if its slot is not behind that deadline's.
    /// The caller writes the record.
    #[inline]
    pub(super) fn can_keep(
        &mut self,
        place: u16,
        cursor: Tick,
        old_ns: u64,
        deadline_ns: u64,
    ) -> bool {
        let at = Self::position_of(place, cursor);
        let tick = Tick::of(deadline_ns);
        // What is never due must not stay in a list, or there would be a next expiry.
        if tick < Self::start(at) || deadline_ns == NEVER {
            return false;
        }
        let is_inside = Self::covers(at, deadline_ns);
        let slot = &mut self.slots.as_flattened_mut()[place as usize];
        if deadline_ns <= slot.min_ns {
            // Not below the start of the slot, hence inside it.
            debug_assert!(is_inside);
            slot.set_min(deadline_ns);
        } else if old_ns == slot.min_ns && deadline_ns != old_ns {
            slot.is_stale = true;
        }
        true
    }

    /// The first occupied slot of each level with timers, from the top level down.
    #[inline]
    pub(super) fn first_slots(&self, cursor: Tick) -> impl Iterator<Item = Position> + '_ {
        let mut left = self.active;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let level = left.ilog2() as u8;
                left ^= 1 << level;
                self.first_slot(level, cursor)
            })
        })
    }

    /// The first occupied slot after the cursor's on a level that has timers.
    #[inline]
    pub(super) fn first_slot(&self, level: u8, cursor: Tick) -> Position {
        debug_assert_ne!(self.active >> level & 1, 0);
        let (next, occupied) = self.ahead(level, cursor);
        Position {
            level,
            number: next + u64::from(occupied.trailing_zeros()),
        }
    }

    /// The occupied slots of a level, from the cursor on.
    #[inline]
    pub(super) fn slots(&self, level: u8, cursor: Tick) -> impl Iterator<Item = Position> + use<> {
        let (next, mut occupied) = self.ahead(level, cursor);
        std::iter::from_fn(move || {
            let number = next + u64::from(occupied.trailing_zeros());
            let is_there = occupied != 0;
            occupied &= occupied.wrapping_sub(1);
            is_there.then_some(Position { level, number })
        })
    }

    /// The slot after the cursor's, and a bit for each occupied one from there on.
    #[inline]
    fn ahead(&self, level: u8, cursor: Tick) -> (u64, u64) {
        let next = cursor.slot(tick_bits(level)) + 1;
        let (occupied, place) = (self.occupied[level as usize], next as usize % SLOTS);
        let round = occupied >> place | occupied << 1 << (SLOTS - 1 - place);
        (next, round & (u64::MAX >> (u64::BITS as usize - SLOTS)))
    }

    /// The tick a slot begins with.
    #[inline]
    pub(super) fn start(at: Position) -> Tick {
        Tick::first_of(at.number, tick_bits(at.level))
    }

    /// The first and the last nanosecond of a slot.
    #[inline]
    pub(super) fn interval(at: Position) -> (u64, u64) {
        let start = Self::start(at);
        let last = start.last_of_slot(tick_bits(at.level));
        (start.begin_ns(), last.last_ns())
    }

    /// Whether no slot lies between this one and the cursor's.
    #[inline]
    pub(super) fn is_next(at: Position, cursor: Tick) -> bool {
        at.number == cursor.slot(tick_bits(at.level)) + 1
    }

    #[inline]
    pub(super) fn slot(&self, at: Position) -> &Slot {
        &self.slots.as_flattened()[Self::place(at)]
    }

    /// Drops `taken` records from the ends of a slot's list, of which those from `head` to `tail` are
    /// left. They are no longer the slot's: their links now mean something else.
    pub(super) fn cut<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        taken: u32,
        (head, tail): (u32, u32),
    ) {
        let place = Self::place(at);
        let slot = &mut self.slots.as_flattened_mut()[place];
        debug_assert!(taken <= slot.len);
        if taken == slot.len {
            *slot = Slot::EMPTY;
            self.clear_bit(place as u16);
        } else {
            slot.head = head;
            slot.tail = tail;
            slot.len -= taken;
            slab.link_mut(tail).next = NIL;
            slab.link_mut(head).prev = NIL;
            slot.is_stale = true;
        }
    }

    /// Whether a deadline lies in the interval of the slot.
    #[inline]
    pub(super) fn covers(at: Position, deadline_ns: u64) -> bool {
        Tick::of(deadline_ns).slot(tick_bits(at.level)) == at.number
    }

    /// States the earliest deadline of a slot anew.
    pub(super) fn set_min(&mut self, at: Position, min_ns: u64) {
        debug_assert!(Self::covers(at, min_ns));
        let slot = &mut self.slots.as_flattened_mut()[Self::place(at)];
        slot.set_min(min_ns);
    }

    #[inline]
    fn set_bit(&mut self, place: u16) {
        let (level, slot) = split(place);
        self.occupied[level as usize] |= 1 << slot;
        self.active |= 1 << level;
    }

    #[inline]
    fn clear_bit(&mut self, place: u16) {
        let (level, slot) = split(place);
        let occupied = &mut self.occupied[level as usize];
        *occupied &= !(1 << slot);
        self.active &= !(u64::from(*occupied == 0) << level);
    }

    /// Where in `slots` a slot is.
    #[inline]
    fn place(at: Position) -> usize {
        at.level as usize * SLOTS + at.number as usize % SLOTS
    }

    /// The one slot at that place which is ahead of the cursor.
    #[inline]
    fn position_of(place: u16, cursor: Tick) -> Position {
        let (level, slot) = split(place);
        let cursor = cursor.slot(tick_bits(level));
        let distance = u64::from(slot).wrapping_sub(cursor) % SLOTS as u64;
        debug_assert_ne!(distance, 0, "the cursor's slot is empty");
        Position {
            level,
            number: cursor + distance,
        }
    }
}

/// The level of a place, and which of its slots is there.
#[inline]
fn split(place: u16) -> (u8, u16) {
    ((place >> SLOTS_BITS) as u8, place % SLOTS as u16)
}

/// Ticks to a slot of a level, as a power of two.
#[inline]
pub(super) fn tick_bits(level: u8) -> u32 {
    u32::from(level) * RATIO_BITS
}

/// Levels, of which the last reaches the last tick.
pub(crate) const LEVELS: usize = (Tick::BITS - SLOTS_BITS).div_ceil(RATIO_BITS) as usize + 1;

/// Slots to a level.
pub(super) const SLOTS: usize = 1 << SLOTS_BITS;
/// Next to none where histories are to move timers all the time.
const SLOTS_BITS: u32 = if cfg!(any(fuzzing, small_wheel)) {
    2
} else {
    6
};
/// Slots of a level to one of the next, as a power of two: a level reaches over two of those.
pub(super) const RATIO_BITS: u32 = SLOTS_BITS - 1;
