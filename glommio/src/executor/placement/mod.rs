//! Which CPUs an executor, or each shard of a pool, is bound to.
//!
//! ```text
//!   Placement ─────┐ generate_cpu_set          next            cpu_binding
//!                  ├──────────────▶ generator ─────▶ CpuIter ──────────────▶ CPU ids
//!   PoolPlacement ─┘                  │ a shard each                         or none
//!                                     └─ tree: spread or pack
//! ```
//!
//! Owns the checks of what users ask for and the choice of CPUs; binding itself is
//! done by the executor through `sys::affinity`, and `sys::topology` reads how the
//! machine is built.
//!
//! Invariants: a generator only exists for a placement that passed its checks, in
//! the order number of shards, number of CPUs, existence of CPUs; and the same
//! placement on the same machine always gives the same CPUs in the same order.
//!
//! Cost: [`CpuSet::online`] reads a few files per CPU, and all placements but the
//! unbound ones need it. A pick walks a tree of five levels.

#![forbid(unsafe_code)]

mod cpu_set;
mod generator;
mod machine;
#[cfg(test)]
mod tests;
mod tree;

use std::thread;

pub use self::cpu_set::CpuSet;
pub use self::generator::CpuSetGenerator;
use self::machine::Machine;
use self::tree::{CpuTree, Spacing};
use crate::error::{BuilderErrorKind, GlommioError, Result};
use crate::panic;
use crate::sys::affinity::AffinityMask;
pub use crate::sys::topology::CpuLocation;

/// Which CPUs a single executor may run on.
///
/// # Examples
///
/// ```
/// use glommio::{CpuSet, Placement};
///
/// # fn main() -> glommio::Result<(), ()> {
/// // Somewhere on the first NUMA node.
/// let nearby = CpuSet::online()?.filter(|location| location.numa_node == 0);
/// let placement = Placement::Fenced(nearby);
/// # placement.generate_cpu_set()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On this CPU alone, by the number the operating system gives it.
    Fixed(usize),

    /// On any CPU; the operating system chooses and may move it. An executor placed so never spins
    /// before it sleeps.
    Unbound,

    /// On all CPUs of this set, and no others.
    Fenced(CpuSet),
}

impl Placement {
    /// Checks the placement against the CPUs that are online now and returns what
    /// hands out the CPUs to bind to.
    ///
    /// # Errors
    ///
    /// - [`BuilderErrorKind::InsufficientCpus`] for an empty set;
    /// - [`BuilderErrorKind::NonExistentCpus`] if a CPU is not online, with the lowest such CPU;
    /// - [`GlommioError::IoError`] if the topology of the machine cannot be read.
    pub fn generate_cpu_set(self) -> Result<CpuSetGenerator, ()> {
        self.generate_on(&Machine::here())
    }

    fn generate_on(self, machine: &Machine<'_>) -> Result<CpuSetGenerator, ()> {
        match self {
            Placement::Unbound => Ok(CpuSetGenerator::unbound()),
            Placement::Fenced(cpus) => {
                check_enough(&cpus, 1)?;
                machine.check_online([&cpus])?;
                Ok(CpuSetGenerator::fenced(cpus))
            }
            Placement::Fixed(cpu) => {
                let cpus = machine.online()?.filter(|location| location.cpu == cpu);
                if cpus.is_empty() {
                    return Err(GlommioError::BuilderError(
                        BuilderErrorKind::NonExistentCpus { cpu },
                    ));
                }
                Ok(CpuSetGenerator::fenced(cpus))
            }
        }
    }
}

/// Which CPUs the shards of a pool may run on, and how many shards there are.
///
/// # Examples
///
/// ```
/// use glommio::{CpuSet, PoolPlacement};
///
/// # fn main() -> glommio::Result<(), ()> {
/// // A shard for every CPU that this thread may use.
/// let shards = PoolPlacement::default_shards();
/// let everywhere = PoolPlacement::MaxSpread(shards, None);
/// assert_eq!(everywhere.executor_count(), shards);
/// let too_many = PoolPlacement::MaxSpread(10_000, Some(CpuSet::online()?));
/// assert!(too_many.generate_cpu_set().is_err());
///
/// // A shard for every core, no two on threads of the same core.
/// let mut seen = std::collections::HashSet::new();
/// let cores = CpuSet::online()?.filter(|location| seen.insert(location.core));
/// let by_core = PoolPlacement::MaxPack(cores.len(), Some(cores));
/// # assert!(by_core.executor_count() > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PoolPlacement {
    /// One shard per set, each on all CPUs of its set and no others, in the order of the
    /// vector: the first shard gets the first set. The sets may overlap.
    Custom(Vec<CpuSet>),

    /// This many shards, each on all CPUs of this set and no others. There may be more
    /// shards than CPUs.
    Fenced(usize, CpuSet),

    /// This many shards, on any CPUs; the operating system chooses and may move them. Shards placed
    /// so never spin before they sleep.
    Unbound(usize),

    /// This many shards, each on one CPU of its own, as close together as possible: all
    /// threads of a core before the next core, and so on for packages and NUMA nodes.
    ///
    /// `None` means the same as for [`MaxSpread`](Self::MaxSpread).
    MaxPack(usize, Option<CpuSet>),

    /// This many shards, each on one CPU of its own, as far apart as possible: over the
    /// NUMA nodes first, then packages, cores and threads.
    ///
    /// `None` stands for the online CPUs that the calling thread may run on at the time
    /// of the call, which leaves out what a container or `taskset` forbids. Of a set, the CPUs
    /// that a container forbids to the process are left out, as [`CpuSet::online`] has them, too.
    MaxSpread(usize, Option<CpuSet>),
}

