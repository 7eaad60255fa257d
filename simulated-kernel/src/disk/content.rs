//! What is in a file: what its readers see, and how much of that the medium has.
//!
//! The pages are what readers see. For each page that differs from the medium there is a record
//! of what the medium has instead. So a sync costs as much as there is to be synced, and a
//! power cut takes each sector from the one or from the other.
//!
//! The kernel writes back whenever it likes. Before a page that is not synced is changed again,
//! some of its sectors may therefore get to the medium as they are ([`Content::write_back`]); with
//! that, a power cut also leaves what was there in between.

mod medium;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub(super) use medium::{Loss, Snapshot};

use super::ranges::Ranges;

/// What is cached, allocated and accounted for at once.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The smallest sector.
const SECTOR_BYTES: usize = 512;

pub(super) type PageBytes = [u8; PAGE_BYTES as usize];

#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    size: u64,
    /// Those with data; the others are holes. Beyond the size there are zeros only.
    pages: BTreeMap<u64, Page>,
    /// Pages that take space whether or not there is data.
    preallocated: Ranges,
    /// How many pages there are in `pages` and not in `preallocated`.
    unreserved: u64,
    unsynced: BTreeMap<u64, Unsynced>,
    /// What the size is if that was not synced.
    medium_size: u64,
    /// To which sizes the file was shortened, each with the number of syncs that had begun before.
    /// The medium may not have heard of it, and what is beyond in `unsynced` depends on that.
    truncations: Vec<(u64, u64)>,
    /// How many syncs have begun. What the medium has is as of one of them.
    syncs: u64,
    size_as_of: u64,
}

#[derive(Clone, Debug)]
struct Page {
    bytes: Arc<PageBytes>,
    /// In the page cache: a read need not wait for the device.
    is_cached: bool,
}

/// A page that differs from what is on the medium.
#[derive(Clone, Debug)]
struct Unsynced {
    /// `None` for a hole.
    on_medium: Option<Arc<PageBytes>>,
    /// How many syncs had begun before the last one that has brought this to the medium.
    as_of: u64,
    /// A sync has failed to write it, and counts it as clean. It is readable until the power is cut.
    has_failed: bool,
}

impl Content {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// How many pages take space.
    pub(super) fn used_pages(&self) -> u64 {
        self.preallocated.count() + self.unreserved
    }

    /// How many of the `pages` would take space that is not taken yet.
    pub(super) fn missing_pages(&self, pages: Range<u64>) -> u64 {
        let count = pages.end.saturating_sub(pages.start);
        let reserved = self.preallocated.count_within(pages.clone());
        count - reserved - self.data_pages(pages, false)
    }

    pub(super) fn is_allocated(&self, page: u64) -> bool {
        self.pages.contains_key(&page) || self.preallocated.contains(page)
    }

    /// Copies what is at `offset` to `buf`, up to the end of the file; returns how much that is.
    pub(super) fn read(&mut self, offset: u64, buf: &mut [u8], through_cache: bool) -> usize {
        let rest = self.size.saturating_sub(offset);
        let len = usize::try_from(rest).map_or(buf.len(), |rest| rest.min(buf.len()));
        for (page, within, piece) in pieces(offset, len) {
            let to = &mut buf[piece];
            match self.pages.get_mut(&page) {
                Some(page) => {
                    to.copy_from_slice(&page.bytes[within..within + to.len()]);
                    page.is_cached |= through_cache;
                }
                None => to.fill(0),
            }
        }
        len
    }

    /// How many of the `len` bytes at `offset` can be read without waiting for the device.
    pub(super) fn cached_bytes(&self, offset: u64, len: usize) -> usize {
        let rest = self.size.saturating_sub(offset);
        let len = usize::try_from(rest).map_or(len, |rest| rest.min(len));
        let waits = pieces(offset, len)
            .find(|(page, ..)| self.pages.get(page).is_some_and(|page| !page.is_cached));
        waits.map_or(len, |(_, _, piece)| piece.start)
    }

