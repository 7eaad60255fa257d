//! The levels of the wheel: where a timer waits until its tick is near.
//!
//! Time is cut into ticks of 2^20 ns (1.05 ms). Level 0 has a slot for each of the next 255 ticks,
//! level 1 slots of 128 ticks; the slots of every further level are wider:
//!
//! ```text
//!                cursor
//!   level 0   ─────┤·├─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬─┬ ─ ─ 255 slots of 1 tick: 0.27 s
//!   level 1   ──┤···········├───────────┬───────────┬─ ─ ─ 255 slots of 128 ticks: 34 s
//!   level 2   ┤··············································├─ ─ ─ 31 slots of 2^14 ticks: 9 min
//!   level 3    ...                                         31 slots of 2^18 ticks: 2.4 h
//!     ...            · the cursor's slot: always empty     10 levels: all of u64
//! ```
//!
//! The two lowest levels are wide, so that a timeout of up to 34 s moves once in its life. What
//! waits longer can afford more moves, and narrow levels keep the tables small.
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
//! the list; a record may wait in a slot *before* that of its deadline (it was re-armed to a later one and is placed anew when
//! the slot is emptied), never in one behind.
//!
//! Linking and unlinking touch a record, its neighbours and the slot. The slot width of the design
//! (Varghese and Lauck, SOSP 1987, scheme 7; IEEE/ACM ToN 1997) is theirs, the distance rule and
//! the early moves are what keeps the worst poll short.

#[cfg(any(test, fuzzing))]
mod tests;

use super::entry::{Link, NIL, RecordState};
use super::slab::Slab;
use super::slot::Slot;
use super::tick::{TICK_BITS, Tick};
use crate::epoch::NEVER;

/// The slots in rows of `ROW`: `WIDE` rows for each of the two lowest levels, one for each of the
/// others.
#[derive(Debug)]
pub(super) struct Levels {
    /// A bit for each slot with timers.
    occupied: [u64; ROWS],
    /// A bit for each row with timers.
    rows: u64,
    slots: [[Slot; ROW]; ROWS],
}

/// A slot by level and by how many slots of that width fit between the epoch and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) level: u8,
    pub(super) number: u64,
}

impl Levels {
    pub(super) const LEVELS: usize = ROWS - 2 * WIDE + 2;

    /// Ticks to a slot of level 1, as a power of two.
    pub(super) const COARSE_BITS: u32 = Self::SPANS[1].tick_bits as u32;

    /// By level. As long as a byte reaches, so that no index is checked.
    const SPANS: [Span; 256] = {
        assert!(ROW.is_power_of_two() && ROW >= 4 && ROW <= 64);
        assert!(WIDE.is_power_of_two() && ROWS >= 2 * WIDE && ROWS < 64);
        assert!(Self::LEVELS <= 64 && ROW * ROWS <= u16::MAX as usize);
        let mut spans = [Span::NONE; 256];
        let (mut first, mut tick_bits) = (0, 0);
        let mut level = 0;
        while level < Self::LEVELS {
            let slots = ROW * if level < 2 { WIDE } else { 1 };
            spans[level] = Span {
                first: first as u16,
                mask: slots as u16 - 1,
                tick_bits: tick_bits as u8,
            };
            first += slots;
            // One bit less than the slots have: two slots of a level span the level below.
            tick_bits += slots.trailing_zeros() - 1;
            level += 1;
        }
        assert!(
            spans[Self::LEVELS - 1].bits() >= u64::BITS - TICK_BITS,
            "the top level must reach the last tick without wrapping round",
        );
        assert!(
            spans[1].tick_bits as u32 + TICK_BITS <= u32::BITS,
            "the keys of a run reach over the ticks of a slot of level 1",
        );
        spans
    };

    /// The lowest level that reaches as far as a distance with so many leading zeros.
    const LEVEL_BY_ZEROS: [u8; 65] = {
        let mut levels = [0; 65];
        let mut bits = 0;
        while bits <= u64::BITS - TICK_BITS {
            let mut level = 0;
            while bits > Self::SPANS[level].bits() {
                level += 1;
            }
            levels[(u64::BITS - bits) as usize] = level as u8;
            bits += 1;
        }
        levels
    };

