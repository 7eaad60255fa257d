//! Made-up machines, each with one of the oddities that real ones have.

use std::fs;

use tempfile::TempDir;

use super::*;

/// A folder that looks like `/sys/devices/system`.
struct Machine(TempDir);

impl Machine {
    fn with_online_cpus(list: &str) -> Self {
        let machine = Machine(tempfile::tempdir().unwrap());
        machine.write("cpu/online", list);
        machine
    }

    fn node(self, node: usize, cpu_list: &str) -> Self {
        self.write(&format!("node/node{node}/cpulist"), cpu_list);
        self
    }

    fn online_nodes(self, list: &str) -> Self {
        self.write("node/online", list);
        self
    }

    fn cpu(self, cpu: usize, package: i64, core_id: i64, threads: &str) -> Self {
        self.topology(cpu, "physical_package_id", &package.to_string());
        self.topology(cpu, "core_id", &core_id.to_string());
        self.topology(cpu, "core_cpus_list", threads);
        self
    }

    fn topology(&self, cpu: usize, file: &str, text: &str) {
        self.write(&format!("cpu/cpu{cpu}/topology/{file}"), text);
    }

    fn without(self, path: &str) -> Self {
        fs::remove_file(self.0.path().join(path)).unwrap();
        self
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    /// (cpu, core, package, NUMA node) of each.
    fn locations(&self) -> Vec<(usize, usize, usize, usize)> {
        online_cpus(self.0.path())
            .unwrap()
            .into_iter()
            .map(|at| (at.cpu, at.core, at.package, at.numa_node))
            .collect()
    }
}

/// Two performance cores with two threads each, then four efficiency cores whose
/// kernel ids go on elsewhere.
#[test]
fn hybrid_laptop() {
    let machine = Machine::with_online_cpus("0-7")
        .online_nodes("0")
        .node(0, "0-7")
        .cpu(0, 0, 0, "0-1")
        .cpu(1, 0, 0, "0-1")
        .cpu(2, 0, 4, "2-3")
        .cpu(3, 0, 4, "2-3")
        .cpu(4, 0, 24, "4")
        .cpu(5, 0, 25, "5")
        .cpu(6, 0, 26, "6")
        .cpu(7, 0, 27, "7");
    assert_eq!(
        machine.locations(),
        [
            (0, 0, 0, 0),
            (1, 0, 0, 0),
            (2, 1, 0, 0),
            (3, 1, 0, 0),
            (4, 2, 0, 0),
            (5, 3, 0, 0),
            (6, 4, 0, 0),
            (7, 5, 0, 0),
        ]
    );
}

/// Two sockets, a node each; the kernel counts cores from 0 in both, and the second
/// threads of all cores come last.
#[test]
fn two_sockets_with_equal_core_ids() {
    let machine = Machine::with_online_cpus("0-7")
        .online_nodes("0-1")
        .node(0, "0-1,4-5")
        .node(1, "2-3,6-7")
        .cpu(0, 0, 0, "0,4")
        .cpu(1, 0, 1, "1,5")
        .cpu(2, 1, 0, "2,6")
        .cpu(3, 1, 1, "3,7")
        .cpu(4, 0, 0, "0,4")
        .cpu(5, 0, 1, "1,5")
        .cpu(6, 1, 0, "2,6")
        .cpu(7, 1, 1, "3,7");
    assert_eq!(
        machine.locations(),
        [
            (0, 0, 0, 0),
            (1, 1, 0, 0),
            (2, 2, 1, 1),
            (3, 3, 1, 1),
            (4, 0, 0, 0),
            (5, 1, 0, 0),
            (6, 2, 1, 1),
            (7, 3, 1, 1),
        ]
    );
}

/// Cores of two sockets in the same node were once taken for one.
#[test]
fn two_sockets_in_one_node_stay_apart() {
    let cpus = |machine: Machine| {
        machine
            .cpu(0, 0, 0, "0")
            .cpu(1, 0, 1, "1")
            .cpu(2, 1, 0, "2")
            .cpu(3, 1, 1, "3")
    };
    let expected = [(0, 0, 0, 0), (1, 1, 0, 0), (2, 2, 1, 0), (3, 3, 1, 0)];

    let with_numa = cpus(
        Machine::with_online_cpus("0-3")
            .online_nodes("0")
            .node(0, "0-3"),
    );
    assert_eq!(with_numa.locations(), expected);

    // Without NUMA information cores must be renumbered all the same.
    let without_numa = cpus(Machine::with_online_cpus("0-3"));
    assert_eq!(without_numa.locations(), expected);
}

/// Lower nodes have lower core numbers, even if their CPUs and sockets are higher.
#[test]
fn cores_are_numbered_along_the_nodes() {
    let machine = Machine::with_online_cpus("0-3")
        .online_nodes("0-1")
        .node(0, "2-3")
        .node(1, "0-1")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1")
        .cpu(2, 1, 0, "2")
        .cpu(3, 1, 1, "3");
    assert_eq!(
        machine.locations(),
        [(0, 2, 0, 1), (1, 3, 0, 1), (2, 0, 1, 0), (3, 1, 1, 0)]
    );
}

#[test]
fn hyper_threading_switched_off() {
    let machine = Machine::with_online_cpus("0-1")
        .online_nodes("0")
        .node(0, "0-1")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1");
    assert_eq!(machine.locations(), [(0, 0, 0, 0), (1, 1, 0, 0)]);
}

/// An offline CPU has a folder, but nothing about its place in it. Its node and its
/// sibling may still name it.
#[test]
fn offline_cpus_are_left_out() {
    let machine = Machine::with_online_cpus("0,3-4")
        .online_nodes("0")
        .node(0, "0-4")
        .cpu(0, 0, 0, "0")
        .cpu(3, 0, 1, "2-3")
        .cpu(4, 0, 2, "4");
    machine.write("cpu/cpu1/online", "0");
    machine.write("cpu/cpu2/online", "0");
    assert_eq!(
        machine.locations(),
        [(0, 0, 0, 0), (3, 1, 0, 0), (4, 2, 0, 0)]
    );
}

/// Persistent or CXL memory makes nodes without CPUs.
#[test]
fn memory_only_node() {
    let machine = Machine::with_online_cpus("0-1")
        .online_nodes("0,2")
        .node(0, "0-1")
        .node(2, "")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1");
    assert_eq!(machine.locations(), [(0, 0, 0, 0), (1, 1, 0, 0)]);
}

#[test]
fn old_kernels_call_the_threads_of_a_core_differently() {
    let machine = Machine::with_online_cpus("0-3")
        .cpu(0, 0, 0, "")
        .cpu(1, 0, 1, "")
        .cpu(2, 0, 0, "")
        .cpu(3, 0, 1, "");
    for (cpu, threads) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
        machine.topology(cpu, "thread_siblings_list", threads);
    }
    let machine = (0..4).fold(machine, |machine, cpu| {
        machine.without(&format!("cpu/cpu{cpu}/topology/core_cpus_list"))
    });
    assert_eq!(
        machine.locations(),
        [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0), (3, 1, 0, 0)]
    );

    // Neither list: the kernel's core number has to do.
    let machine = (0..4).fold(machine, |machine, cpu| {
        machine.without(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"))
    });
    assert_eq!(
        machine.locations(),
        [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0), (3, 1, 0, 0)]
    );
}

