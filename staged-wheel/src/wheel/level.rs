//! The levels of the wheel: where a timer waits until it is near.
//!
//! A level has 64 slots, and those of each level are 32 times as wide as those of the one below, from a microsecond
//! on:
//!
//! ```text
//!               cursor
//!   level 0   ────┤·├─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬ ─ ─ 64 slots of 1 µs
//!   level 1   ─┤······├───────┬───────┬───────┬─ ─ ─ ─ ─ 64 slots of 33 µs
//!   level 2   ┤·······························├─ ─ ─ ─ ─ 64 slots of 1 ms
//!   level 3    ...                                       64 slots of 34 ms
//!   level 4    ...                                       64 slots of 1.07 s
//!     ...          · the slot of the cursor              11 levels: all of u64
//! ```
//!
//! A timer goes to the lowest level where its slot is ahead of the cursor's by less than the level
//! has slots, or is the cursor's own. So nothing ever wraps round, the slots of a level are disjoint and ascending from
//! the cursor, and the first occupied one holds the level's earliest timer. And since a level spans two
//! slots of the one above, the cursor's slot and the next one of a level can be moved down at any time, piece by piece.
//!
//! Invariants: a bit is set exactly when its list is not empty, the count is the list's length, the
//! links agree both ways; `min_ns` lies in the slot's interval and is no later than any deadline in
//! the list, which is in the order of firing unless the slot says otherwise; no slot ends before the cursor; a record may
//! wait in a slot *before* that of its deadline (it was re-armed to a later one and is placed anew when
//! the slot is emptied), never in one behind.
//!
//! Linking and unlinking touch a record, its neighbours and the slot. Levels of slots, each wider than those below, are
//! from Varghese and Lauck (SOSP 1987, scheme 7; IEEE/ACM ToN 1997).

use super::super::tuning::{FINEST_BITS, SLOT_BITS};
#[cfg(any(test, fuzzing))]
use super::entry::Order;
use super::entry::{Link, NIL, RecordState};
use super::slab::Slab;
use super::slot::Slot;
use crate::epoch::NEVER;

/// The slots of all levels, from the lowest on.
#[derive(Debug)]
pub(super) struct Levels {
    /// A bit for each slot with timers, by level.
    occupied: [u64; Self::LEVELS],
    /// A bit for each level with timers.
    active: u64,
    slots: [[Slot; SLOTS]; Self::LEVELS],
}

const SLOTS: usize = 1 << SLOT_BITS;
/// How much wider the slots of the next level are: two of them span this level.
const STEP_BITS: u32 = SLOT_BITS - 1;

/// A slot by level and by how many slots of that width fit between the epoch and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) level: u8,
    pub(super) number: u64,
}

/// The slot that may have the first timer of all lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct First {
    pub(super) at: Position,
    /// No timer of a list is due before; [`NEVER`] if there is none.
    pub(super) min_ns: u64,
    /// Nor is one of another slot before this.
    pub(super) other_ns: u64,
}

impl Levels {
    /// The top level reaches the last nanosecond without wrapping round.
    pub(super) const LEVELS: usize =
        (u64::BITS - FINEST_BITS - SLOT_BITS).div_ceil(STEP_BITS) as usize + 1;

    pub(super) fn new() -> Self {
        Levels {
            occupied: [0; Self::LEVELS],
            active: 0,
            slots: [[Slot::EMPTY; SLOTS]; Self::LEVELS],
        }
    }

    /// Where a timer due at `deadline_ns` belongs while the cursor is at `cursor_ns`, which is no later.
    #[inline]
    pub(super) fn position(cursor_ns: u64, deadline_ns: u64) -> Position {
        debug_assert!(deadline_ns >= cursor_ns);
        let distance = (deadline_ns >> FINEST_BITS) - (cursor_ns >> FINEST_BITS);
        // The lowest level that reaches so far.
        let bits = (u64::BITS - distance.leading_zeros()).max(SLOT_BITS);
        let level = ((bits - 2) / STEP_BITS) as u8;
        let slots = (deadline_ns >> width_bits(level)) - (cursor_ns >> width_bits(level));
        // The distance may fit but straddle one slot border too many. No branch: half of the timers would take it.
        let level = level + u8::from(slots >= SLOTS as u64);
        Position {
            level,
            number: deadline_ns >> width_bits(level),
        }
    }

