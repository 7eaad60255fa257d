//! The memory of the records in safe code: the twin of `cells.rs`, for the tests.
//!
//! An index that names no written record panics here.

use super::entry::{Link, Record};
use super::records::{PAGE, split};

/// Pages of records by page number.
#[derive(Debug)]
pub(super) struct Cells<T> {
    pages: Vec<Option<Page<T>>>,
}

type Page<T> = Vec<(Record<T>, Link)>;

impl<T> Cells<T> {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Cells { pages: Vec::new() }
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
        self.pages[number] = Some(Vec::with_capacity(PAGE));
    }

    /// Takes the memory of a page away. The payloads of its records have left.
    pub(super) fn close(&mut self, number: usize) {
        let page = self.pages[number].take().expect(OPEN);
        assert!(page.iter().all(|(record, _)| record.payload.is_none()));
    }

    pub(super) fn record(&self, index: u32) -> &Record<T> {
        &self.cell(index).0
    }

    pub(super) fn record_mut(&mut self, index: u32) -> &mut Record<T> {
        &mut self.cell_mut(index).0
    }

    pub(super) fn link(&self, index: u32) -> &Link {
        &self.cell(index).1
    }

    pub(super) fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self.cell_mut(index).1
    }

    pub(super) fn record_and_link_mut(&mut self, index: u32) -> (&mut Record<T>, &mut Link) {
        let (record, link) = self.cell_mut(index);
        (record, link)
    }

    /// Writes a record for the first time since its page was opened.
    pub(super) fn write(&mut self, index: u32, record: Record<T>, link: Link) {
        let (number, position) = split(index);
        let page = self.pages[number].as_mut().expect(OPEN);
        assert_eq!(position, page.len());
        page.push((record, link));
    }

    fn cell(&self, index: u32) -> &(Record<T>, Link) {
        let (number, position) = split(index);
        &self.pages[number].as_ref().expect(OPEN)[position]
    }

    fn cell_mut(&mut self, index: u32) -> &mut (Record<T>, Link) {
        let (number, position) = split(index);
        &mut self.pages[number].as_mut().expect(OPEN)[position]
    }
}

const OPEN: &str = "the page is open";
