//! The pages of the records by number: what is known of each, its memory, and the lists that pages
//! are in.

use std::array;

use super::entry::{Link, NIL, PAGE, Record, RecordState};

/// No free record.
pub(super) const FULL: u32 = PAGE as u32;

/// A page and what is known of it without touching its memory.
#[derive(Debug)]
pub(super) struct Page<T> {
    /// While it is not away.
    pub(super) memory: Option<Box<Memory<T>>>,
    /// First free record, as a position in the page, or [`FULL`], as on a page that is away.
    pub(super) free: u32,
    /// Neighbours in the list of pages that this one is in.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Generation that its records begin with when it is opened.
    pub(super) floor: u32,
    /// Records of timers that are armed.
    pub(super) live: u32,
    /// Away for good: one of its records has used up all generations.
    pub(super) is_spent: bool,
}

/// Records and their links, all of them there from the beginning. So of an index nothing has to be
/// checked but its page.
///
/// Aligned to cache lines, so that no record lies across two.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Memory<T> {
    pub(super) records: [Record<T>; PAGE],
    pub(super) links: [Link; PAGE],
}

impl<T> Page<T> {
    pub(super) fn away(floor: u32) -> Self {
        Page {
            memory: None,
            free: FULL,
            prev: NIL,
            next: NIL,
            floor,
            live: 0,
            is_spent: false,
        }
    }

    /// Gives it memory. All records are free, and each names the next.
    pub(super) fn open(&mut self) {
        let record = |position| Record {
            seq: 0,
            payload: None,
            generation: self.floor,
            place: position as u16 + 1,
            state: RecordState::Free,
        };
        self.memory = Some(Box::new(Memory {
            records: array::from_fn(record),
            links: [Link::alone(0); PAGE],
        }));
        self.free = 0;
    }

    /// A page of which an index is used is open: the queue would be wrong, and not its caller.
    #[inline(always)]
    pub(super) fn memory(&self) -> &Memory<T> {
        self.memory.as_deref().expect(OPEN)
    }

    #[inline(always)]
    pub(super) fn memory_mut(&mut self) -> &mut Memory<T> {
        self.memory.as_deref_mut().expect(OPEN)
    }
}

const OPEN: &str = "the page is open";

/// Pages linked both ways through the table.
#[derive(Debug)]
pub(super) struct PageList {
    pub(super) first: u32,
}

impl PageList {
    /// Puts a page in front.
    #[inline]
    pub(super) fn link<T>(&mut self, table: &mut [Page<T>], number: u32) {
        let next = std::mem::replace(&mut self.first, number);
        let page = &mut table[number as usize];
        page.prev = NIL;
        page.next = next;
        if next != NIL {
            table[next as usize].prev = number;
        }
    }

    #[inline]
    pub(super) fn unlink<T>(&mut self, table: &mut [Page<T>], number: u32) {
        let Page { prev, next, .. } = table[number as usize];
        if prev != NIL {
            table[prev as usize].next = next;
        } else {
            debug_assert_eq!(self.first, number);
            self.first = next;
        }
        if next != NIL {
            table[next as usize].prev = prev;
        }
    }
}

const _: () = assert!(size_of::<Page<()>>() == 32, "two to a cache line");
