//! Hands out the CPUs of a placement that has passed its checks, shard by shard.

use std::vec;

use super::tree::CpuTree;
use super::{CpuLocation, CpuSet};

/// Hands out the CPUs of a placement, one set per shard.
///
/// Made by [`Placement::generate_cpu_set`](crate::Placement::generate_cpu_set) and
/// [`PoolPlacement::generate_cpu_set`](crate::PoolPlacement::generate_cpu_set).
#[derive(Debug)]
pub struct CpuSetGenerator {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Unbound,
    Fenced(Vec<CpuLocation>),
    Picked(CpuTree),
    Listed(vec::IntoIter<CpuSet>),
}

impl CpuSetGenerator {
    pub(super) fn unbound() -> Self {
        CpuSetGenerator {
            source: Source::Unbound,
        }
    }

    /// All shards on all of these CPUs.
    pub(super) fn fenced(cpus: CpuSet) -> Self {
        CpuSetGenerator {
            source: Source::Fenced(cpus.into_sorted()),
        }
    }

    /// Each shard on the next pick.
    pub(super) fn picked(tree: CpuTree) -> Self {
        CpuSetGenerator {
            source: Source::Picked(tree),
        }
    }

    /// Each shard on the next set.
    pub(super) fn listed(sets: Vec<CpuSet>) -> Self {
        CpuSetGenerator {
            source: Source::Listed(sets.into_iter()),
        }
    }

    /// The CPUs for the next shard.
    ///
    /// [`MaxSpread`](crate::PoolPlacement::MaxSpread) and
    /// [`MaxPack`](crate::PoolPlacement::MaxPack) start again once every CPU has been
    /// handed out.
    ///
    /// # Panics
    ///
    /// If [`Custom`](crate::PoolPlacement::Custom) is asked for more sets than it was given.
    pub fn next(&mut self) -> CpuIter {
        let locations = match &mut self.source {
            Source::Unbound => None,
            Source::Fenced(locations) => Some(locations.clone()),
            Source::Picked(tree) => Some(vec![tree.pick()]),
            Source::Listed(sets) => Some(
                sets.next()
                    .expect("a custom placement has as many sets as shards")
                    .into_sorted(),
            ),
        };
        CpuIter {
            locations: locations.map(Vec::into_iter),
        }
    }
}

/// The CPUs that one shard is bound to, in ascending order of their ids.
#[derive(Clone, Debug)]
pub struct CpuIter {
    locations: Option<vec::IntoIter<CpuLocation>>,
}

impl CpuIter {
    /// The ids of the CPUs to bind to, or `None` for "do not bind".
    pub fn cpu_binding(self) -> Option<impl IntoIterator<Item = usize>> {
        self.locations
            .map(|locations| locations.map(|location| location.cpu))
    }
}

/// Nothing for a shard that is not bound.
impl Iterator for CpuIter {
    type Item = CpuLocation;

    fn next(&mut self) -> Option<CpuLocation> {
        self.locations.as_mut()?.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.locations.as_ref().map_or(0, ExactSizeIterator::len);
        (left, Some(left))
    }
}
