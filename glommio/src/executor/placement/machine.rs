//! The machine that placements are checked against: this one, or one that tests made up.

use std::io;
use std::path::Path;

use super::CpuSet;
use crate::error::{BuilderErrorKind, GlommioError, Result};
use crate::sys::affinity::AffinityMask;
use crate::sys::topology::{SYSTEM_DEVICES, online_ids};

/// Where it is looked up which CPUs there are. Nothing is before it is needed.
pub(super) struct Machine<'a> {
    system_devices: &'a Path,
    affinity: &'a dyn Fn() -> io::Result<Option<AffinityMask>>,
    process: &'a dyn Fn() -> Option<AffinityMask>,
}

impl<'a> Machine<'a> {
    /// This machine, seen from the calling thread.
    pub(super) fn here() -> Machine<'static> {
        Machine {
            system_devices: Path::new(SYSTEM_DEVICES),
            affinity: &AffinityMask::of_calling_thread,
            process: &AffinityMask::of_process,
        }
    }

    /// A made-up machine, for a thread and a process with made-up masks.
    #[cfg(test)]
    pub(super) fn made_up(
        system_devices: &'a Path,
        affinity: &'a dyn Fn() -> io::Result<Option<AffinityMask>>,
        process: &'a dyn Fn() -> Option<AffinityMask>,
    ) -> Self {
        Machine {
            system_devices,
            affinity,
            process,
        }
    }

    /// The CPUs that are online now.
    pub(super) fn online(&self) -> Result<CpuSet, ()> {
        CpuSet::online_in(self.system_devices)
    }

    /// The online CPUs that the calling thread may run on.
    pub(super) fn permitted(&self) -> Result<CpuSet, ()> {
        let online = self.online()?;
        Ok(match (self.affinity)()? {
            Some(permitted) => online.filter(|location| permitted.contains(location.cpu)),
            // Nothing is known to be forbidden, and binding still fails if it is.
            None => online,
        })
    }

    /// Those of `cpus` that the process may use. The calling thread may be bound to fewer: its
    /// shards need not be.
    pub(super) fn usable(&self, cpus: CpuSet) -> Result<CpuSet, ()> {
        let has_all = |mask: &AffinityMask| cpus.iter().all(|at| mask.contains(at.cpu));
        if (self.affinity)()?.as_ref().is_none_or(has_all) {
            return Ok(cpus);
        }
        Ok(match (self.process)() {
            Some(usable) => cpus.filter(|location| usable.contains(location.cpu)),
            // As above.
            None => cpus,
        })
    }

    /// Refuses CPUs that are not online.
    ///
    /// Only ids count: what users say of a CPU's core or node steers the choice, but
    /// cannot be wrong.
    pub(super) fn check_online<'s>(
        &self,
        sets: impl IntoIterator<Item = &'s CpuSet>,
    ) -> Result<(), ()> {
        let online = online_ids(self.system_devices)?;
        let lowest_missing = sets
            .into_iter()
            .flatten()
            .map(|location| location.cpu)
            .filter(|cpu| !online.contains(cpu))
            .min();
        match lowest_missing {
            Some(cpu) => Err(GlommioError::BuilderError(
                BuilderErrorKind::NonExistentCpus { cpu },
            )),
            None => Ok(()),
        }
    }
}
