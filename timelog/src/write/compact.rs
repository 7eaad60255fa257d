//! Which segments to merge.

use std::ops::Range;
use std::sync::Arc;

use super::job::{Job, Route, Target};
use super::output::Cut;
use super::window::Windows;
use crate::config::Limits;
use crate::list::List;
use crate::segment::Segment;
use crate::segments::{Segments, Slot};
use crate::tombstones::Skyline;
use crate::version::Version;
use crate::{Seq, Ts};

/// How much may be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Everything that overlaps or is small, on request.
    Full,
    /// What overlaps; L1 only for L0 segments of at least a quarter of its bytes, so that a trickle
    /// of late rows does not rewrite history.
    Overlap,
}

/// Segments that are connected by overlap.
#[derive(Debug)]
struct Component {
    /// Of L1; empty if there are none.
    l1: Range<Slot>,
    /// Slots of L0, in rising order once it is complete, hence by age.
    l0: Vec<Slot>,
    last: Ts,
}

/// The next compaction of this urgency, if there is one.
pub(crate) fn pick<V: Clone>(
    version: &Version<V>,
    urgency: Urgency,
    limits: &Limits,
    windows: Windows,
    cut: (Arc<Skyline>, Seq),
) -> Option<Job<V>> {
    let components = components(version);
    let mut targets = components
        .iter()
        .filter_map(|component| component.target(version, urgency, limits));
    let target = targets
        .next()
        .or_else(|| small_neighbours(&version.l1, limits))?;
    Some(job(target, windows, cut))
}

/// A job that writes one segment again without the rows that deletes hide; `None` if it is not
/// there any more.
pub(crate) fn rewrite<V: Clone>(
    version: &Version<V>,
    segment: Arc<Segment<V>>,
    windows: Windows,
    cut: (Arc<Skyline>, Seq),
) -> Option<Job<V>> {
    let (l1, l0) = if version.l1.find(&segment).is_some() {
        (vec![segment], Vec::new())
    } else {
        version.l0.find(&segment)?;
        (Vec::new(), vec![segment])
    };
    let to_l0 = l1.is_empty();
    Some(job(Target::Compact { l1, l0, to_l0 }, windows, cut))
}

fn job<V: Clone>(target: Target<V>, windows: Windows, cut: (Arc<Skyline>, Seq)) -> Job<V> {
    let Target::Compact { l1, l0, to_l0 } = &target else {
        unreachable!("compactions are picked here")
    };
    let mut inputs = Vec::new();
    if !l1.is_empty() {
        let mut body = Segments::new();
        l1.iter().for_each(|segment| body.push(Arc::clone(segment)));
        inputs.push(List {
            body: Some(Arc::new(body)),
            tail: None,
        });
    }
    inputs.extend(l0.iter().map(|segment| List::one(Arc::clone(segment))));
    let output = if *to_l0 {
        Cut::Never
    } else {
        Cut::Windows(windows)
    };
    let routes = vec![Route {
        last: Ts::MAX,
        output: 0,
    }];
    Job::new(target, inputs, cut, routes, &[output])
}

/// Neighbours in L1 of less than a quarter of a memtable each: two or more.
fn small_neighbours<V>(l1: &Segments<V>, limits: &Limits) -> Option<Target<V>> {
    let most = if limits.compaction_inputs > 0 {
        limits.compaction_inputs
    } else {
        usize::MAX
    };
    let mut slots = l1.bounds().map(|(slot, ..)| slot).peekable();
    while let Some(start) = slots.next() {
        let rows = |slot| l1.rank(l1.after(slot)) - l1.rank(slot);
        let is_small = |slot: &Slot| rows(*slot) < limits.memtable_rows / 4;
        if !is_small(&start) {
            continue;
        }
        let (mut end, mut count) = (start, 1);
        while count < most
            && let Some(next) = slots.next_if(is_small)
        {
            (end, count) = (next, count + 1);
        }
        let end = l1.after(end);
        // Cut at `segment_rows` again, they would stay as they are.
        let rows = l1.rank(end) - l1.rank(start);
        if count > 1 && rows.div_ceil(limits.segment_rows) < count {
            return Some(Target::Compact {
                l1: between(l1, start..end),
                l0: Vec::new(),
                to_l0: false,
            });
        }
    }
    None
}