    /// Writes `bytes` at `offset`, where there is space for them.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8], through_cache: bool) {
        for (index, within, piece) in pieces(offset, bytes.len()) {
            let piece = &bytes[piece];
            self.mark(index);
            let preallocated = &self.preallocated;
            let unreserved = &mut self.unreserved;
            let page = self.pages.entry(index).or_insert_with(|| {
                *unreserved += u64::from(!preallocated.contains(index));
                Page {
                    bytes: Arc::new([0; PAGE_BYTES as usize]),
                    is_cached: false,
                }
            });
            page.is_cached = through_cache;
            match <&PageBytes>::try_from(piece) {
                // There is nothing to be copied of a page that is shared.
                Ok(whole) if Arc::get_mut(&mut page.bytes).is_none() => {
                    page.bytes = Arc::new(*whole);
                }
                _ => {
                    let bytes = Arc::make_mut(&mut page.bytes);
                    bytes[within..within + piece.len()].copy_from_slice(piece);
                }
            }
        }
        self.size = self.size.max(offset + bytes.len() as u64);
    }

    /// Flips a bit of what is stored.
    pub(super) fn flip(&mut self, offset: u64, bit: u8) {
        let (index, within) = (offset / PAGE_BYTES, (offset % PAGE_BYTES) as usize);
        if let Some(page) = self.pages.get_mut(&index) {
            Arc::make_mut(&mut page.bytes)[within] ^= 1 << bit;
        }
    }

    pub(super) fn set_size(&mut self, size: u64) {
        if size < self.size {
            self.clear(size..self.size);
            match self.truncations.last_mut() {
                Some((syncs, earlier)) if *syncs == self.syncs => *earlier = size.min(*earlier),
                _ => self.truncations.push((self.syncs, size)),
            }
        }
        if size <= self.size {
            self.give_back(size.div_ceil(PAGE_BYTES)..u64::MAX);
        }
        self.size = size;
    }

    /// Takes space for the bytes of `range`, and lets the file be so long if it `extends`.
    pub(super) fn preallocate(&mut self, range: Range<u64>, extends: bool) {
        let pages = pages_of(&range);
        self.unreserved -= self.data_pages(pages.clone(), false);
        self.preallocated.insert(pages);
        if extends {
            self.size = self.size.max(range.end);
        }
    }

    /// Gives back the space of the whole pages in `range`, and makes zeros of all bytes in it.
    pub(super) fn punch(&mut self, range: Range<u64>) {
        self.clear(range.start..range.end.min(self.size));
        let whole = range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES;
        if whole.start < whole.end {
            self.give_back(whole);
        }
    }

    /// Makes zeros of all bytes in `range`.
    pub(super) fn clear(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let pages = pages_of(&range);
        let present: Vec<_> = self.pages.range(pages).map(|(index, _)| *index).collect();
        for index in present {
            let start = index * PAGE_BYTES;
            let from = range.start.saturating_sub(start).min(PAGE_BYTES) as usize;
            let until = (range.end - start).min(PAGE_BYTES) as usize;
            // There are zeros beyond the end of the file.
            let is_whole = from == 0 && (until == PAGE_BYTES as usize || range.end == self.size);
            self.mark(index);
            if is_whole {
                self.remove_page(index);
            } else if let Some(page) = self.pages.get_mut(&index) {
                Arc::make_mut(&mut page.bytes)[from..until].fill(0);
            }
        }
    }

    /// A page is about to differ from the medium.
    fn mark(&mut self, index: u64) {
        let Content {
            unsynced,
            pages,
            syncs,
            ..
        } = self;
        let unsynced = unsynced.entry(index).or_insert_with(|| Unsynced {
            on_medium: pages.get(&index).map(|page| page.bytes.clone()),
            as_of: *syncs,
            has_failed: false,
        });
        // The page is dirty again as a whole.
        unsynced.has_failed = false;
    }

    fn put(&mut self, index: u64, bytes: Option<Arc<PageBytes>>) {
        match bytes {
            Some(bytes) => {
                let page = Page {
                    bytes,
                    is_cached: false,
                };
                let before = self.pages.insert(index, page);
                let is_new = before.is_none() && !self.preallocated.contains(index);
                self.unreserved += u64::from(is_new);
            }
            None => self.remove_page(index),
        }
    }

    fn remove_page(&mut self, index: u64) {
        if self.pages.remove(&index).is_some() && !self.preallocated.contains(index) {
            self.unreserved -= 1;
        }
    }

    /// The pages take no more space than their data does.
    fn give_back(&mut self, pages: Range<u64>) {
        if self.preallocated.count() > 0 {
            self.unreserved += self.data_pages(pages.clone(), true);
            self.preallocated.remove(pages);
        }
    }

    /// How many of the pages have data, and are preallocated or not.
    fn data_pages(&self, pages: Range<u64>, preallocated: bool) -> u64 {
        let with_data = self.pages.range(pages).map(|(index, _)| *index);
        with_data
            .filter(|index| self.preallocated.contains(*index) == preallocated)
            .count() as u64
    }

    fn bytes(&self, index: u64) -> Option<Arc<PageBytes>> {
        self.pages.get(&index).map(|page| page.bytes.clone())
    }

    /// Whether the page has not changed since it was `bytes`.
    fn is_at(&self, index: u64, bytes: Option<&Arc<PageBytes>>) -> bool {
        match (self.pages.get(&index), bytes) {
            (Some(page), Some(bytes)) => Arc::ptr_eq(&page.bytes, bytes),
            (page, bytes) => page.is_none() && bytes.is_none(),
        }
    }
}

/// The pages that `len` bytes at `offset` are in: the index, where in the page they begin, and which
/// of the bytes they are.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES) as usize;
        let piece = done..len.min(done + PAGE_BYTES as usize - within);
        done = piece.end;
        (!piece.is_empty()).then_some((at / PAGE_BYTES, within, piece))
    })
}

/// The pages that the bytes of `range` are in.
pub(super) fn pages_of(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}
