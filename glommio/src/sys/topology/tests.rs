//! Made-up machines, each with one of the oddities that real ones have.

use super::made_up::MadeUp;
use super::*;

/// Its CPUs, and of each the core, package and NUMA node.
fn locations(machine: &MadeUp) -> [Vec<usize>; 4] {
    let located = online_cpus(machine.path()).unwrap();
    let parts: [fn(&CpuLocation) -> usize; 4] = [
        |at| at.cpu,
        |at| at.core,
        |at| at.package,
        |at| at.numa_node,
    ];
    parts.map(|part| located.iter().map(part).collect())
}

/// For machines on which all CPUs from 0 on are online.
#[track_caller]
fn assert_located<const N: usize>(
    machine: &MadeUp,
    cores: [usize; N],
    packages: [usize; N],
    nodes: [usize; N],
) {
    let cpus = std::array::from_fn(|cpu| cpu);
    assert_eq!(locations(machine), [cpus, cores, packages, nodes]);
}

/// Without NUMA nodes: the package, the kernel's core number and the siblings of each CPU.
fn without_nodes<const N: usize>(
    packages: [i64; N],
    core_ids: [i64; N],
    siblings: [&str; N],
) -> MadeUp {
    let machine = MadeUp::with_online_cpus(&format!("0-{}", N - 1));
    machine.cpus(0..N, |cpu| {
        (packages[cpu], core_ids[cpu], siblings[cpu].into())
    })
}

/// Cores of two sockets in the same node were once taken for one.
#[test]
fn two_sockets_in_one_node_stay_apart() {
    let cpus = || without_nodes([0, 0, 1, 1], [0, 1, 0, 1], ["0", "1", "2", "3"]);
    let with_numa = cpus().online_nodes("0").node(0, "0-3");
    // Without NUMA information cores must be renumbered all the same.
    for machine in [with_numa, cpus()] {
        assert_located(&machine, [0, 1, 2, 3], [0, 0, 1, 1], [0; 4]);
    }
}

/// Lower nodes have lower core numbers, even if their CPUs and sockets are higher.
#[test]
fn cores_are_numbered_along_the_nodes() {
    let machine = without_nodes([0, 0, 1, 1], [0, 1, 0, 1], ["0", "1", "2", "3"])
        .online_nodes("0-1")
        .node(0, "2-3")
        .node(1, "0-1");
    assert_located(&machine, [2, 3, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0]);
}

/// An offline CPU has a folder, but nothing about its place in it. Its node and its
/// sibling may still name it.
#[test]
fn offline_cpus_are_left_out() {
    let machine = MadeUp::with_online_cpus("0,3-4")
        .online_nodes("0")
        .node(0, "0-4")
        .cpu(0, 0, 0, "0")
        .cpu(3, 0, 1, "2-3")
        .cpu(4, 0, 2, "4");
    machine.write("cpu/cpu1/online", "0");
    machine.write("cpu/cpu2/online", "0");
    assert_eq!(locations(&machine), [[0, 3, 4], [0, 1, 2], [0; 3], [0; 3]]);
}

/// A node may be listed whose folder is not there, and the other way round.
#[test]
fn nodes_of_which_nothing_is_known() {
    let machine = without_nodes([0, 0], [0, 1], ["0", "1"])
        .online_nodes("0-1")
        .node(1, "1")
        .node(2, "0");
    assert_located(&machine, [0, 1], [0, 0], [0, 1]);
}

/// It went offline after the list was read, and took its place along; its sibling still names it.
#[test]
fn a_cpu_that_vanishes_meanwhile() {
    let machine = MadeUp::with_online_cpus("0-3")
        .cpu(0, 0, 0, "0-1")
        .cpu(2, 0, 1, "2-3")
        .cpu(3, 0, 1, "2-3");
    let [cpus, cores, ..] = locations(&machine);
    assert_eq!(cpus, [0, 1, 2, 3]);
    assert_eq!(cores[2], cores[3]);
    assert_eq!(BTreeSet::from_iter(cores), BTreeSet::from([0, 1, 2]));
}

#[test]
fn old_kernels_call_the_threads_of_a_core_differently() {
    let mut machine = without_nodes([0; 4], [0, 1, 0, 1], [""; 4]);
    for (cpu, threads) in [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")] {
        machine.topology(cpu, "thread_siblings_list", threads);
    }
    // With neither list, the kernel's core number has to do.
    for list in ["core_cpus_list", "thread_siblings_list"] {
        machine = (0..4).fold(machine, |machine, cpu| {
            machine.without(&format!("cpu/cpu{cpu}/topology/{list}"))
        });
        assert_located(&machine, [0, 1, 0, 1], [0; 4], [0; 4]);
    }
}

/// Hyper-threads are found by their list even where the kernel has no core number.
#[test]
fn unknown_core_number() {
    let machine = without_nodes([0; 4], [-1; 4], ["0-1", "0-1", "2-3", "2-3"]);
    assert_located(&machine, [0, 0, 1, 1], [0; 4], [0; 4]);
}

/// Some sandboxes show nothing but the list of CPUs.
#[test]
fn no_topology_at_all() {
    let machine = MadeUp::with_online_cpus("0,2");
    assert_eq!(locations(&machine), [[0, 2], [0, 1], [0, 0], [0, 0]]);
}

/// As in a chroot.
#[test]
fn without_sysfs_there_are_the_cpus_of_the_process() {
    let nothing = tempfile::tempdir().unwrap();
    let usable = AffinityMask::of_process().expect("threads are free").cpus();
    let located = online_cpus(nothing.path()).unwrap();
    let cpus: Vec<_> = located.iter().map(|it| it.cpu).collect();
    assert_eq!(cpus, usable);
    assert!(
        located
            .iter()
            .all(|it| (it.numa_node, it.package) == (0, 0))
    );
}

#[test]
fn what_cannot_be_read_or_understood_is_an_error() {
    let machine = MadeUp::with_online_cpus("0").cpu(0, 0, 0, "zero");
    let error = online_cpus(machine.path()).unwrap_err();
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