    /// The place of a slot, and behind which record the next one goes. The caller writes the record, then
    /// [`attach`](Self::attach)es it.
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
        slot.enter(deadline_ns);
        if tail == NIL {
            slot.head = index;
            self.set_bit(place);
        } else {
            let last = slab.link_mut(tail);
            last.next = index;
            slot.mark_unordered(last.deadline_ns > deadline_ns);
        }
    }

    /// Appends a record that is in no list to that of the slot its deadline belongs to.
    #[inline]
    pub(super) fn link<T>(&mut self, slab: &mut Slab<T>, index: u32, cursor_ns: u64) {
        let deadline_ns = slab.link(index).deadline_ns;
        let (place, tail) = self.tail(Self::position(cursor_ns, deadline_ns));
        let link = slab.link_mut(index);
        link.next = NIL;
        link.prev = tail;
        let record = slab.at_mut(index);
        record.place = place;
        record.state = RecordState::Listed;
        let seq = record.seq;
        self.attach(slab, index, (place, tail), deadline_ns);
        // Of two that are due at the same time, the first to be armed must come first.
        if tail != NIL && slab.link(tail).deadline_ns == deadline_ns && slab.at(tail).seq > seq {
            self.mark_unordered(place);
        }
    }

    /// The list at `place` is not in the order of firing any more.
    #[inline]
    pub(super) fn mark_unordered(&mut self, place: u16) {
        self.slots.as_flattened_mut()[place as usize].mark_unordered(true);
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
        slot.leave(deadline_ns);
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
                self.clear(place);
            }
        }
    }

    /// Gives a listed record a new deadline where it is, if its slot is not behind that deadline's.
    /// The caller writes the record, and marks the list.
    #[inline]
    pub(super) fn can_keep(
        &mut self,
        place: u16,
        cursor_ns: u64,
        old_ns: u64,
        deadline_ns: u64,
    ) -> bool {
        let (begin_ns, _) = Self::interval(Self::position_of(place, cursor_ns));
        // What is never due must not stay in a list, or there would be a next expiry.
        if deadline_ns < begin_ns || deadline_ns == NEVER {
            return false;
        }
        let slot = &mut self.slots.as_flattened_mut()[place as usize];
        if deadline_ns <= slot.min_ns {
            slot.set_min(deadline_ns);
        } else if old_ns == slot.min_ns {
            slot.mark_stale();
        }
        true
    }

    /// The levels with timers, from the lowest on.
    #[inline]
    pub(super) fn levels(&self) -> impl Iterator<Item = u8> + use<> {
        let mut left = self.active;
        std::iter::from_fn(move || {
            let level = left.trailing_zeros() as u8;
            let is_there = left != 0;
            left &= left.wrapping_sub(1);
            is_there.then_some(level)
        })
    }

    /// Which slot may have the first timer of all.
    #[inline]
    pub(super) fn first(&self, cursor_ns: u64) -> First {
        let at = Position {
            level: 0,
            number: 0,
        };
        let (min_ns, other_ns) = (NEVER, NEVER);
        let mut first = First {
            at,
            min_ns,
            other_ns,
        };
        for level in self.levels() {
            let at = self.first_slot(level, cursor_ns);
            let min_ns = self.slot(at).min_ns;
            if min_ns < first.min_ns {
                let other_ns = first.min_ns;
                first = First {
                    at,
                    min_ns,
                    other_ns,
                };
            } else {
                first.other_ns = first.other_ns.min(min_ns);
            }
        }
        first
    }

    /// The first occupied slot of a level that has timers.
    #[inline]
    pub(super) fn first_slot(&self, level: u8, cursor_ns: u64) -> Position {
        let occupied = self.occupied[level as usize];
        debug_assert_ne!(occupied, 0);
        let cursor = cursor_ns >> width_bits(level);
        let bit = cursor as u32 % SLOTS as u32;
        // From the cursor's on, and then from the first bit.
        let ahead = match occupied >> bit {
            0 => SLOTS as u32 - bit + occupied.trailing_zeros(),
            later => later.trailing_zeros(),
        };
        Position {
            level,
            number: cursor + u64::from(ahead),
        }
    }

    /// The first and the last nanosecond of a slot.
    #[inline]
    pub(super) fn interval(at: Position) -> (u64, u64) {
        let begin_ns = at.number << width_bits(at.level);
        (begin_ns, begin_ns | ((1 << width_bits(at.level)) - 1))
    }

    /// The cursor's slot of a level, and the next: all of them fits the level below.
    #[inline]
    pub(super) fn near(level: u8, cursor_ns: u64) -> [Position; 2] {
        let number = cursor_ns >> width_bits(level);
        [number, number + 1].map(|number| Position { level, number })
    }

    /// Whether all of a slot fits the level below: it is the cursor's or the next one.
    #[inline]
    pub(super) fn is_near(at: Position, cursor_ns: u64) -> bool {
        at.level > 0 && at.number <= (cursor_ns >> width_bits(at.level)) + 1
    }

    #[inline]
    pub(super) fn slot(&self, at: Position) -> &Slot {
        &self.slots.as_flattened()[Self::place(at)]
    }

    /// Drops `taken` records from the front of a slot's list, of which the first that is left is `head`. They are no longer
    /// the slot's: their links now mean something else.
    pub(super) fn cut<T>(&mut self, slab: &mut Slab<T>, at: Position, taken: usize, head: u32) {
        let place = Self::place(at);
        if head == NIL {
            return self.clear(place as u16);
        }
        let slot = &mut self.slots.as_flattened_mut()[place];
        debug_assert!(taken < slot.len());
        slot.head = head;
        slot.count -= taken as u32;
        let link = slab.link_mut(head);
        link.prev = NIL;
        if slot.is_in_order() {
            slot.set_min(link.deadline_ns);
        } else {
            slot.mark_stale();
        }
    }

    /// States the earliest deadline of a slot anew.
    pub(super) fn set_min(&mut self, at: Position, min_ns: u64) {
        self.slots.as_flattened_mut()[Self::place(at)].set_min(min_ns);
    }

    #[inline]
    fn set_bit(&mut self, place: u16) {
        let level = place >> SLOT_BITS;
        self.occupied[level as usize] |= 1 << (place as usize % SLOTS);
        self.active |= 1 << level;
    }

    /// The list at `place` is empty.
    #[inline]
    fn clear(&mut self, place: u16) {
        self.slots.as_flattened_mut()[place as usize] = Slot::EMPTY;
        let level = place >> SLOT_BITS;
        let occupied = &mut self.occupied[level as usize];
        *occupied &= !(1 << (place as usize % SLOTS));
        self.active &= !(u64::from(*occupied == 0) << level);
    }

    /// Where in `slots` a slot is.
    #[inline]
    fn place(at: Position) -> usize {
        (usize::from(at.level) << SLOT_BITS) | (at.number as usize % SLOTS)
    }

    /// The one slot at that place which is not behind the cursor.
    #[inline]
    fn position_of(place: u16, cursor_ns: u64) -> Position {
        let level = (place >> SLOT_BITS) as u8;
        let cursor = cursor_ns >> width_bits(level);
        let distance = u64::from(place).wrapping_sub(cursor) % SLOTS as u64;
        Position {
            level,
            number: cursor + distance,
        }
    }

    /// Asserts the invariants of the module and returns how many records are listed.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(
        &self,
        slab: &Slab<T>,
        cursor_ns: u64,
        listed_from: Order,
    ) -> usize {
        let mut listed = 0;
        for (place, slot) in self.slots.as_flattened().iter().enumerate() {
            let (level, bit) = (place >> SLOT_BITS, place % SLOTS);
            let is_occupied = self.occupied[level] >> bit & 1 == 1;
            assert_eq!(self.occupied[level] != 0, self.active >> level & 1 == 1);
            assert_eq!(is_occupied, !slot.is_empty());
            if !is_occupied {
                assert_eq!(({ slot.head }, { slot.tail }, slot.len()), (NIL, NIL, 0));
                continue;
            }
            let at = Self::position_of(place as u16, cursor_ns);
            assert_eq!(Self::place(at), place);
            let (begin_ns, last_ns) = Self::interval(at);
            assert!((begin_ns..=last_ns).contains(&{ slot.min_ns }));
            let mut count = 0;
            let mut has_min = false;
            let mut last = Order::first_at(0);
            let (mut prev, mut index) = (NIL, slot.head);
            while index != NIL {
                let record = slab.at(index);
                assert_eq!(record.state, RecordState::Listed);
                assert_eq!(record.place as usize, place);
                let link = *slab.link(index);
                assert_eq!(link.prev, prev);
                assert!(link.deadline_ns >= slot.min_ns);
                let order = Order {
                    deadline_ns: link.deadline_ns,
                    seq: record.seq,
                };
                assert!(order >= listed_from);
                let is_inside = link.deadline_ns <= last_ns;
                assert!((order >= last && is_inside) || !slot.is_in_order());
                last = order;
                has_min |= link.deadline_ns == slot.min_ns;
                (prev, index) = (index, link.next);
                count += 1;
                assert!(count <= slot.len(), "a circle of records");
            }
            assert_eq!({ slot.tail }, prev);
            assert_eq!(slot.len(), count);
            assert!(has_min || slot.is_stale());
            listed += count;
        }
        listed
    }
}

/// Nanoseconds to a slot, as a power of two.
#[inline]
fn width_bits(level: u8) -> u32 {
    FINEST_BITS + STEP_BITS * u32::from(level)
}
