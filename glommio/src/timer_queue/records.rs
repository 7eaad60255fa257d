//! The records of all timers, in pages of 1024 that never move.
//!
//! ```text
//!   page table            page 0 (32 KiB)             page 1          page 2: given back
//!   ┌──────────┐          ┌────┬────┬────┬─ ─ ─       ┌────┬─ ─ ─     floor = 7: the lowest
//!   │ 0: room  │─────────▶│ ▓▓ │free│free│            │ ▓▓ │          generation that was
//!   │ 1: full  │          └────┴─┬──┴─▲──┴─ ─ ─       └────┴─ ─ ─     never handed out
//!   │ 2: away  │                 └────┘
//!   └──────────┘   free list of the page, last in first out
//! ```
//!
//! Every page has its own free list and the pages with room are linked, the one touched last in front:
//! a timer armed after a cancel gets the record that is still in the cache, and a page that has become
//! empty can leave without a walk over anybody's free list. A page grows record by record up to its
//! capacity, so that a queue of ten timers touches ten records and not the whole page.
//!
//! Invariants: live + free + retired records make up each page; a page is in the room list exactly
//! when it has a free record or is not filled up; a page's floor is above every generation handed out
//! for it before it left. Arm and release are O(1); only opening a page calls the allocator.

use std::num::NonZeroU32;

use super::entry::{NIL, Record, State, TimerHandle};

/// Records to a page.
pub(super) const PAGE: usize = 1 << PAGE_BITS;
const PAGE_BITS: u32 = 10;
const FIRST_GENERATION: u32 = 1;
/// Page numbers end here, so that [`NIL`] is nobody's index.
const PAGES_MAX: usize = (NIL >> PAGE_BITS) as usize;

#[derive(Debug)]
pub(super) struct Records {
    /// The records of each page; a page that is away has no capacity.
    pages: Vec<Vec<Record>>,
    table: Vec<Page>,
    /// The pages with room.
    room: PageList,
    /// The pages that are away and may come back.
    away: PageList,
    /// Above every generation handed out for a page that is no longer in the table.
    floor_beyond: u32,
    live: usize,
    resident: usize,
    /// The front page stays in front until it is full, so that the others drain.
    draining: bool,
}

/// What is known of a page without touching it.
#[derive(Debug)]
struct Page {
    /// First free record, as a position in the page.
    free: u32,
    live: u32,
    /// Neighbours in the list of pages that this one is in.
    prev: u32,
    next: u32,
    /// Generation of a record that is pushed to this page.
    floor: u32,
    /// Away for good: one of its records has used up all generations.
    is_spent: bool,
}

/// Pages linked both ways through the table.
#[derive(Debug)]
struct PageList {
    first: u32,
}

