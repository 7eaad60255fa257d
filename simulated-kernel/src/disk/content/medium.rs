//! What the medium has of a file: syncs, and power cuts.

use std::ops::Range;
use std::sync::Arc;

use fastrand::Rng;

use super::{Content, PAGE_BYTES, PageBytes, SECTOR_BYTES, Unsynced, pages_of};

/// What a sync that has begun is to bring to the medium: what is written later, it leaves.
#[derive(Clone, Debug)]
pub(in super::super) struct Snapshot {
    pages: Vec<(u64, Option<Arc<PageBytes>>)>,
    size: u64,
    number: u64,
}

/// What a power cut leaves of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Loss {
    Nothing,
    /// Whole writes, the last ones first.
    Writes,
    /// Any of the sectors, which have this many bytes.
    Sectors(u32),
}

impl Content {
    /// Begins a sync of what there is now.
    pub(in super::super) fn begin_sync(&mut self, pages: Range<u64>) -> Snapshot {
        let dirty = self.unsynced.range(pages);
        let dirty = dirty.filter(|(_, unsynced)| !unsynced.has_failed);
        let pages = dirty.map(|(index, _)| (*index, self.bytes(*index)));
        let snapshot = Snapshot {
            pages: pages.collect(),
            size: self.size,
            number: self.syncs,
        };
        self.syncs += 1;
        snapshot
    }

    /// The medium has what there was when the sync began.
    pub(in super::super) fn end_sync(&mut self, snapshot: Snapshot) {
        if snapshot.number >= self.size_as_of {
            self.end_sync_of_size(&snapshot);
        }
        for (index, bytes) in snapshot.pages {
            let is_current = self.is_at(index, bytes.as_ref());
            let Some(unsynced) = self.unsynced.get_mut(&index) else {
                continue;
            };
            // Else one that began later has brought what is newer, or this is of a later write.
            if unsynced.as_of > snapshot.number {
                continue;
            }
            if is_current {
                self.unsynced.remove(&index);
            } else {
                unsynced.on_medium = bytes;
                unsynced.as_of = snapshot.number;
            }
        }
    }

    /// The medium has refused some of what there was when the sync began.
    pub(in super::super) fn fail_sync(&mut self, snapshot: Snapshot, rng: &mut Rng) {
        let Some(last) = snapshot.pages.len().checked_sub(1) else {
            return;
        };
        let refused = rng.usize(0..=last);
        for (number, (index, bytes)) in snapshot.pages.into_iter().enumerate() {
            let is_current = self.is_at(index, bytes.as_ref());
            let is_refused = number == refused || rng.bool();
            if let Some(unsynced) = self.unsynced.get_mut(&index)
                && is_current
                && unsynced.as_of <= snapshot.number
                && is_refused
            {
                unsynced.has_failed = true;
            }
        }
    }

    /// Brings some of what is not synced to the medium, as the kernel may at any time. To be called
    /// before the bytes in `range` are written.
    pub(in super::super) fn write_back(&mut self, range: Range<u64>, loss: Loss, rng: &mut Rng) {
        match loss {
            Loss::Nothing => {}
            Loss::Writes => {
                if rng.u8(0..8) == 0 {
                    let all = self.begin_sync(0..u64::MAX);
                    self.end_sync(all);
                }
            }
            Loss::Sectors(bytes) => {
                let cut = self.truncated_to();
                if cut.is_none() && self.size > self.medium_size && rng.u8(0..8) == 0 {
                    self.medium_size = self.size;
                }
                let limit = cut.map_or(u64::MAX, |size| size / PAGE_BYTES);
                let touched = pages_of(&range);
                let touched = touched.start..touched.end.min(limit);
                if touched.is_empty() {
                    return;
                }
                for (index, unsynced) in self.unsynced.range_mut(touched) {
                    if !unsynced.has_failed && rng.u8(0..8) == 0 {
                        let current = self.pages.get(index).map(|page| &page.bytes);
                        let kept = chosen_sectors(bytes, 0.5, rng);
                        unsynced.on_medium = mixed(current, unsynced.on_medium.as_ref(), kept);
                    }
                }
            }
        }
    }

    /// The power is gone: what is not on the medium is lost, as far as `loss` has it.
    pub(in super::super) fn power_cut(&mut self, loss: Loss, rng: &mut Rng) {
        match loss {
            Loss::Sectors(bytes) => self.tear(bytes, rng),
            Loss::Writes if rng.bool() => {
                self.size = self.medium_size;
                self.revert(|_, _| true);
            }
            Loss::Writes | Loss::Nothing => {
                if let Some(cut) = self.truncated_to() {
                    self.commit_truncation(cut);
                }
                self.revert(|_, page| page.has_failed);
            }
        }
        self.cut_off();
        self.unsynced.clear();
        self.truncations.clear();
        self.medium_size = self.size;
        self.size_as_of = self.syncs;
        for page in self.pages.values_mut() {
            page.is_cached = false;
        }
        self.unreserved = self.data_pages(0..u64::MAX, false);
    }