/// The segments of a stretch of slots.
fn between<V>(list: &Segments<V>, slots: Range<Slot>) -> Vec<Arc<Segment<V>>> {
    let mut segments = Vec::new();
    let mut at = slots.start;
    while at < slots.end {
        segments.extend(list.get(at).cloned());
        at = list.after(at);
    }
    segments
}

/// The components that have a segment in L0.
///
/// Neighbours in L1 that touch at one timestamp are not connected by that: dense data would make
/// one component of all history. Both join if an L0 segment has that timestamp.
fn components<V>(version: &Version<V>) -> Vec<Component> {
    let mut bounds: Vec<_> = version.l0.bounds().collect();
    bounds.sort_unstable_by_key(|(slot, min, _)| (*min, *slot));
    let l1 = &version.l1;
    let mut components: Vec<Component> = Vec::new();
    for (slot, min, max) in bounds {
        let start = l1.partition_point(|other| other < min);
        let mut end = l1.partition_point(|other| other <= max);
        if l1.get(end).is_some_and(|segment| segment.min() <= max) {
            end = l1.after(end);
        }
        let mut last = max;
        if start < end
            && let Some(segment) = l1.get(l1.before(end))
        {
            last = last.max(segment.max());
        }
        match components.last_mut() {
            // One that shares a segment of L1 with those before begins before its end.
            Some(component) if min <= component.last => {
                component.l0.push(slot);
                component.last = component.last.max(last);
                if component.l1.is_empty() {
                    component.l1 = start..end;
                } else {
                    component.l1.end = component.l1.end.max(end);
                }
            }
            _ => components.push(Component {
                l1: start..end,
                l0: vec![slot],
                last,
            }),
        }
    }
    for component in &mut components {
        component.l0.sort_unstable();
    }
    components
}

impl Component {
    fn target<V>(
        &self,
        version: &Version<V>,
        urgency: Urgency,
        limits: &Limits,
    ) -> Option<Target<V>> {
        let segment = |slot: &Slot| version.l0.get(*slot).map(Arc::clone);
        let segments = |slots: &[Slot]| slots.iter().filter_map(segment).collect::<Vec<_>>();
        let l0_rows = segments(&self.l0)
            .iter()
            .map(|segment| segment.rows())
            .sum::<usize>();
        let l1 = &version.l1;
        let l1_rows = l1.rank(self.l1.end) - l1.rank(self.l1.start);
        let newest = |count: usize| Target::Compact {
            l1: Vec::new(),
            l0: segments(&self.l0[self.l0.len() - count..]),
            to_l0: true,
        };
        if urgency == Urgency::Overlap && l0_rows.saturating_mul(4) < l1_rows {
            let count = self.newest_of_one_size(version);
            return (count > 1).then(|| newest(count));
        }
        let inputs = between(l1, self.l1.clone());
        let count = inputs.len() + self.l0.len();
        if limits.compaction_inputs > 0 && count > limits.compaction_inputs && self.l0.len() > 1 {
            return Some(newest(limits.compaction_inputs.min(self.l0.len())));
        }
        Some(Target::Compact {
            l1: inputs,
            l0: segments(&self.l0),
            to_l0: false,
        })
    }

    /// How many of the newest segments to merge: up to the first that is larger than all newer ones
    /// together, so that their number grows with the logarithm.
    fn newest_of_one_size<V>(&self, version: &Version<V>) -> usize {
        let mut sum = 0;
        let segments = self
            .l0
            .iter()
            .rev()
            .filter_map(|slot| version.l0.get(*slot));
        segments
            .map(|segment| segment.rows())
            .take_while(|rows| {
                let joins = sum == 0 || *rows <= sum;
                sum += rows;
                joins
            })
            .count()
    }
}
