//! A set of CPUs that users narrow down to those they want.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, hash_set};
use std::hash::{Hash, Hasher};
use std::path::Path;

use super::CpuLocation;
use crate::error::Result;
use crate::sys::topology::{SYSTEM_DEVICES, online_cpus};

/// A set of CPUs and where each of them sits in the machine.
///
/// The order of iteration is arbitrary.
///
/// # Examples
///
/// ```
/// use glommio::CpuSet;
///
/// # fn main() -> glommio::Result<(), ()> {
/// let online = CpuSet::online()?;
/// assert!(!online.is_empty());
///
/// // Filters add up: the CPUs of package 0 that are in node 0.
/// let some = online
///     .clone()
///     .filter(|location| location.package == 0)
///     .filter(|location| location.numa_node == 0);
/// assert!(some.is_subset(&online));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CpuSet(HashSet<CpuLocation>);

impl CpuSet {
    /// All CPUs that are online now.
    ///
    /// CPUs are there even if this process or thread may not run on them, as is common
    /// in containers. What sysfs does not tell is taken to be as plain as possible: one
    /// NUMA node, one package, each CPU a core of its own. Cores are numbered from
    /// 0 in the whole machine, lower NUMA nodes first, and alike at every call.
    ///
    /// Reads a few small files per CPU, on the calling thread.
    ///
    /// # Errors
    ///
    /// [`GlommioError::IoError`](crate::GlommioError::IoError) if the list of online CPUs
    /// cannot be read, or anything there is cannot be read or understood.
    pub fn online() -> Result<Self, ()> {
        Self::online_in(Path::new(SYSTEM_DEVICES))
    }

    /// The CPUs that are online by what sysfs says, mounted where `system_devices` says.
    pub(super) fn online_in(system_devices: &Path) -> Result<Self, ()> {
        Ok(online_cpus(system_devices)?.into_iter().collect())
    }

    /// Leaves only those CPUs for which `f` returns `true`.
    #[must_use]
    pub fn filter<F>(mut self, f: F) -> Self
    where
        F: FnMut(&CpuLocation) -> bool,
    {
        self.0.retain(f);
        self
    }

    /// Whether there is no CPU in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Goes over the CPUs, in arbitrary order.
    pub fn iter(&self) -> hash_set::Iter<'_, CpuLocation> {
        self.0.iter()
    }

    /// Whether exactly this location is in the set.
    pub fn contains(&self, value: &CpuLocation) -> bool {
        self.0.contains(value)
    }

    /// Whether all CPUs of `other` are in this set.
    pub fn is_superset(&self, other: &Self) -> bool {
        self.0.is_superset(&other.0)
    }

    /// Whether the sets have no CPU in common.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.is_disjoint(&other.0)
    }

    /// Whether all CPUs of this set are in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// The CPUs that are in both sets.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::CpuSet;
    ///
    /// let online = CpuSet::online()?;
    /// let even = online.clone().filter(|location| location.cpu % 2 == 0);
    /// let odd: CpuSet = online.difference(&even).cloned().collect();
    ///
    /// assert_eq!(even.len() + odd.len(), online.len());
    /// assert!(even.is_disjoint(&odd) && online.is_superset(&odd));
    /// assert_eq!(even.intersection(&odd).count(), 0);
    /// assert_eq!(even.union(&odd).count(), online.len());
    /// assert_eq!(even.symmetric_difference(&online).count(), odd.len());
    /// assert!(even.iter().all(|location| online.contains(location)));
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn intersection<'a>(
        &'a self,
        other: &'a Self,
    ) -> hash_set::Intersection<'a, CpuLocation, RandomState> {
        self.0.intersection(&other.0)
    }

    /// The CPUs that are in this set but not in `other`.
    pub fn difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> hash_set::Difference<'a, CpuLocation, RandomState> {
        self.0.difference(&other.0)
    }

    /// The CPUs that are in one of the sets but not in both.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> hash_set::SymmetricDifference<'a, CpuLocation, RandomState> {
        self.0.symmetric_difference(&other.0)
    }

    /// The CPUs that are in at least one of the sets, each once.
    pub fn union<'a>(&'a self, other: &'a Self) -> hash_set::Union<'a, CpuLocation, RandomState> {
        self.0.union(&other.0)
    }

    /// The CPUs by their ids, so that the same set always gives the same choice.
    pub(super) fn into_sorted(self) -> Vec<CpuLocation> {
        let mut locations: Vec<CpuLocation> = self.into_iter().collect();
        locations.sort_unstable_by_key(sort_key);
        locations
    }
}

/// Equal sets hash alike, in whatever order they were filled.
impl Hash for CpuSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut keys: Vec<_> = self.iter().map(sort_key).collect();
        keys.sort_unstable();
        keys.hash(state);
    }
}

impl FromIterator<CpuLocation> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuLocation>>(locations: I) -> Self {
        CpuSet(locations.into_iter().collect())
    }
}

impl IntoIterator for CpuSet {
    type Item = CpuLocation;
    type IntoIter = hash_set::IntoIter<CpuLocation>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a CpuSet {
    type Item = &'a CpuLocation;
    type IntoIter = hash_set::Iter<'a, CpuLocation>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Every field, so that equal keys mean equal locations.
fn sort_key(location: &CpuLocation) -> (usize, usize, usize, usize) {
    let CpuLocation {
        cpu,
        core,
        package,
        numa_node,
    } = *location;
    (cpu, core, package, numa_node)
}
