//! What a log holds at one moment, never changed once published.

mod into_rows;
mod snapshot;
mod snapshots;

use std::sync::Arc;

pub use into_rows::IntoRows;
pub use snapshot::Snapshot;
pub(crate) use snapshot::View;
pub use snapshots::Snapshots;

use crate::list::List;
use crate::read::Run;
use crate::segment::Segment;
use crate::segments::{Segments, Slot};
use crate::tombstones::Piece;
use crate::{Broken, Seq, Ts};

/// Flushed segments and sealed memtables.
///
/// Age goes from L1 over L0 and the sealed memtables to the memtable: of equal timestamps the older
/// come first.
#[derive(Debug)]
pub(crate) struct Version<V> {
    /// In time order. They may touch at one timestamp, which is then older in the left one.
    pub l1: Segments<V>,
    /// By age, the oldest first. They may overlap each other and L1.
    pub l0: Segments<V>,
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
            l0: self.l0.clone(),
            sealed: self.sealed.clone(),
        }
    }
}

impl<V> Version<V> {
    pub const fn new() -> Self {
        Self {
            l1: Segments::new(),
            l0: Segments::new(),
            sealed: Vec::new(),
        }
    }

    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.l1.iter().chain(self.l0.iter())
    }

    /// Rows in segments, hidden ones included.
    pub fn segment_rows(&self) -> usize {
        self.l1.rows() + self.l0.rows()
    }

    /// The rows in segments that a delete hides.
    pub fn rows_under(&self, piece: &Piece) -> usize {
        let l0 = self.l0.overlapping(piece.first, piece.last);
        let l0 = l0.filter(|(_, segment)| segment.watermark() < piece.seq);
        let l0 = l0.map(|(_, segment)| segment.rows_within(piece.first, piece.last));
        Run::from(&self.l1).rows_under_all(piece) + l0.sum::<usize>()
    }

    /// Whether a delete hides a row in a sealed memtable.
    pub fn hides_sealed(&self, piece: &Piece) -> bool {
        let mut lists = self.sealed.iter().flat_map(|sealed| &sealed.lists);
        lists.any(|list| Run::from(list).rows_under_all(piece) > 0)
    }

    /// Adds a segment that is newer than all others: to L1 if it overlaps nothing and not where
    /// `reserved` says that a compaction will put its outputs. Tells whether it did.
    pub fn add(&mut self, segment: Arc<Segment<V>>, reserved: Option<(Ts, Ts)>) -> bool {
        let newer = self.l0.end();
        match self.place_in_l1(&segment, newer, reserved) {
            Some(at) => {
                self.l1.replace(at..at, [segment]);
                true
            }
            None => {
                self.l0.push(segment);
                false
            }
        }
    }

    /// Moves those L0 segments in a stretch of time into L1 that overlap nothing older, and gives
    /// their number.
    pub fn promote(&mut self, (first, last): (Ts, Ts)) -> u64 {
        let mut promoted = 0;
        let within = self.l0.overlapping(first, last);
        // Those that are moved change the slots of the ones after them.
        let within: Vec<_> = within.map(|(_, segment)| Arc::clone(segment)).collect();
        for segment in within {
            let slot = self.l0.find(&segment).expect("only those before it moved");
            if let Some(at) = self.place_in_l1(&segment, slot, None) {
                self.l0.swap(&segment, []);
                self.l1.replace(at..at, [segment]);
                promoted += 1;
            }
        }
        promoted
    }

    /// The place in L1 for a segment that overlaps nothing older, that is, nothing of L1 and of L0
    /// before `slot`.
    ///
    /// In L1 it may touch its left neighbour, which is older, but not its right one.
    fn place_in_l1(
        &self,
        segment: &Segment<V>,
        slot: Slot,
        reserved: Option<(Ts, Ts)>,
    ) -> Option<Slot> {
        let (min, max) = (segment.min(), segment.max());
        let at = self.l1.partition_point(|other| other <= min);
        let is_free = self.l1.get(at).is_none_or(|right| max < right.min())
            && reserved.is_none_or(|(first, last)| max < first || last < min);
        let mut older = self.l0.overlapping(min, max);
        (is_free && older.next().is_none_or(|(other, _)| other >= slot)).then_some(at)
    }

    pub fn check(&self, last: Seq) -> Result<(), Broken> {
        self.l1.check("L1", last)?;
        self.l0.check("L0", last)?;
        Broken::unless(self.l1.is_in_order(), || "segments of L1 overlap".into())?;
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
