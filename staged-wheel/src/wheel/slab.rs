//! The records of all timers, in pages of 256 that never move.
//!
//! ```text
//!   page table            page 0: records (8 KiB)     page 1          page 2: given back
//!   ┌──────────┐          ┌────┬────┬────┬─ ─ ─       ┌────┬─ ─ ─     floor = 7: the lowest
//!   │ 0: room  │─────────▶│ ▓▓ │free│free│            │ ▓▓ │          generation that was
//!   │ 1: full  │          └────┴────┴────┴─ ─ ─       └────┴─ ─ ─     never handed out
//!   │ 2: away  │          ┌──┬──┬──┬─ ─ ─
//!   └──────────┘          │  │ ─┼▶ │   links (4 KiB): lists of slots
//!                         └──┴──┴──┴─ ─ ─
//! ```
//!
//! Every page has its own free list and the pages with room are linked, the one of the last cancel
//! in front: a timer armed after a cancel gets the record that is still in the cache, and a page
//! that has become empty can leave without a walk over the free lists of other pages.
//!
//! Invariants: live + free + retired records make up each page; a page is in the room list
//! exactly when `free` names a record; a page's floor is above every generation handed out for it
//! before it left. Arm and release are O(1); only opening a page calls the allocator.

#[cfg(any(test, fuzzing))]
mod tests;

use std::num::NonZeroU32;

use super::entry::{
    FiredRecord, Link, NIL, PAGE, PAGE_BITS, Record, RecordState, TimerHandle, split,
};
use super::page_table::{FULL, Page, PageList};
use crate::prefetch::prefetch;

const FIRST_GENERATION: u32 = 1;
/// Page numbers end here, far from an index that would be [`NIL`].
const PAGES_MAX: usize = (1 << 30) >> PAGE_BITS;

#[derive(Debug)]
pub(super) struct Slab<T> {
    /// By page number.
    table: Vec<Page<T>>,
    /// The pages with room.
    room: PageList,
    /// The pages that are away and may come back.
    away: PageList,
    /// Above every generation handed out for a page that is no longer in the table.
    floor_beyond: u32,
    live: usize,
    /// The most that were live at a time when a page filled up, since the last look.
    full_peak: usize,
    resident: usize,
    /// The front page stays in front until it is full, so that the others drain.
    draining: bool,
}

