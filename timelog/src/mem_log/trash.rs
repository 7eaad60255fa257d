//! What maintenance has replaced, until it is dropped piece by piece.

use std::sync::Arc;

use crate::column::Columns;
use crate::list::List;
use crate::segment::Segment;
use crate::version::Sealed;

/// What was replaced: dropping all of it at once would take as long as there are rows.
#[derive(Debug)]
pub(crate) struct Trash<V> {
    pub segments: Vec<Arc<Segment<V>>>,
    pub pages: Vec<Arc<Columns<V>>>,
}

impl<V> Trash<V> {
    pub const fn new() -> Self {
        Self {
            segments: Vec::new(),
            pages: Vec::new(),
        }
    }

    pub fn add_sealed(&mut self, sealed: Arc<Sealed<V>>) {
        // Of no one else, or the snapshots that hold it drop it.
        if let Some(sealed) = Arc::into_inner(sealed) {
            let segments = sealed.lists.into_iter().flat_map(List::into_segments);
            self.segments.extend(segments);
        }
    }

    /// Drops at most so many rows and a page, and tells how many.
    pub fn drop_rows(&mut self, rows: usize) -> usize {
        let mut dropped = 0;
        while dropped < rows {
            if let Some(page) = self.pages.pop() {
                dropped += page.len();
                drop(page);
            } else if let Some(segment) = self.segments.pop() {
                dropped += 1;
                self.pages = segment.into_pages();
            } else {
                break;
            }
        }
        dropped
    }
}
