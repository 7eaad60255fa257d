//! A merge of sources into segments that goes on in steps.

use std::sync::Arc;

use super::output::{Cut, Output};
use crate::config::Limits;
use crate::list::List;
use crate::read::{Cursor, Merge, Place, Run};
use crate::segment::Segment;
use crate::tombstones::Skyline;
use crate::{Seq, Ts};

/// What a finished job replaces.
#[derive(Clone, Debug)]
pub(crate) enum Target<V> {
    /// The oldest sealed memtable.
    Flush,
    /// Segments, named themselves and not by their places: those change while the job is parked.
    Compact {
        /// Neighbours of L1, in time order.
        l1: Vec<Arc<Segment<V>>>,
        /// Of L0, by age.
        l0: Vec<Arc<Segment<V>>>,
        /// Whether the outputs stay in L0, at the place of the newest input.
        to_l0: bool,
    },
}

/// Up to which timestamp rows go to which output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub last: Ts,
    pub output: usize,
}

/// What it costs to find the next source and the stretch that it gives, in rows that are copied: a
/// step is to take about as long whether its inputs interleave or not.
const STRETCH_ROWS: usize = 3;

/// Inputs, how far they are read, and outputs in the making.
///
/// Deletes that are accepted while it runs are newer than its watermark and go on hiding rows of
/// its outputs.
#[derive(Debug)]
pub(crate) struct Job<V> {
    target: Target<V>,
    /// From the first timestamp of the inputs to the last, both inside.
    span: (Ts, Ts),
    /// By age, the oldest first.
    inputs: Vec<List<V>>,
    at: Vec<Place>,
    cut: Arc<Skyline>,
    /// In rising order; the last goes to the end of time.
    routes: Vec<Route>,
    outputs: Vec<Output<V>>,
}

impl<V: Clone> Job<V> {
    pub(super) fn new(
        target: Target<V>,
        inputs: Vec<List<V>>,
        (cut, watermark): (Arc<Skyline>, Seq),
        routes: Vec<Route>,
        outputs: &[Cut],
    ) -> Self {
        debug_assert!(
            routes.last().is_some_and(|route| route.last == Ts::MAX),
            "every row has a route"
        );
        let at = vec![Place::default(); inputs.len()];
        let outputs = outputs.iter().map(|cut| Output::new(*cut, watermark));
        let segments = inputs.iter().flat_map(List::segments);
        let span = segments.fold((Ts::MAX, Ts::MIN), |(first, last), segment| {
            (first.min(segment.min()), last.max(segment.max()))
        });
        Self {
            outputs: outputs.collect(),
            target,
            span,
            inputs,
            at,
            cut,
            routes,
        }
    }

    pub fn span(&self) -> (Ts, Ts) {
        self.span
    }

    /// Moves at most `rows` rows, rounded up to a stretch of one page, and fewer where the inputs
    /// interleave; gives their number and whether all are moved.
    ///
    /// If a clone panics the job must not be stepped again.
    pub fn step(&mut self, rows: usize, limits: &Limits) -> (usize, bool) {
        let cursors = self.inputs.iter().zip(&self.at);
        let mut merge = Merge::Empty;
        for (list, at) in cursors {
            merge.push(Cursor::resume(Run::from(list), &self.cut, *at));
        }
        let (mut moved, mut stretches) = (0, 0);
        while moved + stretches * STRETCH_ROWS < rows.max(1) {
            let Some((mut span, whole)) = merge.take_front_and_page() else {
                break;
            };
            let count = span.len();
            moved += count;
            stretches += 1;
            while !span.is_empty() {
                let route = self.routes[self
                    .routes
                    .partition_point(|route| route.last < span.first())];
                let here = span.timestamps().partition_point(|ts| *ts <= route.last);
                let (taken, rest) = span.split_at(here);
                self.outputs[route.output].push(taken, whole.filter(|_| here == count), limits);
                span = rest;
            }
        }
        for (list, at) in self.inputs.iter().zip(&mut self.at) {
            *at = Run::from(list).end();
        }
        for (number, place) in merge.places() {
            self.at[number] = place;
        }
        (moved, merge.is_exhausted())
    }

    /// What it replaces, and by what. Drops no value: the version still has the inputs.
    pub fn finish(self) -> (Target<V>, Vec<Arc<Segment<V>>>) {
        let outputs = self.outputs.into_iter().flat_map(Output::finish);
        (self.target, outputs.collect())
    }
}