impl<T> Slab<T> {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Slab {
            table: Vec::new(),
            room: PageList { first: NIL },
            away: PageList { first: NIL },
            floor_beyond: FIRST_GENERATION,
            live: 0,
            full_peak: 0,
            resident: 0,
            draining: false,
        }
    }

    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Pages that hold memory.
    pub(super) fn resident_pages(&self) -> usize {
        self.resident
    }

    /// The most timers seen at the moments when a page filled up; starts anew with the present.
    pub(super) fn take_peak(&mut self) -> usize {
        std::mem::replace(&mut self.full_peak, self.live).max(self.live)
    }

    /// Arms a record; the caller has found its place or finds it afterwards.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        seq: u64,
        payload: T,
        place: u16,
        state: RecordState,
        link: Link,
    ) -> TimerHandle {
        if self.room.first == NIL {
            self.open_page();
        }
        let number = self.room.first;
        let page = &mut self.table[number as usize];
        page.live += 1;
        let index = number << PAGE_BITS | page.free;
        let (_, position) = split(index);
        let memory = page.memory.as_deref_mut().expect("it has room");
        let record = &mut memory.records[position];
        page.free = u32::from(record.place);
        memory.links[position] = link;
        record.seq = seq;
        record.place = place;
        record.state = state;
        let none = record.payload.replace(payload);
        debug_assert!(none.is_none());
        // There is nothing to drop, and no code to find that out.
        std::mem::forget(none);
        let generation = record.generation;
        self.live += 1;
        if page.free == FULL {
            self.fill_page(number);
        }
        TimerHandle {
            index,
            generation: NonZeroU32::new(generation).expect("a free record is not retired"),
        }
    }

    /// Ends the timer at `index`, which was cancelled, and hands out its payload: no handle fits
    /// the record from here on. The next timer takes it, while it is in the cache.
    #[inline(always)]
    pub(super) fn release(&mut self, index: u32) -> T {
        self.end::<true>(index)
    }

    /// The same for one of many that fire.
    #[inline(always)]
    pub(super) fn release_fired(&mut self, index: u32) -> T {
        self.end::<false>(index)
    }

    /// The same, with what the queue knew of it.
    #[inline(always)]
    pub(super) fn fire(&mut self, index: u32, deadline_ns: u64) -> FiredRecord<T> {
        let generation = self.at(index).generation;
        FiredRecord {
            index,
            generation,
            deadline_ns,
            payload: self.release_fired(index),
        }
    }

    #[inline(always)]
    fn end<const IS_NEXT: bool>(&mut self, index: u32) -> T {
        let (number, position) = split(index);
        let page = &mut self.table[number];
        page.live -= 1;
        self.live -= 1;
        let memory = page.memory.as_deref_mut().expect("a timer lives on it");
        let record = &mut memory.records[position];
        let payload = record.payload.take();
        let payload = payload.expect("a live record has its payload");
        if record.generation == u32::MAX {
            // One more round and an old handle could fit a new timer: 48 bytes for 4 billion uses.
            record.generation = 0;
            record.state = RecordState::Retired;
            return payload;
        }
        record.generation += 1;
        record.state = RecordState::Free;
        let behind = std::mem::replace(&mut page.free, position as u32);
        record.place = behind as u16;
        if self.room.first != number as u32 {
            self.make_room::<IS_NEXT>(number as u32, behind == FULL);
        }
        payload
    }

    /// The index `handle` names, while its timer lives.
    #[inline(always)]
    pub(super) fn find(&self, handle: TimerHandle) -> Option<u32> {
        let is_alive = self.is_used(handle.index)
            && self.at(handle.index).generation == handle.generation.get();
        is_alive.then_some(handle.index)
    }

    /// The record at an index that a list, a key or [`find`](Self::find) has vouched for.
    #[inline(always)]
    pub(super) fn at(&self, index: u32) -> &Record<T> {
        let (number, position) = split(index);
        &self.table[number].memory().records[position]
    }

    #[inline(always)]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Record<T> {
        let (number, position) = split(index);
        &mut self.table[number].memory_mut().records[position]
    }

    /// The link of the record at such an index.
    #[inline(always)]
    pub(super) fn link(&self, index: u32) -> &Link {
        let (number, position) = split(index);
        &self.table[number].memory().links[position]
    }

    #[inline(always)]
    pub(super) fn link_mut(&mut self, index: u32) -> &mut Link {
        let (number, position) = split(index);
        &mut self.table[number].memory_mut().links[position]
    }

    /// Whether a key made for arm `seq` of the record still stands, the record being in `state`.
    ///
    /// The record may have been released and its page given back since the key was made.
    #[inline(always)]
    pub(super) fn is_current(&self, index: u32, seq: u64, state: RecordState) -> bool {
        self.is_used(index) && self.at(index).seq == seq && self.at(index).state == state
    }

    /// Asks for the record at `index`, which a key names, to be in the cache soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, index: u32) {
        if self.is_used(index) {
            prefetch(self.at(index));
        }
    }

    /// Whether there is such a record, its page being open.
    #[inline(always)]
    fn is_used(&self, index: u32) -> bool {
        self.is_open(split(index).0)
    }

    /// Fill pages one after the other from now on, so that the others become empty.
    pub(super) fn drain_pages(&mut self, draining: bool) {
        self.draining = draining;
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Whether the record lies on a page that had better become empty: it is not the one being
    /// filled, and half of it is free. What was moved to a page that filled up is not moved
    /// again.
    ///
    /// One with a key in run or heap stays: its arming count stays with it, and should it come back
    /// to this index, the key that it left here would stand again.
    pub(super) fn should_move(&self, index: u32) -> bool {
        let (number, _) = split(index);
        self.room.first != number as u32
            && self.room.first != NIL
            && self.table[number].live <= PAGE as u32 / 2
            && !matches!(
                self.at(index).state,
                RecordState::InRun | RecordState::InHeap
            )
    }

    pub(super) fn table_len(&self) -> usize {
        self.table.len()
    }

    /// Gives a page back if it holds memory and no timer lives on it, and says whether it did.
    pub(super) fn give_back(&mut self, number: usize) -> bool {
        let Page {
            live, mut floor, ..
        } = self.table[number];
        if !self.is_open(number) || live > 0 {
            return false;
        }
        let has_room = self.table[number].free != FULL;
        let mut is_spent = false;
        for record in &self.table[number].memory().records {
            // The generation of a free record was never handed out: the highest of them is safe for
            // all. A retired one stays retired, and the number of its page with it.
            floor = floor.max(record.generation);
            is_spent |= record.state == RecordState::Retired;
        }
        let page = &mut self.table[number];
        page.floor = floor;
        page.is_spent = is_spent;
        page.free = FULL;
        page.memory = None;
        if has_room {
            self.room.unlink(&mut self.table, number as u32);
        }
        if !is_spent {
            self.away.link(&mut self.table, number as u32);
        }
        self.resident -= 1;
        true
    }

    /// Drops the end of the page table as far as its pages are away, but not too much at a time.
    pub(super) fn trim_table(&mut self) {
        for _ in 0..TRIM_PER_POLL {
            let Some(last) = self.table.last() else {
                return;
            };
            let number = self.table.len() as u32 - 1;
            if last.is_spent || last.memory.is_some() {
                return;
            }
            self.floor_beyond = self.floor_beyond.max(last.floor);
            self.away.unlink(&mut self.table, number);
            self.table.pop();
            if self.table.capacity() > 4 * self.table.len() {
                self.table.shrink_to(2 * self.table.len());
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn open_page(&mut self) {
        // The population has outgrown the pages at hand: nothing is left to drain.
        self.draining = false;
        let number = if self.away.first != NIL {
            let number = self.away.first;
            self.away.unlink(&mut self.table, number);
            number
        } else {
            assert!(self.table.len() < PAGES_MAX, "more than 2^30 timers");
            self.table.push(Page::away(self.floor_beyond));
            self.table.len() as u32 - 1
        };
        self.table[number as usize].open();
        self.resident += 1;
        self.room.link(&mut self.table, number);
    }

    /// The front page has no room left.
    #[inline]
    fn fill_page(&mut self, number: u32) {
        self.room.unlink(&mut self.table, number);
        self.full_peak = self.full_peak.max(self.live);
    }

    /// A record of a page behind the front one has come free.
    #[inline]
    fn make_room<const IS_NEXT: bool>(&mut self, number: u32, was_full: bool) {
        if was_full {
            self.room.link(&mut self.table, number);
        } else if IS_NEXT && !self.draining {
            self.room.unlink(&mut self.table, number);
            self.room.link(&mut self.table, number);
        }
    }

    /// Ends all timers, as [`release`](Self::release) does one.
    pub(super) fn release_all(&mut self) -> Vec<T> {
        let mut payloads = Vec::with_capacity(self.live);
        for number in 0..self.table.len() {
            for position in 0..PAGE {
                let page = self.table[number].memory.as_deref();
                if page.is_some_and(|it| it.records[position].payload.is_some()) {
                    let index = (number << PAGE_BITS | position) as u32;
                    payloads.push(self.release_fired(index));
                }
            }
        }
        payloads
    }

    #[inline(always)]
    fn is_open(&self, number: usize) -> bool {
        let page = self.table.get(number);
        page.is_some_and(|page| page.memory.is_some())
    }
}

/// Entries of the page table that one poll drops.
const TRIM_PER_POLL: usize = 64;
