//! The state of a log.

use std::fmt;
use std::sync::Arc;

use crate::config::Limits;
use crate::segment::Segment;
use crate::tombstones::Skyline;
use crate::version::{Version, View};
use crate::write::{Job, Memtable, Survey, Windows};
use crate::{Broken, Seq, Snapshot, Stats, Ts};

use super::trash::Trash;

/// A log without the question who may use it.
pub(crate) struct Core<V> {
    pub limits: Arc<Limits>,
    pub seq: Seq,
    pub floor: Option<Ts>,
    pub memtable: Memtable<V>,
    /// So many rows may be appended to the first lane, one by one, without a look at anything else:
    /// see `append_plain`. Every other access to the log sets it to 0.
    pub plain_appends: usize,
    pub version: Arc<Version<V>>,
    /// Rows in sealed memtables.
    pub sealed_rows: usize,
    pub skyline: Arc<Skyline>,
    pub windows: Windows,
    /// Goes before everything else.
    pub flush: Option<Box<Job<V>>>,
    /// Is parked while there is something to flush.
    pub compaction: Option<Box<Job<V>>>,
    /// What is no longer part of the log, dropped a part at a time.
    pub trash: Trash<V>,
    /// From which timestamp to which delete intervals are to be counted again, both inside.
    pub recount: Option<(Ts, Ts)>,
    pub survey: Option<Box<Survey<V>>>,
    /// To be written again without what is hidden, the most urgent last.
    pub crowded: Vec<Arc<Segment<V>>>,
    pub is_compaction_requested: bool,
    /// Calls of `step` in sequence that found nothing to do.
    pub idle_steps: u32,
    /// Whether nothing was found to do, and nothing changed since: an idle step then costs no
    /// search. The second one is for work that waits for idle steps.
    pub is_quiet: bool,
    pub is_settled: bool,
    /// Rows that writes have yet to move, under `Busy::Flush`.
    pub owed_rows: usize,
    /// The last snapshot, until something changes.
    pub cached: Option<Snapshot<V>>,
    pub counters: Stats,
}

impl<V> fmt::Debug for Core<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemLog")
            .field("seq", &self.seq)
            .field("floor", &self.floor)
            .finish_non_exhaustive()
    }
}

impl<V> Core<V> {
    pub fn new(limits: Arc<Limits>, floor: Option<Ts>) -> Self {
        Self {
            windows: Windows::new(&limits),
            limits,
            seq: Seq(0),
            floor,
            memtable: Memtable::new(),
            plain_appends: 0,
            version: Arc::new(Version::new()),
            sealed_rows: 0,
            skyline: Arc::new(Skyline::new()),
            flush: None,
            compaction: None,
            trash: Trash::new(),
            recount: None,
            survey: None,
            crowded: Vec::new(),
            is_compaction_requested: false,
            idle_steps: 0,
            is_quiet: true,
            is_settled: true,
            owed_rows: 0,
            cached: None,
            counters: Stats::default(),
        }
    }

    pub fn snapshot(&mut self) -> Snapshot<V>
    where
        V: Clone,
    {
        if let Some(cached) = &self.cached {
            return cached.clone();
        }
        let view = View {
            seq: self.seq,
            version: Arc::clone(&self.version),
            memtable: self.memtable.view(self.seq),
            skyline: Arc::clone(&self.skyline),
            is_counted: self.recount.is_none(),
        };
        let snapshot = self.cached.insert(Snapshot::new(view)).clone();
        // At the end: a value's drop may panic.
        let _stale = self.memtable.take_stale();
        snapshot
    }

    pub fn unflushed_rows(&self) -> usize {
        self.memtable.rows() + self.sealed_rows
    }

    pub fn stats(&self) -> Stats {
        let version = &*self.version;
        Stats {
            seq: self.seq,
            floor: self.floor,
            memtable_rows: self.memtable.rows(),
            sealed_runs: version.sealed.len(),
            sealed_rows: self.sealed_rows,
            unflushed_bytes: self.unflushed_rows() * self.limits.row_bytes,
            l0_segments: version.l0.len(),
            l1_segments: version.l1.len(),
            segment_rows: version.segment_rows(),
            hidden_rows: match self.recount {
                None => self.skyline.hidden(),
                Some(_) => self.hidden_rows(),
            },
            delete_intervals: self.skyline.len(),
            window_ticks: self.windows.ticks(),
            ..self.counters
        }
    }

    pub fn check(&self) -> Result<(), Broken> {
        self.skyline.check(self.seq)?;
        self.memtable.check(self.seq)?;
        self.version.check(self.seq)?;
        let sealed: usize = self.version.sealed.iter().map(|sealed| sealed.rows).sum();
        Broken::unless(sealed == self.sealed_rows, || {
            "rows of sealed memtables".into()
        })?;
        if self.recount.is_some() {
            return Ok(());
        }
        for piece in self.skyline.between(Ts::MIN, Ts::MAX) {
            let hidden = self.version.rows_under(piece);
            Broken::unless(hidden == piece.hidden, || {
                format!(
                    "delete of {} to {}: hides {hidden} rows, counted {}",
                    piece.first, piece.last, piece.hidden
                )
            })?;
        }
        Broken::unless(self.hidden_rows() == self.skyline.hidden(), || {
            "hidden rows of all segments".into()
        })
    }

    /// Counted one by one.
    fn hidden_rows(&self) -> usize {
        let segments = self.version.segments();
        segments.map(|it| it.hidden_rows(&self.skyline)).sum()
    }
}