impl Records {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Records {
            pages: Vec::new(),
            table: Vec::new(),
            room: PageList { first: NIL },
            away: PageList { first: NIL },
            floor_beyond: FIRST_GENERATION,
            live: 0,
            resident: 0,
            draining: false,
        }
    }

    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Pages that hold memory.
    pub(super) fn resident_pages(&self) -> usize {
        self.resident
    }

    /// The page that the next record comes from, opened if need be.
    #[inline]
    pub(super) fn page_with_room(&mut self) -> usize {
        if self.room.first == NIL {
            self.open_page();
        }
        self.room.first as usize
    }

    /// Takes a record from `page`, which has room. It is nowhere yet: the caller places it.
    #[inline]
    pub(super) fn take(&mut self, page: usize, deadline_ns: u64, seq: u64) -> TimerHandle {
        let records = &mut self.pages[page];
        let meta = &mut self.table[page];
        let local = meta.free;
        let (local, generation) = if local != NIL {
            let record = &mut records[local as usize];
            debug_assert_eq!(record.state, State::Free);
            meta.free = record.next;
            record.deadline_ns = deadline_ns;
            record.seq = seq;
            record.state = State::Parked;
            (local, record.generation)
        } else {
            let local = records.len() as u32;
            records.push(Record {
                deadline_ns,
                seq,
                next: NIL,
                prev: NIL,
                generation: meta.floor,
                place: 0,
                state: State::Parked,
            });
            (local, meta.floor)
        };
        meta.live += 1;
        let is_full = meta.free == NIL && records.len() == PAGE;
        self.live += 1;
        if is_full {
            self.room.unlink(&mut self.table, page as u32);
        }
        TimerHandle {
            index: (page as u32) << PAGE_BITS | local,
            generation: NonZeroU32::new(generation).expect("free records are not retired"),
        }
    }

    /// Ends the timer at `index`: no handle fits the record from here on.
    #[inline]
    pub(super) fn release(&mut self, index: u32) {
        let (page, local) = split(index);
        let records = &mut self.pages[page];
        let meta = &mut self.table[page];
        let had_room = meta.free != NIL || records.len() < PAGE;
        let record = &mut records[local];
        meta.live -= 1;
        self.live -= 1;
        if record.generation == u32::MAX {
            // One more round and an old handle could fit a new timer: 48 bytes for 4 billion uses.
            record.generation = 0;
            record.state = State::Retired;
            return;
        }
        record.generation += 1;
        record.state = State::Free;
        record.next = meta.free;
        meta.free = local as u32;
        if self.room.first == page as u32 {
            return;
        }
        if !had_room {
            self.room.link(&mut self.table, page as u32);
        } else if !self.draining {
            self.room.unlink(&mut self.table, page as u32);
            self.room.link(&mut self.table, page as u32);
        }
    }

    /// The index `handle` names, while its timer lives.
    #[inline]
    pub(super) fn find(&self, handle: TimerHandle) -> Option<u32> {
        let (page, local) = split(handle.index);
        let record = self.pages.get(page)?.get(local)?;
        (record.generation == handle.generation.get()).then_some(handle.index)
    }

    /// The record at an index that a list, a key or [`find`](Self::find) has vouched for.
    #[inline]
    pub(super) fn at(&self, index: u32) -> &Record {
        let (page, local) = split(index);
        &self.pages[page][local]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: u32) -> &mut Record {
        let (page, local) = split(index);
        &mut self.pages[page][local]
    }

    /// Whether a key made for arm `seq` of the record still stands, the record being in `state`.
    ///
    /// The record may have been released and its page given back since the key was made.
    #[inline]
    pub(super) fn is_current(&self, index: u32, seq: u64, state: State) -> bool {
        let (page, local) = split(index);
        let record = self.pages.get(page).and_then(|page| page.get(local));
        record.is_some_and(|record| record.seq == seq && record.state == state)
    }

    /// Fill pages one after the other from now on, so that the others become empty.
    pub(super) fn drain_pages(&mut self, draining: bool) {
        self.draining = draining;
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    pub(super) fn table_len(&self) -> usize {
        self.table.len()
    }

    /// Gives `page` back if no timer lives on it, and says whether it did.
    pub(super) fn give_back(&mut self, page: usize) -> bool {
        if self.table[page].live > 0 || self.pages[page].capacity() == 0 {
            return false;
        }
        let records = std::mem::take(&mut self.pages[page]);
        let meta = &mut self.table[page];
        let has_room = meta.free != NIL || records.len() < PAGE;
        meta.free = NIL;
        // A free record's generation was never handed out: the highest of them is safe for all.
        for record in &records {
            meta.floor = meta.floor.max(record.generation);
        }
        // A retired record stays retired, and the number of its page with it.
        meta.is_spent = records.iter().any(|record| record.state == State::Retired);
        let is_spent = meta.is_spent;
        if has_room {
            self.room.unlink(&mut self.table, page as u32);
        }
        if !is_spent {
            self.away.link(&mut self.table, page as u32);
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
            let page = self.table.len() - 1;
            if last.is_spent || self.pages[page].capacity() > 0 {
                return;
            }
            self.floor_beyond = self.floor_beyond.max(last.floor);
            self.away.unlink(&mut self.table, page as u32);
            self.table.pop();
            self.pages.pop();
            if self.table.capacity() > 4 * self.table.len() {
                self.table.shrink_to(2 * self.table.len());
                self.pages.shrink_to(2 * self.table.len());
            }
        }
    }

    #[cold]
    fn open_page(&mut self) {
        // The population has outgrown the pages at hand: nothing is left to drain.
        self.draining = false;
        let page = if self.away.first != NIL {
            let page = self.away.first;
            self.away.unlink(&mut self.table, page);
            page
        } else {
            assert!(self.table.len() < PAGES_MAX, "more than 2^32 timers");
            self.table.push(Page {
                free: NIL,
                live: 0,
                prev: NIL,
                next: NIL,
                floor: self.floor_beyond,
                is_spent: false,
            });
            self.pages.push(Vec::new());
            self.table.len() as u32 - 1
        };
        self.pages[page as usize] = Vec::with_capacity(PAGE);
        self.resident += 1;
        self.room.link(&mut self.table, page);
    }

    /// Makes every free record of `page` as old as `generation`, and the records to come.
    #[cfg(test)]
    pub(super) fn age(&mut self, page: usize, generation: u32) {
        self.table[page].floor = generation;
        for record in &mut self.pages[page] {
            if record.state == State::Free {
                record.generation = generation;
            }
        }
    }

    /// Records in `state`, counted one by one.
    #[cfg(test)]
    pub(super) fn count(&self, state: State) -> usize {
        let records = self.pages.iter().flatten();
        records.filter(|record| record.state == state).count()
    }

    #[cfg(test)]
    pub(super) fn check_invariants(&self) {
        let mut rooms = vec![false; self.table.len()];
        let mut prev = NIL;
        let mut page = self.room.first;
        while page != NIL {
            let meta = &self.table[page as usize];
            assert!(
                !std::mem::replace(&mut rooms[page as usize], true),
                "a circle of pages"
            );
            assert_eq!(meta.prev, prev);
            prev = page;
            page = meta.next;
        }
        let mut live = 0;
        for (page, records) in self.pages.iter().enumerate() {
            let meta = &self.table[page];
            let in_state = |state| records.iter().filter(move |r| r.state == state).count();
            let (free, retired) = (in_state(State::Free), in_state(State::Retired));
            let mut listed = 0;
            let mut local = meta.free;
            while local != NIL {
                assert_eq!(records[local as usize].state, State::Free);
                assert_ne!(records[local as usize].generation, 0);
                local = records[local as usize].next;
                listed += 1;
                assert!(listed <= records.len(), "a circle of free records");
            }
            assert_eq!(listed, free);
            assert_eq!(meta.live as usize + free + retired, records.len());
            let is_resident = records.capacity() > 0;
            assert_eq!(
                rooms[page],
                is_resident && (free > 0 || records.len() < PAGE)
            );
            live += meta.live as usize;
        }
        assert_eq!(live, self.live);
        let resident = self.pages.iter().filter(|page| page.capacity() > 0).count();
        assert_eq!(resident, self.resident);
    }
}

impl PageList {
    /// Puts `page` in front.
    #[inline]
    fn link(&mut self, table: &mut [Page], page: u32) {
        let next = std::mem::replace(&mut self.first, page);
        let meta = &mut table[page as usize];
        meta.prev = NIL;
        meta.next = next;
        if next != NIL {
            table[next as usize].prev = page;
        }
    }

    #[inline]
    fn unlink(&mut self, table: &mut [Page], page: u32) {
        let Page { prev, next, .. } = table[page as usize];
        if prev != NIL {
            table[prev as usize].next = next;
        } else {
            debug_assert_eq!(self.first, page);
            self.first = next;
        }
        if next != NIL {
            table[next as usize].prev = prev;
        }
    }
}

/// Entries of the page table that one poll drops.
const TRIM_PER_POLL: usize = 16;

#[inline]
pub(super) fn split(index: u32) -> (usize, usize) {
    ((index >> PAGE_BITS) as usize, index as usize & (PAGE - 1))
}
