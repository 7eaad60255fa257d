//! Made-up machines, each with one of the oddities that real ones have.

use super::made_up::MadeUp;
use super::*;

/// (cpu, core, package, NUMA node) of each.
fn locations(machine: &MadeUp) -> Vec<(usize, usize, usize, usize)> {
    online_cpus(machine.path())
        .unwrap()
        .into_iter()
        .map(|at| (at.cpu, at.core, at.package, at.numa_node))
        .collect()
}

/// Two performance cores with two threads each, then four efficiency cores whose
/// kernel ids go on elsewhere.
#[test]
fn hybrid_laptop() {
    let machine = MadeUp::with_online_cpus("0-7")
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
        locations(&machine),
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
    let machine = MadeUp::with_online_cpus("0-7")
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
        locations(&machine),
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
    let cpus = |machine: MadeUp| {
        machine
            .cpu(0, 0, 0, "0")
            .cpu(1, 0, 1, "1")
            .cpu(2, 1, 0, "2")
            .cpu(3, 1, 1, "3")
    };
    let expected = [(0, 0, 0, 0), (1, 1, 0, 0), (2, 2, 1, 0), (3, 3, 1, 0)];

    let with_numa = cpus(
        MadeUp::with_online_cpus("0-3")
            .online_nodes("0")
            .node(0, "0-3"),
    );
    assert_eq!(locations(&with_numa), expected);

    // Without NUMA information cores must be renumbered all the same.
    let without_numa = cpus(MadeUp::with_online_cpus("0-3"));
    assert_eq!(locations(&without_numa), expected);
}

/// Lower nodes have lower core numbers, even if their CPUs and sockets are higher.
#[test]
fn cores_are_numbered_along_the_nodes() {
    let machine = MadeUp::with_online_cpus("0-3")
        .online_nodes("0-1")
        .node(0, "2-3")
        .node(1, "0-1")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1")
        .cpu(2, 1, 0, "2")
        .cpu(3, 1, 1, "3");
    assert_eq!(
        locations(&machine),
        [(0, 2, 0, 1), (1, 3, 0, 1), (2, 0, 1, 0), (3, 1, 1, 0)]
    );
}

#[test]
fn hyper_threading_switched_off() {
    let machine = MadeUp::with_online_cpus("0-1")
        .online_nodes("0")
        .node(0, "0-1")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1");
    assert_eq!(locations(&machine), [(0, 0, 0, 0), (1, 1, 0, 0)]);
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
    assert_eq!(
        locations(&machine),
        [(0, 0, 0, 0), (3, 1, 0, 0), (4, 2, 0, 0)]
    );
}

/// Persistent or CXL memory makes nodes without CPUs.
#[test]
fn memory_only_node() {
    let machine = MadeUp::with_online_cpus("0-1")
        .online_nodes("0,2")
        .node(0, "0-1")
        .node(2, "")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1");
    assert_eq!(locations(&machine), [(0, 0, 0, 0), (1, 1, 0, 0)]);
}

/// A node may be listed whose folder is not there, and the other way round.
#[test]
fn nodes_of_which_nothing_is_known() {
    let machine = MadeUp::with_online_cpus("0-1")
        .online_nodes("0-1")
        .node(1, "1")
        .node(2, "0")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1");
    assert_eq!(locations(&machine), [(0, 0, 0, 0), (1, 1, 0, 1)]);
}

/// More nodes than packages: core numbers go up along the nodes all the same.
#[test]
fn sub_numa_clusters() {
    let machine = MadeUp::with_online_cpus("0-3")
        .online_nodes("0-3")
        .node(0, "0")
        .node(1, "2")
        .node(2, "1")
        .node(3, "3")
        .cpus(0..4, |cpu| {
            (cpu as i64 % 2, cpu as i64 / 2, cpu.to_string())
        });
    assert_eq!(
        locations(&machine),
        [(0, 0, 0, 0), (1, 2, 1, 2), (2, 1, 0, 1), (3, 3, 1, 3)]
    );
}

/// It went offline after the list was read, and took its place along; its sibling still names it.
#[test]
fn a_cpu_that_vanishes_meanwhile() {
    let machine = MadeUp::with_online_cpus("0-3")
        .cpu(0, 0, 0, "0-1")
        .cpu(2, 0, 1, "2-3")
        .cpu(3, 0, 1, "2-3");
    let locations = locations(&machine);
    assert_eq!(locations.len(), 4);
    assert_eq!(locations[2].1, locations[3].1);
    let cores: BTreeSet<usize> = locations.iter().map(|at| at.1).collect();
    assert_eq!(cores, BTreeSet::from([0, 1, 2]));
}

#[test]
fn old_kernels_call_the_threads_of_a_core_differently() {
    let machine = MadeUp::with_online_cpus("0-3")
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
        locations(&machine),
        [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0), (3, 1, 0, 0)]
    );

    // Neither list: the kernel's core number has to do.
    let machine = (0..4).fold(machine, |machine, cpu| {
        machine.without(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"))
    });
    assert_eq!(
        locations(&machine),
        [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 0, 0), (3, 1, 0, 0)]
    );
}

#[test]
fn unknown_package_is_package_zero() {
    let machine = MadeUp::with_online_cpus("0-1")
        .cpu(0, -1, 0, "0")
        .cpu(1, -1, 1, "1");
    assert_eq!(locations(&machine), [(0, 0, 0, 0), (1, 1, 0, 0)]);
}

/// Hyper-threads are found by their list even where the kernel has no core number.
#[test]
fn unknown_core_number() {
    let machine = MadeUp::with_online_cpus("0-3")
        .cpu(0, 0, -1, "0-1")
        .cpu(1, 0, -1, "0-1")
        .cpu(2, 0, -1, "2-3")
        .cpu(3, 0, -1, "2-3");
    assert_eq!(
        locations(&machine),
        [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0), (3, 1, 0, 0)]
    );
}

/// On some ARM machines core numbers start anew in each cluster of a package.
#[test]
fn clusters_with_equal_core_ids_stay_apart() {
    let machine = MadeUp::with_online_cpus("0-3")
        .cpu(0, 0, 0, "0")
        .cpu(1, 0, 1, "1")
        .cpu(2, 0, 0, "2")
        .cpu(3, 0, 1, "3");
    let cores: BTreeSet<usize> = locations(&machine).iter().map(|at| at.1).collect();
    assert_eq!(cores, BTreeSet::from([0, 1, 2, 3]));
}

/// Some sandboxes show nothing but the list of CPUs.
#[test]
fn no_topology_at_all() {
    let machine = MadeUp::with_online_cpus("0,2");
    assert_eq!(locations(&machine), [(0, 0, 0, 0), (2, 1, 0, 0)]);
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
