//! The memory of the records in safe code: the twin of `pages.rs`, for the tests.
//!
//! An index that names no written record panics here.

use super::entry::{Link, PAGE, Record, split};

/// Pages of records by page number.
#[derive(Debug)]
pub(super) struct Pages<T> {
    pages: Vec<Option<Page<T>>>,
}

#[derive(Debug)]
struct Page<T> {
    slab: Vec<Record<T>>,
    links: Vec<Link>,
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
        assert!(matches!(page, Some(None)));
        if self.pages.capacity() > 4 * self.pages.len() {
            self.pages.shrink_to(2 * self.pages.len());
        }
    }

    /// Gives a page memory. None of its records is written.
    pub(super) fn open(&mut self, number: usize) {
        assert!(self.pages[number].is_none());
        self.pages[number] = Some(Page {
            slab: Vec::with_capacity(PAGE),
            links: Vec::with_capacity(PAGE),
        });
    }

    /// Takes the memory of a page away. The payloads of its records have left.
    pub(super) fn close(&mut self, number: usize) {
        let page = self.pages[number].take().expect(OPEN);
        assert!(page.slab.iter().all(|it| it.payload.is_none()));
    }

    pub(super) fn record(&self, index: u32) -> &Record<T> {
        let (page, position) = self.page(index);
        &page.slab[position]
    }

    pub(super) fn record_mut(&mut self, index: u32) -> &mut Record<T> {
        self.record_and_link_mut(index).0
    }

    pub(super) fn link(&self, index: u32) -> &Link {
        let (page, position) = self.page(index);
        &page.links[position]
    }

    pub(super) fn link_mut(&mut self, index: u32) -> &mut Link {
        self.record_and_link_mut(index).1
    }

    pub(super) fn record_and_link_mut(&mut self, index: u32) -> (&mut Record<T>, &mut Link) {
        let (page, position) = self.page_mut(index);
        (&mut page.slab[position], &mut page.links[position])
    }

    /// Writes a record for the first time since its page was opened.
    pub(super) fn write(&mut self, index: u32, record: Record<T>, link: Link) {
        let (page, position) = self.page_mut(index);
        assert_eq!(position, page.slab.len());
        page.slab.push(record);
        page.links.push(link);
    }

    fn page(&self, index: u32) -> (&Page<T>, usize) {
        let (number, position) = split(index);
        (self.pages[number].as_ref().expect(OPEN), position)
    }

    fn page_mut(&mut self, index: u32) -> (&mut Page<T>, usize) {
        let (number, position) = split(index);
        (self.pages[number].as_mut().expect(OPEN), position)
    }
}

const OPEN: &str = "the page is open";
