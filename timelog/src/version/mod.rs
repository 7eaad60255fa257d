//! What a log holds at one moment, never changed once published.

mod into_rows;
mod snapshot;

use std::sync::Arc;

pub use into_rows::IntoRows;
pub use snapshot::Snapshot;
pub(crate) use snapshot::View;

use crate::read::Index;
use crate::segment::{List, Segment, within};
use crate::{Broken, Seq, Ts};

/// Flushed segments and sealed memtables.
///
/// Age goes from L1 over L0 and the sealed memtables to the memtable: of equal timestamps the older
/// come first.
#[derive(Debug)]
pub(crate) struct Version<V> {
    /// In time order. They may touch at one timestamp, which is then older in the left one.
    pub l1: Vec<Arc<Segment<V>>>,
    /// Of `l1`; made by `promote`, which every change of it ends with.
    pub l1_index: Index,
    /// By age, the oldest first. They may overlap each other and L1.
    pub l0: Vec<Arc<Segment<V>>>,
    /// The first and the last timestamp of each of `l0`, side by side as every read looks at all;
    /// made by `promote`.
    pub l0_bounds: Vec<(Ts, Ts)>,
    /// By age, the oldest first.
    pub sealed: Vec<Arc<Sealed<V>>>,
}

/// A memtable that takes no more rows.
#[derive(Debug)]
pub(crate) struct Sealed<V> {
    /// Lanes and late runs, in the order of their equals.
    pub lists: Vec<List<V>>,
    pub rows: usize,
}

impl<V> Clone for Version<V> {
    fn clone(&self) -> Self {
        Self {
            l1: self.l1.clone(),
            l1_index: self.l1_index.clone(),
            l0: self.l0.clone(),
            l0_bounds: self.l0_bounds.clone(),
            sealed: self.sealed.clone(),
        }
    }
}

impl<V> Version<V> {
    pub fn new() -> Self {
        Self {
            l1: Vec::new(),
            l1_index: Index::of::<V>(&[]),
            l0: Vec::new(),
            l0_bounds: Vec::new(),
            sealed: Vec::new(),
        }
    }

    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.l1.iter().chain(&self.l0)
    }

    /// The parts that may have rows from one timestamp to another, both inside.
    pub fn parts_within(&self, first: Ts, last: Ts) -> impl Iterator<Item = &Arc<Segment<V>>> {
        let sealed = self
            .sealed
            .iter()
            .flat_map(|sealed| &sealed.lists)
            .flat_map(move |list| list.within(first, last));
        within(&self.l1, first, last)
            .iter()
            .chain(&self.l0)
            .chain(sealed)
    }

    /// Moves L0 segments that overlap nothing older into L1, and gives their number.
    ///
    /// The lower level counts as older, so a segment stays while an older one of L0 shares a
    /// timestamp with it. In L1 it may touch its left neighbour, which is older, but not its
    /// right one.
    pub fn promote(&mut self) -> u64 {
        let mut promoted = 0;
        let mut index = 0;
        while let Some(segment) = self.l0.get(index) {
            let at = self
                .l1
                .partition_point(|other| other.max() <= segment.min());
            let is_free = self
                .l1
                .get(at)
                .is_none_or(|right| segment.max() < right.min());
            let is_alone = self.l0[..index]
                .iter()
                .all(|older| !older.overlaps(segment.min(), segment.max()));
            if is_free && is_alone {
                let segment = self.l0.remove(index);
                self.l1.insert(at, segment);
                promoted += 1;
            } else {
                index += 1;
            }
        }
        self.l1_index = Index::of(&self.l1);
        self.l0_bounds = self.bounds().collect();
        promoted
    }

    fn bounds(&self) -> impl Iterator<Item = (Ts, Ts)> {
        self.l0.iter().map(|segment| (segment.min(), segment.max()))
    }

    pub fn check(&self, last: Seq) -> Result<(), Broken> {
        for (index, segment) in self.l1.iter().enumerate() {
            segment.check(&format!("L1 segment {index}"), last)?;
        }
        for (index, segment) in self.l0.iter().enumerate() {
            segment.check(&format!("L0 segment {index}"), last)?;
        }
        Broken::unless(
            self.l1
                .is_sorted_by(|left, right| left.max() <= right.min()),
            || "segments of L1 overlap".into(),
        )?;
        Broken::unless(self.bounds().eq(self.l0_bounds.iter().copied()), || {
            "bounds of L0".into()
        })?;
        Broken::unless(self.l1_index.is_of(&self.l1), || "index of L1".into())?;
        for (index, sealed) in self.sealed.iter().enumerate() {
            let name = format!("sealed memtable {index}");
            let rows = check_lists(&sealed.lists, &name, last)?;
            Broken::unless(rows == sealed.rows, || {
                format!("{name}: {rows} rows, counted {}", sealed.rows)
            })?;
        }
        Ok(())
    }
}

/// Checks frozen sources and gives their rows.
pub(crate) fn check_lists<V>(lists: &[List<V>], name: &str, last: Seq) -> Result<usize, Broken> {
    let mut rows = 0;
    for (number, list) in lists.iter().enumerate() {
        for segment in list.segments() {
            segment.check(&format!("{name}, source {number}"), last)?;
            rows += segment.rows();
        }
        let segments: Vec<_> = list.segments().collect();
        Broken::unless(
            segments.is_sorted_by(|left, right| left.max() <= right.min()),
            || format!("{name}, source {number}: chunks out of order"),
        )?;
    }
    Ok(rows)
}
