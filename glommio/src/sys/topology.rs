//! Where each online CPU sits in the machine, as the kernel tells in sysfs.
//!
//! ```text
//!   /sys/devices/system
//!     cpu/online                               which CPUs there are now
//!     cpu/cpuN/topology/physical_package_id    the socket
//!     cpu/cpuN/topology/core_id                a number of the core, unique in little
//!     cpu/cpuN/topology/core_cpus_list         the hyper-threads of the core
//!     node/online, node/nodeM/cpulist          which CPUs are near which memory
//! ```
//!
//! None of it must be there. What is missing is replaced by the plainest
//! machine that fits: the CPUs that the process may use, one node, one package, each CPU a core of its own. Kernels
//! without NUMA have no `node`, kernels before 5.3 say `thread_siblings_list` instead
//! of `core_cpus_list`, sandboxes show little more than `online`, and a CPU
//! may go offline between two reads and take its files along.
//!
//! Invariants of the result: ascending CPU ids, each once; two CPUs have the same
//! [`core`](CpuLocation::core) just if they are hyper-threads of one core; cores are
//! numbered from 0 without gaps, lower nodes first, and alike at every call.
//!
//! Cost: about three small files per CPU, one per node; nothing is remembered, since
//! CPUs come and go.

#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;

use super::affinity::AffinityMask;
use super::sysfs::{if_present, read_id_list, read_number};

/// Where a CPU sits in the machine.
///
/// All ids are unique in the whole machine.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CpuLocation {
    /// The NUMA node; 0 on machines without NUMA.
    pub numa_node: usize,
    /// The package, commonly called socket.
    pub package: usize,
    /// The core; hyper-threads of one core share it.
    pub core: usize,
    /// The CPU as the operating system numbers it; what threads are bound to.
    pub cpu: usize,
}

/// Describes the CPUs that are online now, in ascending order of their ids.
///
/// `system_devices` is [`SYSTEM_DEVICES`], or a made-up machine in tests.
///
/// # Errors
///
/// Whatever reading a file gave, other than that one of the optional files is
/// missing; `InvalidData` if a file does not have the expected form.
pub(crate) fn online_cpus(system_devices: &Path) -> io::Result<Vec<CpuLocation>> {
    let cpus = online_ids(system_devices)?;
    let numa_nodes = numa_nodes(system_devices)?;
    let origins = cpus
        .iter()
        .map(|cpu| {
            let numa_node = numa_nodes.get(cpu).copied().unwrap_or(0);
            let folder = system_devices.join(format!("cpu/cpu{cpu}/topology"));
            Origin::read(&folder, *cpu, numa_node)
        })
        .collect::<io::Result<Vec<_>>>()?;

    let cores: BTreeSet<&CoreKey> = origins.iter().map(|origin| &origin.core).collect();
    let numbers: BTreeMap<&CoreKey, usize> = cores.into_iter().zip(0..).collect();
    Ok(origins
        .iter()
        .map(|origin| CpuLocation {
            cpu: origin.cpu,
            core: numbers[&origin.core],
            package: origin.core.package,
            numa_node: origin.core.numa_node,
        })
        .collect())
}

/// The ids of the CPUs that are online now: one file, however many CPUs there are. Without sysfs, those
/// that the process may use.
///
/// # Errors
///
/// As [`online_cpus`], of that file.
pub(crate) fn online_ids(system_devices: &Path) -> io::Result<BTreeSet<usize>> {
    let ids = match read_id_list(&system_devices.join("cpu/online")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            AffinityMask::of_process().ok_or(error)?.cpus()
        }
        ids => ids?,
    };
    Ok(ids.into_iter().collect())
}

/// Where Linux describes the devices of the system itself.
pub(crate) const SYSTEM_DEVICES: &str = "/sys/devices/system";

/// What sysfs says about one CPU.
struct Origin {
    cpu: usize,
    core: CoreKey,
}

impl Origin {
    fn read(topology: &Path, cpu: usize, numa_node: usize) -> io::Result<Self> {
        let number = |name| if_present(read_number(&topology.join(name)));
        let siblings = |name| if_present(read_id_list(&topology.join(name)));

        // -1 means "unknown" on some ARM boards and virtual machines.
        let package = number("physical_package_id")?
            .and_then(|id| usize::try_from(id).ok())
            .unwrap_or(0);
        let kernel_id = number("core_id")?.and_then(|id| usize::try_from(id).ok());
        let threads = match siblings("core_cpus_list")? {
            Some(threads) => Some(threads),
            None => siblings("thread_siblings_list")?,
        };

        let first_cpu = match (threads, kernel_id) {
            (Some(threads), _) => threads.into_iter().chain([cpu]).min(),
            // Without a list of threads the kernel's number is all there is.
            (None, Some(_)) => None,
            (None, None) => Some(cpu),
        };
        let core = CoreKey {
            numa_node,
            package,
            kernel_id: kernel_id.or(first_cpu).unwrap_or(cpu),
            first_cpu,
        };
        Ok(Origin { cpu, core })
    }
}

/// What makes a core a core, in the order in which cores are numbered.
///
/// The kernel's own number is not enough: it repeats in every package, and in every
/// cluster on some ARM machines. No two cores share a thread, though.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CoreKey {
    numa_node: usize,
    package: usize,
    kernel_id: usize,
    first_cpu: Option<usize>,
}

/// Which node each CPU is in; empty without NUMA. Nodes that are only memory, as
/// with CXL, have an empty list of CPUs.
fn numa_nodes(system_devices: &Path) -> io::Result<HashMap<usize, usize>> {
    let mut node_of_cpu = HashMap::new();
    let online = if_present(read_id_list(&system_devices.join("node/online")))?;
    for node in online.unwrap_or_default() {
        let cpus = read_id_list(&system_devices.join(format!("node/node{node}/cpulist")));
        for cpu in if_present(cpus)?.unwrap_or_default() {
            node_of_cpu.insert(cpu, node);
        }
    }
    Ok(node_of_cpu)
}

#[cfg(test)]
pub(crate) mod made_up;
#[cfg(test)]
mod tests;
