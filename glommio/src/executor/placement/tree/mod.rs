//! The machine as a tree, from which CPUs are picked far apart or close together.
//!
//! ```text
//!                       machine                 each branch counts
//!                 ┌────────┴────────┐             cpus:  leaves below it
//!               node 0            node 1          picks: leaves picked below it
//!             ┌───┴───┐             │
//!         package 0  package 1   package 2      packages outside nodes if the
//!          ┌──┴──┐      │           │           set spans fewer packages than nodes
//!       core 0  core 1 core 2     core 3
//!        ┌┴┐     │      │           │
//!        0 1     6      5           4           CPUs
//! ```
//!
//! A pick walks from the root to a CPU, choosing one child per level and counting on
//! the way:
//!
//! - *spread* takes the child with the smallest part `picks / cpus` of its CPUs picked;
//! - *pack* goes on with a child whose CPUs are partly picked; failing that, it begins the child
//!   that was picked empty fewer times, and of those the largest.
//!
//! Ties go to the lowest id, so the choice is the same every time.
//!
//! Invariants: a branch has as many picks as its children together; after any multiple
//! of `cpus` picks all CPUs below a branch have been picked equally often. (Spread: a
//! child that is due again has part 1, so any child that is not yet through goes first.
//! Pack: a child is not left before it is through, and one that is through fewer
//! times goes first.) Memory sizes and NUMA distances play no role.
//!
//! Cost: a pick looks at all children of each branch on its path.

#[cfg(test)]
mod tests;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashSet};

use super::{CpuLocation, CpuSet};

/// A set of CPUs from which one after the other is picked, without end.
#[derive(Debug)]
pub(super) struct CpuTree {
    root: Branch,
    spacing: Spacing,
}

/// How picks lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// As far apart as possible.
    Spread,
    /// As close together as possible.
    Pack,
}

impl CpuTree {
    /// # Panics
    ///
    /// If the set is empty: there would be nothing to pick.
    pub(super) fn new(cpus: CpuSet, spacing: Spacing) -> Self {
        assert!(!cpus.is_empty(), "a tree of CPUs has at least one");
        let levels = levels(&cpus);
        CpuTree {
            root: Branch::grow(cpus.into_sorted(), &levels),
            spacing,
        }
    }

    /// The next CPU; starts again when all have been picked.
    pub(super) fn pick(&mut self) -> CpuLocation {
        self.root.pick(self.spacing)
    }
}

/// What CPUs are told apart by, from the outside in. Together these are all fields, so
/// what is alike in each of them is one CPU.
fn levels(cpus: &CpuSet) -> [Level; 4] {
    let packages = cpus.iter().map(package).collect::<HashSet<_>>().len();
    let numa_nodes = cpus.iter().map(numa_node).collect::<HashSet<_>>().len();
    if packages < numa_nodes {
        [package, numa_node, core, cpu]
    } else {
        [numa_node, package, core, cpu]
    }
}

type Level = fn(&CpuLocation) -> usize;

fn numa_node(location: &CpuLocation) -> usize {
    location.numa_node
}

fn package(location: &CpuLocation) -> usize {
    location.package
}

fn core(location: &CpuLocation) -> usize {
    location.core
}

fn cpu(location: &CpuLocation) -> usize {
    location.cpu
}

#[derive(Debug)]
struct Branch {
    /// How many CPUs are below; never zero.
    cpus: usize,
    /// How often one of them was picked.
    picks: usize,
    below: Below,
}

#[derive(Debug)]
enum Below {
    /// Ascending by id.
    Branches(Vec<Branch>),
    Cpu(CpuLocation),
}

impl Branch {
    fn grow(mut locations: Vec<CpuLocation>, levels: &[Level]) -> Self {
        let cpus = locations.len();
        let below = match levels.split_first() {
            Some((level, inner_levels)) => {
                let mut groups: BTreeMap<usize, Vec<CpuLocation>> = BTreeMap::new();
                for location in locations {
                    groups.entry(level(&location)).or_default().push(location);
                }
                Below::Branches(
                    groups
                        .into_values()
                        .map(|group| Branch::grow(group, inner_levels))
                        .collect(),
                )
            }
            None => {
                assert_eq!(cpus, 1, "locations that are alike in all fields are one");
                Below::Cpu(locations.remove(0))
            }
        };
        Branch {
            cpus,
            picks: 0,
            below,
        }
    }

    fn pick(&mut self, spacing: Spacing) -> CpuLocation {
        self.picks += 1;
        match &mut self.below {
            Below::Cpu(location) => location.clone(),
            Below::Branches(branches) => branches
                .iter_mut()
                .min_by(|a, b| spacing.compare(a, b))
                .expect("a branch has a child for each of its CPUs' ids")
                .pick(spacing),
        }
    }

    fn is_partly_picked(&self) -> bool {
        !self.picks.is_multiple_of(self.cpus)
    }

    fn times_picked_empty(&self) -> usize {
        self.picks / self.cpus
    }
}

impl Spacing {
    /// `Less` if `a` is the better choice.
    fn compare(self, a: &Branch, b: &Branch) -> Ordering {
        match self {
            // a.picks / a.cpus against b.picks / b.cpus, in whole numbers.
            Spacing::Spread => (a.picks * b.cpus).cmp(&(b.picks * a.cpus)),
            Spacing::Pack => {
                let rank = |branch: &Branch| {
                    (
                        Reverse(branch.is_partly_picked()),
                        branch.times_picked_empty(),
                        Reverse(branch.cpus),
                    )
                };
                rank(a).cmp(&rank(b))
            }
        }
    }
}
