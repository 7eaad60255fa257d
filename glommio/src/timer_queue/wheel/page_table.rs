//! What is known of a page without touching it, and the lists that pages are in.

use super::entry::{NIL, PAGE};

/// No free record.
pub(super) const FULL: u32 = PAGE as u32;

/// What is known of a page without touching it.
#[derive(Debug)]
#[repr(align(32))]
pub(super) struct Page {
    /// First free record, as a position in the page, or [`FULL`], as on a page that is away.
    pub(super) free: u32,
    /// First record that was never used, and all behind it. Zero on a page that is away.
    pub(super) unused: u32,
    /// Neighbours in the list of pages that this one is in.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Generation of a record that is used for the first time.
    pub(super) floor: u32,
    /// Records of timers that are armed.
    pub(super) live: u32,
    /// Away for good: one of its records has used up all generations.
    pub(super) is_spent: bool,
}

/// Pages linked both ways through the table.
#[derive(Debug)]
pub(super) struct PageList {
    pub(super) first: u32,
}

impl PageList {
    /// Puts a page in front.
    #[inline]
    pub(super) fn link(&mut self, table: &mut [Page], number: u32) {
        let next = std::mem::replace(&mut self.first, number);
        let page = &mut table[number as usize];
        page.prev = NIL;
        page.next = next;
        if next != NIL {
            table[next as usize].prev = number;
        }
    }

    #[inline]
    pub(super) fn unlink(&mut self, table: &mut [Page], number: u32) {
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
