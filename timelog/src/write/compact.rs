//! Which segments to merge.

use std::ops::Range;
use std::sync::Arc;

use super::job::{Job, Route, Target};
use super::output::Cut;
use super::window::Windows;
use crate::config::Limits;
use crate::segment::{List, Segment};
use crate::tombstones::Skyline;
use crate::version::Version;
use crate::{Seq, Ts};

/// How much may be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Everything that overlaps, hides rows or is small, on request.
    Full,
    /// Whatever hides rows.
    Hidden,
    /// What overlaps; L1 only for L0 segments of at least a quarter of its bytes, so that a trickle
    /// of late rows does not rewrite history.
    Overlap,
}

/// Segments that are connected by overlap.
#[derive(Debug, Default, Clone)]
struct Component {
    l1: Option<Range<usize>>,
    /// In rising order, hence by age.
    l0: Vec<usize>,
}

/// The next compaction of this urgency, if there is one.
pub(crate) fn pick<V: Clone>(
    version: &Version<V>,
    urgency: Urgency,
    limits: &Limits,
    windows: Windows,
    cut: (Arc<Skyline>, Seq),
) -> Option<Job<V>> {
    let hides = |segment: &Segment<V>| segment.hidden_rows(&cut.0) > 0;
    let components = components(version);
    let overlapping = components.iter().filter(|component| match urgency {
        Urgency::Full | Urgency::Overlap => true,
        Urgency::Hidden => component.segments(version).any(|segment| hides(segment)),
    });
    let mut targets =
        overlapping.filter_map(|component| component.target(version, urgency, limits));
    let target = targets.next().or_else(|| match urgency {
        Urgency::Full => alone(version, hides).or_else(|| small_neighbours(version, limits)),
        Urgency::Hidden => alone(version, hides),
        Urgency::Overlap => small_neighbours(version, limits),
    })?;

    let Target::Compact { l1, l0, to_l0 } = &target else {
        unreachable!("compactions are picked here")
    };
    let mut inputs = Vec::new();
    if !l1.is_empty() {
        inputs.push(List {
            body: Some(Arc::new(version.l1[l1.clone()].to_vec())),
            tail: None,
        });
    }
    inputs.extend(
        l0.iter()
            .map(|index| List::one(Arc::clone(&version.l0[*index]))),
    );
    let output = if *to_l0 {
        Cut::Never
    } else {
        Cut::Windows(windows)
    };
    let routes = vec![Route {
        last: Ts::MAX,
        output: 0,
    }];
    Some(Job::new(target, inputs, cut, routes, &[output]))
}

/// A segment of L1 that holds hidden rows.
fn alone<V>(version: &Version<V>, hides: impl Fn(&Segment<V>) -> bool) -> Option<Target> {
    let index = version.l1.iter().position(|segment| hides(segment))?;
    Some(Target::Compact {
        l1: index..index + 1,
        l0: Vec::new(),
        to_l0: false,
    })
}

/// Neighbours in L1 of less than a quarter of a memtable each: two or more.
fn small_neighbours<V>(version: &Version<V>, limits: &Limits) -> Option<Target> {
    let is_small = |segment: &Arc<Segment<V>>| segment.rows() < limits.memtable_rows / 4;
    let mut start = 0;
    while start < version.l1.len() {
        let mut count = version.l1[start..]
            .iter()
            .take_while(|segment| is_small(segment))
            .count();
        if limits.compaction_inputs > 0 {
            count = count.min(limits.compaction_inputs);
        }
        // Cut at `segment_rows` again, they would stay as they are.
        let rows: usize = version.l1[start..start + count]
            .iter()
            .map(|segment| segment.rows())
            .sum();
        if count > 1 && rows.div_ceil(limits.segment_rows) < count {
            return Some(Target::Compact {
                l1: start..start + count,
                l0: Vec::new(),
                to_l0: false,
            });
        }
        start += count.max(1);
    }
    None
}

/// The components that have a segment in L0.
///
/// Neighbours in L1 that touch at one timestamp are not connected by that: dense data would make
/// one component of all history. Both join if an L0 segment has that timestamp.
fn components<V>(version: &Version<V>) -> Vec<Component> {
    let mut rest: Vec<usize> = (0..version.l0.len()).collect();
    let mut components = Vec::new();
    while let Some(seed) = rest.first().copied() {
        let mut component = Component::default();
        let (mut first, mut last) = (version.l0[seed].min(), version.l0[seed].max());
        loop {
            let before = component.l0.len();
            rest.retain(|index| {
                let segment = &version.l0[*index];
                let joins = segment.overlaps(first, last);
                if joins {
                    component.l0.push(*index);
                    component.join_l1(version, segment);
                }
                !joins
            });
            for segment in component.segments(version) {
                first = first.min(segment.min());
                last = last.max(segment.max());
            }
            if component.l0.len() == before {
                break;
            }
        }
        component.l0.sort_unstable();
        components.push(component);
    }
    components
}

impl Component {
    fn join_l1<V>(&mut self, version: &Version<V>, segment: &Segment<V>) {
        let start = version
            .l1
            .partition_point(|other| other.max() < segment.min());
        let end = version
            .l1
            .partition_point(|other| other.min() <= segment.max());
        if start < end {
            let joined = self.l1.clone().unwrap_or(start..end);
            self.l1 = Some(joined.start.min(start)..joined.end.max(end));
        }
    }

    fn segments<'v, V>(
        &self,
        version: &'v Version<V>,
    ) -> impl Iterator<Item = &'v Arc<Segment<V>>> {
        let l0: Vec<_> = self.l0.iter().map(|index| &version.l0[*index]).collect();
        version.l1[self.l1_range()].iter().chain(l0)
    }

    fn l1_range(&self) -> Range<usize> {
        self.l1.clone().unwrap_or(0..0)
    }

    fn target<V>(&self, version: &Version<V>, urgency: Urgency, limits: &Limits) -> Option<Target> {
        let l0_rows: usize = self.l0.iter().map(|index| version.l0[*index].rows()).sum();
        let l1_rows: usize = version.l1[self.l1_range()]
            .iter()
            .map(|segment| segment.rows())
            .sum();
        let inputs = self.l0.len() + self.l1_range().len();
        let newest = |count: usize| Target::Compact {
            l1: 0..0,
            l0: self.l0[self.l0.len() - count..].to_vec(),
            to_l0: true,
        };
        if urgency == Urgency::Overlap && l0_rows.saturating_mul(4) < l1_rows {
            let count = self.newest_of_one_size(version);
            return (count > 1).then(|| newest(count));
        }
        if limits.compaction_inputs > 0 && inputs > limits.compaction_inputs && self.l0.len() > 1 {
            return Some(newest(limits.compaction_inputs.min(self.l0.len())));
        }
        Some(Target::Compact {
            l1: self.l1_range(),
            l0: self.l0.clone(),
            to_l0: false,
        })
    }

    /// How many of the newest segments to merge: up to the first that is larger than all newer ones
    /// together, so that their number grows with the logarithm.
    fn newest_of_one_size<V>(&self, version: &Version<V>) -> usize {
        let mut sum = 0;
        let sizes = self.l0.iter().rev().map(|index| version.l0[*index].rows());
        sizes
            .take_while(|rows| {
                let joins = sum == 0 || *rows <= sum;
                sum += rows;
                joins
            })
            .count()
    }
}