impl PoolPlacement {
    /// How many shards a program should have that was not told a number: one for each CPU that the
    /// calling thread may run on, but no more than the CPU quota of its cgroups pays for (`cpu.max`,
    /// and `cpu.cfs_quota_us` of the first version). Never zero.
    ///
    /// A quota of two and a half CPUs counts as two. Shards that use it up before the end of its
    /// period, which is 100 ms as a rule, are all stopped until then. That a quota lowers the number
    /// is logged, at the level `info`.
    ///
    /// Reads a few small files, on the calling thread.
    pub fn default_shards() -> usize {
        let permitted = AffinityMask::of_calling_thread().ok().flatten();
        // The standard library knows the mask, and both versions of quotas.
        let available = thread::available_parallelism().map_or(1, usize::from);
        shards_of(permitted.map(|mask| mask.len()), available)
    }

    /// How many shards there will be.
    pub fn executor_count(&self) -> usize {
        match self {
            PoolPlacement::Custom(sets) => sets.len(),
            PoolPlacement::MaxPack(shards, _)
            | PoolPlacement::MaxSpread(shards, _)
            | PoolPlacement::Fenced(shards, _)
            | PoolPlacement::Unbound(shards) => *shards,
        }
    }

    /// Checks the placement against the CPUs that are online now and returns what
    /// hands out the CPUs to bind to, shard by shard.
    ///
    /// # Errors
    ///
    /// The first of these that applies:
    ///
    /// - [`BuilderErrorKind::NrShards`] for zero shards, but not for an empty
    ///   [`Custom`](Self::Custom);
    /// - [`BuilderErrorKind::InsufficientCpus`] for an empty set, and for
    ///   [`MaxSpread`](Self::MaxSpread) and [`MaxPack`](Self::MaxPack) with more shards than CPUs,
    ///   or than those of them that the process may use;
    /// - [`BuilderErrorKind::NonExistentCpus`] if a CPU is not online, with the lowest such CPU;
    /// - [`GlommioError::IoError`] if the topology of the machine cannot be read.
    pub fn generate_cpu_set(self) -> Result<CpuSetGenerator, ()> {
        self.generate_on(&Machine::here())
    }

    fn generate_on(self, machine: &Machine<'_>) -> Result<CpuSetGenerator, ()> {
        match self {
            PoolPlacement::Unbound(shards) => {
                check_shards(shards)?;
                Ok(CpuSetGenerator::unbound())
            }
            PoolPlacement::Fenced(shards, cpus) => {
                check_shards(shards)?;
                check_enough(&cpus, 1)?;
                machine.check_online([&cpus])?;
                Ok(CpuSetGenerator::fenced(cpus))
            }
            PoolPlacement::MaxSpread(shards, cpus) => {
                pick_each(machine, shards, cpus, Spacing::Spread)
            }
            PoolPlacement::MaxPack(shards, cpus) => pick_each(machine, shards, cpus, Spacing::Pack),
            PoolPlacement::Custom(sets) => {
                for cpus in &sets {
                    check_enough(cpus, 1)?;
                }
                machine.check_online(&sets)?;
                Ok(CpuSetGenerator::listed(sets))
            }
        }
    }
}

/// The pool of one shard that is placed alike.
impl From<Placement> for PoolPlacement {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Unbound => PoolPlacement::Unbound(1),
            Placement::Fenced(cpus) => PoolPlacement::Fenced(1, cpus),
            Placement::Fixed(cpu) => {
                let cpus = match CpuSet::online() {
                    Ok(online) => online.filter(|location| location.cpu == cpu),
                    // There is no way to report this here. Any location of the CPU will do:
                    // checking it looks at the machine again and reports what is wrong.
                    Err(_) => CpuSet::from_iter([CpuLocation {
                        cpu,
                        core: cpu,
                        package: 0,
                        numa_node: 0,
                    }]),
                };
                PoolPlacement::Custom(vec![cpus])
            }
        }
    }
}

fn pick_each(
    machine: &Machine<'_>,
    shards: usize,
    cpus: Option<CpuSet>,
    spacing: Spacing,
) -> Result<CpuSetGenerator, ()> {
    check_shards(shards)?;
    let cpus = match cpus {
        Some(cpus) => {
            check_enough(&cpus, shards)?;
            machine.check_online([&cpus])?;
            let cpus = machine.usable(cpus)?;
            check_enough(&cpus, shards)?;
            cpus
        }
        None => {
            let cpus = machine.permitted()?;
            check_enough(&cpus, shards)?;
            cpus
        }
    };
    Ok(CpuSetGenerator::picked(CpuTree::new(cpus, spacing)))
}

/// How many shards there are by default where a thread may run on so many CPUs, and so many are
/// available to it.
fn shards_of(permitted: Option<usize>, available: usize) -> usize {
    if let Some(permitted) = permitted
        && available < permitted
    {
        panic::log(|| {
            tracing::info!(
                permitted,
                "the CPU quota of this process is that of {available} CPUs: so many shards are the default"
            );
        });
    }
    available
}

/// Refuses a pool without shards.
pub(super) fn check_shards(shards: usize) -> Result<(), ()> {
    let minimum = 1;
    if shards < minimum {
        return Err(GlommioError::BuilderError(BuilderErrorKind::NrShards {
            minimum,
            shards,
        }));
    }
    Ok(())
}

fn check_enough(cpus: &CpuSet, required: usize) -> Result<(), ()> {
    let available = cpus.len();
    if available < required {
        return Err(GlommioError::BuilderError(
            BuilderErrorKind::InsufficientCpus {
                required,
                available,
            },
        ));
    }
    Ok(())
}