#[test]
fn unknown_package_is_package_zero() {
    let machine = Machine::with_online_cpus("0-1")
        .cpu(0, -1, 0, "0")
        .cpu(1, -1, 1, "1");
    assert_eq!(machine.locations(), [(0, 0, 0, 0), (1, 1, 0, 0)]);
}

/// Hyper-threads are found by their list even where the kernel has no core number.
#[test]
fn unknown_core_number() {
    let machine = Machine::with_online_cpus("0-3")
        .cpu(0, 0, -1, "0-1")
        .cpu(1, 0, -1, "0-1")
        .cpu(2, 0, -1, "2-3")
        .cpu(3, 0, -1, "2-3");
    assert_eq!(
        machine.locations(),
        [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0), (3, 1, 0, 0)]
    );
}

/// On some ARM machines core numbers start anew in each cluster of a package.
#[test]
fn clusters_with_equal_core_ids_stay_apart() {
    let machine = Machine::with_online_cpus("0-3")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1")
        .cpu(2, 0, 0, "2")
        .cpu(3, 0, 1, "3");
    let cores: BTreeSet<usize> = machine.locations().iter().map(|at| at.1).collect();
    assert_eq!(cores, BTreeSet::from([0, 1, 2, 3]));
}

/// Some sandboxes show nothing but the list of CPUs.
#[test]
fn no_topology_at_all() {
    let machine = Machine::with_online_cpus("0,2");
    assert_eq!(machine.locations(), [(0, 0, 0, 0), (2, 1, 0, 0)]);
}

#[test]
fn what_cannot_be_read_or_understood_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let error = online_cpus(empty.path()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);

    let machine = Machine::with_online_cpus("0").cpu(0, 0, 0, "zero");
    let error = online_cpus(machine.0.path()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn this_machine_makes_sense() {
    let locations = online_cpus(Path::new(SYSTEM_DEVICES)).unwrap();
    assert!(!locations.is_empty());
    assert!(locations.is_sorted_by(|a, b| a.cpu < b.cpu));
    let cores: BTreeSet<usize> = locations.iter().map(|at| at.core).collect();
    assert!(
        cores
            .into_iter()
            .eq(0..1 + locations.iter().map(|at| at.core).max().unwrap())
    );
    assert_eq!(locations, online_cpus(Path::new(SYSTEM_DEVICES)).unwrap());
}
