//! The memory of the records: the only file of the timer queues with unsafe code.
//!
//! ```text
//!   page table        page: 1024 records of 32 bytes, 1024 links of 16 bytes
//!   ┌────┐            ┌────┬────┬────┬────┬─ ─ ─ ─ ┐┌──┬──┬──┬──┬─ ─ ─ ─ ┐
//!   │ ───┼──────────▶ │ ▓▓ │ ▓▓ │ ▓▓ │    │         ││▓▓│▓▓│▓▓│  │        │   ▓ written
//!   │ ✗  │ closed     └────┴────┴────┴────┴─ ─ ─ ─ ┘└──┴──┴──┴──┴─ ─ ─ ─ ┘
//!   └────┘
//! ```
//!
//! A page is memory that nothing has touched until a record is written, so that a queue of ten
//! timers touches ten records. And a record is found by two loads, without asking whether it is
//! there: an arm and a cancel look up seven of them. The file `pages_safe.rs` does the same with
//! vectors and checks, and every test of this room runs with either (`--cfg timer_queue_safe`
//! chooses it).
//!
//! # Why an index can be trusted
//!
//! [`record`](Pages::record), [`link`](Pages::link) and their like are called from `slab.rs` only,
//! with an index for which three things hold, and the caller says why:
//!
//! 1. its page number exists;
//! 2. the page is open;
//! 3. the record was written since the page was opened.
//!
//! `slab.rs` keeps a count of records in use for each page, `unused`: zero for a page that is
//! closed, and raised only with a [`write`](Pages::write). An index that comes from outside, from a
//! handle or a key, is held against it first. An index that comes from inside, from a list, names
//! an armed or free record (invariants 1 and 3 of the room, asserted by the tests after every
//! step), and a page is closed only when no record on it is armed, and its free list with it.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use super::entry::{Link, PAGE, Record, split};
use crate::planted::planted;

/// Pages of records by page number.
#[derive(Debug)]
pub(super) struct Pages<T> {
    pages: Vec<Option<Box<Page<T>>>>,
}

/// Aligned to cache lines, so that no record lies across two.
#[derive(Debug)]
#[repr(C, align(64))]
struct Page<T> {
    slab: [MaybeUninit<Record<T>>; PAGE],
    links: [MaybeUninit<Link>; PAGE],
}

impl<T> Pages<T> {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Pages { pages: Vec::new() }
    }

    /// Page numbers.
    #[cfg(any(test, fuzzing))]
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Adds a page number, whose page is closed.
    pub(super) fn push(&mut self) {
        self.pages.push(None);
    }

    /// Drops the last page number, whose page is closed.
    pub(super) fn pop(&mut self) {
        let page = self.pages.pop();
        debug_assert!(matches!(page, Some(None)));
        if self.pages.capacity() > 4 * self.pages.len() {
            self.pages.shrink_to(2 * self.pages.len());
        }
    }

    /// Gives a page memory. None of its records is written.
    pub(super) fn open(&mut self, number: usize) {
        let page = Box::<Page<T>>::new_uninit();
        // SAFETY: a `Page` is arrays of `MaybeUninit`, which need no initialization.
        self.pages[number] = Some(unsafe { page.assume_init() });
    }

    /// Takes the memory of a page away. The payloads of its records have left.
    pub(super) fn close(&mut self, number: usize) {
        let page = self.pages[number].take();
        if planted!("leaked_page") {
            std::mem::forget(page);
        }
    }

    #[inline(always)]
    pub(super) fn record(&self, index: u32) -> &Record<T> {
        let (page, position) = self.page(index);
        // SAFETY: 3 of the module: the record was written.
        unsafe { page.slab[position].assume_init_ref() }
    }

    #[inline(always)]
    pub(super) fn record_mut(&mut self, index: u32) -> &mut Record<T> {
        let (page, position) = self.page_mut(index);
        // SAFETY: 3 of the module: the record was written.
        unsafe { page.slab[position].assume_init_mut() }
    }

    #[inline(always)]
    pub(super) fn link(&self, index: u32) -> &Link {
        let (page, position) = self.page(index);
        // SAFETY: 3 of the module: the record was written, and its link with it.
        unsafe { page.links[position].assume_init_ref() }
    }

    #[inline(always)]
    pub(super) fn link_mut(&mut self, index: u32) -> &mut Link {
        let (page, position) = self.page_mut(index);
        // SAFETY: 3 of the module: the record was written, and its link with it.
        unsafe { page.links[position].assume_init_mut() }
    }

    #[inline(always)]
    pub(super) fn record_and_link_mut(&mut self, index: u32) -> (&mut Record<T>, &mut Link) {
        let (page, position) = self.page_mut(index);
        // SAFETY: 3 of the module: the record was written.
        let record = unsafe { page.slab[position].assume_init_mut() };
        // SAFETY: 3 of the module: the record was written, and its link with it.
        let link = unsafe { page.links[position].assume_init_mut() };
        (record, link)
    }

    /// Writes a record for the first time since its page was opened.
    #[inline(always)]
    pub(super) fn write(&mut self, index: u32, record: Record<T>, link: Link) {
        let (page, position) = self.page_mut(index);
        page.slab[position].write(record);
        page.links[position].write(link);
    }

    #[inline(always)]
    fn page(&self, index: u32) -> (&Page<T>, usize) {
        let (number, position) = split(index);
        debug_assert!(self.pages[number].is_some());
        // SAFETY: 1 and 2 of the module: there is such a number, and its page is open.
        let page = unsafe {
            self.pages
                .get_unchecked(number)
                .as_deref()
                .unwrap_unchecked()
        };
        (page, position)
    }

    #[inline(always)]
    fn page_mut(&mut self, index: u32) -> (&mut Page<T>, usize) {
        let (number, position) = split(index);
        debug_assert!(self.pages[number].is_some());
        // SAFETY: 1 and 2 of the module: there is such a number, and its page is open.
        let page = unsafe {
            let page = self.pages.get_unchecked_mut(number);
            page.as_deref_mut().unwrap_unchecked()
        };
        (page, position)
    }
}
