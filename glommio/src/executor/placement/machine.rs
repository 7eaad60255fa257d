//! The machine that placements are checked against: this one, or one that tests made up.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use super::CpuSet;
use crate::error::{BuilderErrorKind, GlommioError, Result};
use crate::sys::affinity::AffinityMask;
use crate::sys::topology::SYSTEM_DEVICES;

/// Where it is looked up which CPUs there are. Nothing is before it is needed.
pub(super) struct Machine<'a> {
    system_devices: &'a Path,
    affinity: &'a dyn Fn() -> io::Result<Option<AffinityMask>>,
}

impl<'a> Machine<'a> {
    /// This machine, seen from the calling thread.
    pub(super) fn here() -> Machine<'static> {
        Machine {
            system_devices: Path::new(SYSTEM_DEVICES),
            affinity: &AffinityMask::of_calling_thread,
        }
    }

    /// A made-up machine, for a thread with a made-up affinity mask.
    #[cfg(test)]
    pub(super) fn made_up(
        system_devices: &'a Path,
        affinity: &'a dyn Fn() -> io::Result<Option<AffinityMask>>,
    ) -> Self {
        Machine {
            system_devices,
            affinity,
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

    /// Refuses CPUs that are not online.
    ///
    /// Only ids count: what users say of a CPU's core or node steers the choice, but
    /// cannot be wrong.
    pub(super) fn check_online<'s>(
        &self,
        sets: impl IntoIterator<Item = &'s CpuSet>,
    ) -> Result<(), ()> {
        let online: HashSet<usize> = self.online()?.iter().map(|at| at.cpu).collect();
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
