//! From a sealed memtable to segments.
//!
//! The *main piece* are the rows around the median that lie in a gap between existing segments: it
//! overlaps none and goes to L1 at once. Rows below it came later than the memtable, rows above it
//! from the future. Those are cut by windows into few pieces, so that each overlaps little: the
//! windows with the most rows get a piece each, the others one wide piece, since data that is late
//! over all history would otherwise make a segment for each window.

use std::sync::Arc;

use super::job::{Job, Route, Target};
use super::output::Cut;
use super::window::Windows;
use crate::list::List;
use crate::segment::Segment;
use crate::tombstones::Skyline;
use crate::version::Version;
use crate::{Seq, Ts};

/// Pieces a side that have a window of their own.
const PIECES: usize = 3;
/// Windows a side that are looked at; rows beyond go to the wide piece.
const WINDOWS: usize = 64;

/// A job for the oldest sealed memtable, if there is one. `reserved` is where a compaction that is
/// under way will put its outputs.
pub(crate) fn flush_job<V: Clone>(
    version: &Version<V>,
    reserved: Option<(Ts, Ts)>,
    windows: Windows,
    cut: (Arc<Skyline>, Seq),
) -> Option<Job<V>> {
    let sealed = version.sealed.first()?;
    let rows = Rows {
        lists: &sealed.lists,
    };
    let (first, last) = rows.bounds();
    let mut routes = Vec::new();
    let mut outputs = Vec::new();
    let mut next = Some(first);
    if let Some((low, high)) = gap(version, reserved, rows.median()) {
        let main = outputs.len();
        outputs.push(Cut::Windows(windows));
        if first < low {
            side(&rows, windows, (first, low - 1), &mut routes, &mut outputs);
        }
        routes.push(Route {
            last: high,
            output: main,
        });
        next = high.checked_add(1).filter(|next| *next <= last);
    }
    if let Some(next) = next {
        side(&rows, windows, (next, last), &mut routes, &mut outputs);
    }
    if let Some(end) = routes.last_mut() {
        end.last = Ts::MAX;
    }
    Some(Job::new(
        Target::Flush,
        sealed.lists.clone(),
        cut,
        routes,
        &outputs,
    ))
}

/// The stretch around `ts`, both ends inside, that shares no timestamp with a segment but the last
/// of an L1 segment on its left: rows there are older and in L1, where the left one is read first.
fn gap<V>(version: &Version<V>, reserved: Option<(Ts, Ts)>, ts: Ts) -> Option<(Ts, Ts)> {
    let at = version.l1.partition_point(|max| max <= ts);
    let mut low = Ts::MIN;
    if at > 0 {
        low = version.l1.get(version.l1.before(at))?.max();
    }
    let mut high = Ts::MAX;
    if let Some(right) = version.l1.get(at) {
        high = right.min().checked_sub(1).filter(|high| ts <= *high)?;
    }
    let l0 = version.l0.bounds().map(|(_, min, max)| (min, max));
    for (min, max) in l0.chain(reserved) {
        if min > ts {
            high = high.min(min - 1);
        } else if max < ts {
            low = low.max(max + 1);
        } else {
            return None;
        }
    }
    Some((low, high))
}

/// Routes for rows beside the main piece.
fn side<V>(
    rows: &Rows<'_, V>,
    windows: Windows,
    (first, last): (Ts, Ts),
    routes: &mut Vec<Route>,
    outputs: &mut Vec<Cut>,
) {
    // The windows that have rows: where they end, and how many.
    let mut found: Vec<(Ts, usize)> = Vec::new();
    let mut next = rows.at_or_after(first);
    while let Some(start) = next.filter(|start| *start <= last && found.len() < WINDOWS) {
        let end = windows.last(start).min(last);
        found.push((end, rows.within(start, end)));
        next = end.checked_add(1).and_then(|next| rows.at_or_after(next));
    }
    let Some(end) = found.last_mut() else { return };
    if next.is_none_or(|next| next > last) {
        end.0 = last;
    }
    let mut sizes: Vec<_> = found.iter().map(|window| window.1).collect();
    sizes.sort_unstable_by_key(|rows| std::cmp::Reverse(*rows));
    let least = if found.len() <= PIECES + 1 {
        0
    } else {
        sizes[PIECES - 1]
    };
    let mut own = 0;
    let mut wide = None;
    let mut wide_output = |outputs: &mut Vec<Cut>| {
        *wide.get_or_insert_with(|| {
            outputs.push(Cut::Never);
            outputs.len() - 1
        })
    };
    for (end, rows) in &found {
        let is_own = *rows >= least && own <= PIECES;
        let output = if is_own {
            own += 1;
            outputs.push(Cut::Never);
            outputs.len() - 1
        } else {
            wide_output(outputs)
        };
        routes.push(Route { last: *end, output });
    }
    if routes.last().is_some_and(|route| route.last < last) {
        let output = wide_output(outputs);
        routes.push(Route { last, output });
    }
}

/// Counts over the sources of a memtable, hidden rows included.
struct Rows<'s, V> {
    lists: &'s [List<V>],
}

impl<V> Rows<'_, V> {
    fn segments(&self) -> impl Iterator<Item = &Arc<Segment<V>>> {
        self.lists.iter().flat_map(List::segments)
    }

    fn bounds(&self) -> (Ts, Ts) {
        let bounds = self
            .segments()
            .map(|segment| (segment.min(), segment.max()));
        bounds
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .expect("a sealed memtable has rows")
    }

    fn within(&self, first: Ts, last: Ts) -> usize {
        self.segments()
            .map(|segment| segment.rows_within(first, last))
            .sum()
    }

    fn at_or_after(&self, ts: Ts) -> Option<Ts> {
        let runs = self.lists.iter().map(crate::read::Run::from);
        let rows = runs.filter_map(|run| {
            let place = run.lower(ts);
            (place < run.end()).then(|| run.ts(place))
        });
        rows.min()
    }

    /// A timestamp near that of the middle row: the middle of the chunk that half of the rows begin
    /// before. An exact one would cost dozens of searches in every chunk, and the main piece
    /// would be the same.
    fn median(&self) -> Ts {
        let mut chunks: Vec<_> = self.segments().collect();
        chunks.sort_unstable_by_key(|chunk| chunk.min());
        let half = chunks.iter().map(|chunk| chunk.rows()).sum::<usize>() / 2;
        let mut rows = 0;
        let middle = chunks.iter().find(|chunk| {
            rows += chunk.rows();
            rows > half
        });
        let chunk = middle.expect("a sealed memtable has rows");
        let page = &chunk.pages()[0];
        page.ts[page.len() / 2]
    }
}