    pub(super) fn new() -> Self {
        Levels {
            occupied: [0; ROWS],
            rows: 0,
            slots: [[Slot::EMPTY; ROW]; ROWS],
        }
    }

    /// Where a timer due in `tick` belongs while the cursor is at `cursor`, an earlier tick.
    #[inline]
    pub(super) fn position(cursor: Tick, tick: Tick) -> Position {
        debug_assert!(tick > cursor);
        let zeros = tick.since(cursor).leading_zeros();
        let level = Self::LEVEL_BY_ZEROS[zeros as usize];
        let span = Self::SPANS[level as usize];
        let distance = tick.slot(span.bits_of_slot()) - cursor.slot(span.bits_of_slot());
        // The distance may fit in ticks but straddle one slot border too many. No branch: half of
        // the timers would take it.
        let level = level + u8::from(distance > u64::from(span.mask));
        Position {
            level,
            number: tick.slot(Self::SPANS[level as usize].bits_of_slot()),
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
        slot.enter(deadline_ns);
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
            slot.mark_stale();
        }
        true
    }

    /// The first occupied slot of each level with timers, from the top level down.
    #[inline]
    pub(super) fn first_slots(&self, cursor: Tick) -> impl Iterator<Item = Position> + '_ {
        let mut left = self.active();
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let level = left.ilog2() as u8;
                left ^= 1 << level;
                self.first_slot(level, cursor)
            })
        })
    }

    /// The levels with timers, a bit each.
    #[inline]
    pub(super) fn active(&self) -> u64 {
        let wide = (1 << WIDE) - 1;
        let (zero, one) = (self.rows & wide, self.rows >> WIDE & wide);
        u64::from(zero != 0) | u64::from(one != 0) << 1 | self.rows >> (2 * WIDE) << 2
    }

    /// The first occupied slot after the cursor's on a level that has timers.
    #[inline]
    pub(super) fn first_slot(&self, level: u8, cursor: Tick) -> Position {
        debug_assert_ne!(self.active() >> level & 1, 0);
        let span = Self::SPANS[level as usize];
        let next = cursor.slot(span.bits_of_slot()) + 1;
        // The rest of the first row, the other rows, and the begin of the first.
        let place = span.place(next);
        let mut occupied = self.occupied[place / ROW] >> (place % ROW);
        let mut number = next;
        if occupied == 0 {
            number -= (place % ROW) as u64;
            while occupied == 0 {
                number += ROW as u64;
                occupied = self.occupied[span.place(number) / ROW];
            }
        }
        Position {
            level,
            number: number + u64::from(occupied.trailing_zeros()),
        }
    }

    /// The occupied slots of a level, from the cursor on.
    #[inline]
    pub(super) fn slots(&self, level: u8, cursor: Tick) -> impl Iterator<Item = Position> + '_ {
        let span = Self::SPANS[level as usize];
        let cursor = cursor.slot(span.bits_of_slot());
        let last = cursor + u64::from(span.mask);
        let place = span.place(cursor + 1);
        let mut row = cursor + 1 - (place % ROW) as u64;
        let mut occupied = self.occupied[place / ROW] & (!0 << (place % ROW));
        std::iter::from_fn(move || {
            while occupied == 0 && row + ROW as u64 <= last {
                row += ROW as u64;
                occupied = self.occupied[span.place(row) / ROW];
            }
            let number = row + u64::from(occupied.trailing_zeros());
            let is_there = occupied != 0 && number <= last;
            occupied &= occupied.wrapping_sub(1);
            is_there.then_some(Position { level, number })
        })
    }

    /// The tick a slot begins with.
    #[inline]
    pub(super) fn start(at: Position) -> Tick {
        Tick::first_of(at.number, Self::SPANS[at.level as usize].bits_of_slot())
    }

    /// The last tick of a slot.
    #[inline]
    pub(super) fn last(at: Position) -> Tick {
        Self::start(at).last_of_slot(Self::SPANS[at.level as usize].bits_of_slot())
    }

    /// The first and the last nanosecond of a slot.
    #[inline]
    pub(super) fn interval(at: Position) -> (u64, u64) {
        (Self::start(at).begin_ns(), Self::last(at).last_ns())
    }

    /// Whether no slot lies between this one and the cursor's.
    #[inline]
    pub(super) fn is_next(at: Position, cursor: Tick) -> bool {
        at.number == cursor.slot(Self::SPANS[at.level as usize].bits_of_slot()) + 1
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
        debug_assert!(taken <= slot.len());
        if taken == slot.len() {
            *slot = Slot::EMPTY;
            self.clear_bit(place as u16);
        } else {
            slot.head = head;
            slot.tail = tail;
            slot.count -= taken;
            slab.link_mut(tail).next = NIL;
            slab.link_mut(head).prev = NIL;
            slot.mark_stale();
        }
    }

    /// Whether a deadline lies in the interval of the slot.
    #[inline]
    pub(super) fn covers(at: Position, deadline_ns: u64) -> bool {
        Tick::of(deadline_ns).slot(Self::SPANS[at.level as usize].bits_of_slot()) == at.number
    }

    /// States the earliest deadline of a slot anew.
    pub(super) fn set_min(&mut self, at: Position, min_ns: u64) {
        debug_assert!(Self::covers(at, min_ns));
        let slot = &mut self.slots.as_flattened_mut()[Self::place(at)];
        slot.set_min(min_ns);
    }

    #[inline]
    fn set_bit(&mut self, place: u16) {
        let row = place as usize / ROW;
        self.occupied[row] |= 1 << (place as usize % ROW);
        self.rows |= 1 << row;
    }

    #[inline]
    fn clear_bit(&mut self, place: u16) {
        let row = place as usize / ROW;
        self.occupied[row] &= !(1 << (place as usize % ROW));
        if self.occupied[row] == 0 {
            self.rows &= !(1 << row);
        }
    }

    /// Where in `slots` a slot is.
    #[inline]
    fn place(at: Position) -> usize {
        Self::SPANS[at.level as usize].place(at.number)
    }

    #[inline]
    fn level(place: usize) -> u8 {
        let row = place / ROW;
        let level = if row < 2 * WIDE {
            row / WIDE
        } else {
            row - 2 * WIDE + 2
        };
        level as u8
    }

    /// The one slot at that place which is ahead of the cursor.
    #[inline]
    fn position_of(place: u16, cursor: Tick) -> Position {
        let level = Self::level(place as usize);
        let span = Self::SPANS[level as usize];
        let cursor = cursor.slot(span.bits_of_slot());
        let distance = u64::from(place - span.first).wrapping_sub(cursor) & u64::from(span.mask);
        debug_assert_ne!(distance, 0, "the cursor's slot is empty");
        Position {
            level,
            number: cursor + distance,
        }
    }
}

const ROW: usize = if SMALL { 4 } else { 32 };
const WIDE: usize = if SMALL { 2 } else { 8 };
const ROWS: usize = if SMALL { 43 } else { 24 };
/// Levels so small that timers move all the time.
const SMALL: bool = cfg!(any(fuzzing, small_wheel));

/// What a level covers.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
struct Span {
    /// The place of its first slot.
    first: u16,
    /// Its slots less one: a power of two less one.
    mask: u16,
    /// Ticks to a slot, as a power of two.
    tick_bits: u8,
}

impl Span {
    const NONE: Span = Span {
        first: 0,
        mask: 0,
        tick_bits: 0,
    };

    #[inline]
    fn bits_of_slot(self) -> u32 {
        u32::from(self.tick_bits)
    }

    /// How many bits of a distance in ticks the level reaches over.
    const fn bits(self) -> u32 {
        self.mask.count_ones() + self.tick_bits as u32
    }

    #[inline]
    fn place(self, number: u64) -> usize {
        usize::from(self.first) + usize::from(number as u16 & self.mask)
    }
}