    fn tear(&mut self, sector_bytes: u32, rng: &mut Rng) {
        if let Some(cut) = self.truncated_to() {
            if rng.bool() {
                self.commit_truncation(cut);
            } else {
                // What came after it in its range is lost along with it.
                self.revert(|index, _| index >= cut / PAGE_BYTES);
                self.size = self.medium_size;
            }
        }
        // The size grows by pages while the kernel copies a long write.
        let (before, after) = (self.medium_size, self.size);
        if after > before {
            let page = rng.u64(before / PAGE_BYTES..=after / PAGE_BYTES) * PAGE_BYTES;
            self.size = match rng.u8(0..4) {
                0 => before,
                1 => page.clamp(before, after),
                _ => after,
            };
        }
        let keeping = [0.0, 0.5, 0.9, 1.0][rng.usize(0..4)];
        for (index, unsynced) in std::mem::take(&mut self.unsynced) {
            let kept = match unsynced.has_failed {
                true => 0,
                false => chosen_sectors(sector_bytes, keeping, rng),
            };
            let current = self.pages.get(&index).map(|page| &page.bytes);
            let bytes = mixed(current, unsynced.on_medium.as_ref(), kept);
            self.put(index, bytes);
        }
    }

    /// Has nothing but zeros beyond the size.
    fn cut_off(&mut self) {
        self.pages.split_off(&self.size.div_ceil(PAGE_BYTES));
        let within = (self.size % PAGE_BYTES) as usize;
        if within > 0
            && let Some(page) = self.pages.get_mut(&(self.size / PAGE_BYTES))
            && page.bytes[within..].iter().any(|byte| *byte != 0)
        {
            Arc::make_mut(&mut page.bytes)[within..].fill(0);
        }
    }

    fn end_sync_of_size(&mut self, snapshot: &Snapshot) {
        let is_later = |&(syncs, _): &(u64, u64)| syncs > snapshot.number;
        let later = self.truncations.iter().position(is_later);
        let later = self
            .truncations
            .split_off(later.unwrap_or(self.truncations.len()));
        if let Some(cut) = self.truncated_to() {
            self.commit_truncation(cut);
        }
        self.truncations = later;
        self.medium_size = snapshot.size;
        self.size_as_of = snapshot.number;
    }

    /// The medium has heard that the file was shortened to `cut`.
    fn commit_truncation(&mut self, cut: u64) {
        let within = (cut % PAGE_BYTES) as usize;
        for (index, unsynced) in self.unsynced.range_mut(cut / PAGE_BYTES..) {
            let is_partial = index * PAGE_BYTES < cut;
            match &mut unsynced.on_medium {
                Some(bytes) if is_partial => Arc::make_mut(bytes)[within..].fill(0),
                on_medium => *on_medium = on_medium.take().filter(|_| is_partial),
            }
        }
        self.medium_size = self.medium_size.min(cut);
    }

    /// The smallest size to which the file was shortened, if the medium may not have heard of it.
    pub(super) fn truncated_to(&self) -> Option<u64> {
        self.truncations.iter().map(|(_, size)| *size).min()
    }

    /// Makes of the chosen pages what they are on the medium.
    pub(super) fn revert(&mut self, is_chosen: impl Fn(u64, &Unsynced) -> bool) {
        let mut reverted = Vec::new();
        self.unsynced.retain(|index, page| {
            let is_chosen = is_chosen(*index, page);
            if is_chosen {
                reverted.push((*index, page.on_medium.take()));
            }
            !is_chosen
        });
        for (index, bytes) in reverted {
            self.put(index, bytes);
        }
    }
}

/// Sectors of a page, each with the given probability.
fn chosen_sectors(sector_bytes: u32, probability: f64, rng: &mut Rng) -> u8 {
    let together = (sector_bytes as usize / SECTOR_BYTES).clamp(1, 8);
    (0..8).step_by(together).fold(0, |all, first| {
        let group = (first..first + together).fold(0, |group, at| group | 1 << at);
        if rng.f64() < probability {
            all | group
        } else {
            all
        }
    })
}

/// A page with the chosen sectors of `one`, and the other sectors of `other`.
fn mixed(
    one: Option<&Arc<PageBytes>>,
    other: Option<&Arc<PageBytes>>,
    of_one: u8,
) -> Option<Arc<PageBytes>> {
    let is_same = match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    };
    match of_one {
        u8::MAX => return one.cloned(),
        0 => return other.cloned(),
        _ if is_same => return one.cloned(),
        _ => {}
    }
    let mut mixed: PageBytes = other.map_or([0; PAGE_BYTES as usize], |bytes| **bytes);
    for sector in (0..8).filter(|sector| of_one & 1 << sector != 0) {
        let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
        match one {
            Some(one) => mixed[bytes.clone()].copy_from_slice(&one[bytes]),
            None => mixed[bytes].fill(0),
        }
    }
    Some(Arc::new(mixed))
}
