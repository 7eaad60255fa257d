//! From what the kernel says of a machine all the way to the CPUs that shards get.

use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;

use super::*;
use crate::sys::affinity::AffinityMask;
use crate::sys::topology::made_up::MadeUp;
use crate::sys::topology::online_cpus;

/// The CPUs of each shard of `placement` on `machine`, for a thread that may run on the
/// `permitted`.
fn place(
    machine: &MadeUp,
    permitted: impl IntoIterator<Item = usize>,
    placement: PoolPlacement,
) -> Result<Vec<Vec<usize>>, ()> {
    let mask = AffinityMask::from_cpus(permitted)?;
    let shards = placement.executor_count();
    let affinity = || Ok(Some(mask));
    let machine = Machine::made_up(machine.path(), &affinity, &|| None);
    let mut generator = placement.generate_on(&machine)?;
    Ok((0..shards)
        .map(|_| generator.next().map(|at| at.cpu).collect())
        .collect())
}

/// The first `count` CPUs that are handed out one by one, to a thread that may run anywhere.
fn picks(
    machine: &MadeUp,
    make: fn(usize, Option<CpuSet>) -> PoolPlacement,
    count: usize,
) -> Vec<usize> {
    let placed = place(machine, 0..1024, make(count, None));
    let cpus = placed.expect("there are enough CPUs").concat();
    assert_eq!(cpus.len(), count, "one CPU per shard");
    cpus
}

fn spread(machine: &MadeUp, count: usize) -> Vec<usize> {
    picks(machine, PoolPlacement::MaxSpread, count)
}

fn pack(machine: &MadeUp, count: usize) -> Vec<usize> {
    picks(machine, PoolPlacement::MaxPack, count)
}

/// How many different values `part` has among these CPUs.
fn parts(machine: &MadeUp, cpus: &[usize], part: fn(&CpuLocation) -> usize) -> usize {
    let locations = online_cpus(machine.path()).unwrap();
    let by_cpu: HashMap<usize, usize> = locations.iter().map(|at| (at.cpu, part(at))).collect();
    let parts: BTreeSet<usize> = cpus.iter().map(|cpu| by_cpu[cpu]).collect();
    parts.len()
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(placed: Result<T, ()>, kind: &str) {
    match placed {
        Err(GlommioError::BuilderError(refusal)) => assert_eq!(format!("{refusal:?}"), kind),
        other => panic!("{other:?}"),
    }
}

fn insufficient(required: usize, available: usize) -> String {
    format!("InsufficientCpus {{ required: {required}, available: {available} }}")
}

/// Four performance cores of two threads, and two clusters of four efficiency cores of one.
#[test]
fn hybrid_laptop() {
    let machine = MadeUp::with_online_cpus("0-15")
        .online_nodes("0")
        .node(0, "0-15")
        .cpus(0..8, |cpu| {
            let first = cpu / 2 * 2;
            (0, 2 * first as i64, format!("{first}-{}", first + 1))
        })
        .cpus(8..16, |cpu| (0, cpu as i64 + 8, cpu.to_string()));
    for cpu in 8..16 {
        let cluster = cpu / 4 * 4;
        machine.topology(
            cpu,
            "cluster_cpus_list",
            &format!("{cluster}-{}", cluster + 3),
        );
    }
    // A core each for as long as there are any, and only then the second threads.
    let spread = spread(&machine, 16);
    assert_eq!(spread[..12], [0, 2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(spread[12..], [1, 3, 5, 7]);
    // The larger cores first, both threads of each.
    assert!(pack(&machine, 16).into_iter().eq(0..16));
}

/// Two sockets, a node each, of four cores; the second threads of all cores are numbered last.
fn two_sockets() -> MadeUp {
    MadeUp::with_online_cpus("0-15")
        .online_nodes("0-1")
        .node(0, "0-3,8-11")
        .node(1, "4-7,12-15")
        .cpus(0..16, |cpu| {
            let first = cpu % 8;
            let (package, core_id) = (first / 4, first % 4);
            (
                package as i64,
                core_id as i64,
                format!("{first},{}", first + 8),
            )
        })
}

#[test]
fn server_of_two_sockets() {
    let machine = two_sockets();
    assert_eq!(
        spread(&machine, 16),
        [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    );
    assert_eq!(
        pack(&machine, 16),
        [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]
    );
}

/// Each socket is divided into two nodes, so that there are more nodes than packages.
#[test]
fn sub_numa_clusters() {
    let machine = MadeUp::with_online_cpus("0-15")
        .online_nodes("0-3")
        .node(0, "0-3")
        .node(1, "4-7")
        .node(2, "8-11")
        .node(3, "12-15")
        .cpus(0..16, |cpu| {
            (cpu as i64 / 8, cpu as i64 % 8, cpu.to_string())
        });
    let spread = spread(&machine, 16);
    assert_eq!(spread[..4], [0, 8, 4, 12]);
    assert_eq!(parts(&machine, &spread[..2], |at| at.package), 2);
    assert_eq!(parts(&machine, &spread[..4], |at| at.numa_node), 4);
    let packed = pack(&machine, 16);
    assert_eq!(parts(&machine, &packed[..4], |at| at.numa_node), 1);
    assert_eq!(parts(&machine, &packed[..8], |at| at.package), 1);
    assert_eq!(parts(&machine, &packed[..8], |at| at.numa_node), 2);
}

/// Threads are switched off at boot, or one by one: then older kernels go on to name them as
/// siblings.
#[test]
fn without_hyper_threads() {
    let at_boot = MadeUp::with_online_cpus("0-3")
        .online_nodes("0")
        .node(0, "0-3")
        .cpus(0..4, |cpu| (0, cpu as i64, cpu.to_string()));
    let one_by_one = |siblings: fn(usize) -> String| {
        let machine = MadeUp::with_online_cpus("0-3")
            .online_nodes("0")
            .node(0, "0-3")
            .cpus(0..4, |cpu| (0, cpu as i64, siblings(cpu)));
        for cpu in 4..8 {
            machine.write(&format!("cpu/cpu{cpu}/online"), "0");
        }
        machine.write("cpu/present", "0-7");
        machine
    };
    for machine in [
        at_boot,
        one_by_one(|cpu| cpu.to_string()),
        one_by_one(|cpu| format!("{cpu},{}", cpu + 4)),
    ] {
        assert_eq!(spread(&machine, 4), [0, 1, 2, 3]);
        assert_eq!(pack(&machine, 4), [0, 1, 2, 3]);
        assert_eq!(parts(&machine, &[0, 1, 2, 3], |at| at.core), 4);
        let more = place(&machine, 0..1024, PoolPlacement::MaxPack(5, None));
        assert_refused(more, &insufficient(5, 4));
    }
}

/// Offline CPUs leave holes, and nothing tells where they sit.
#[test]
fn holes_between_the_online_cpus() {
    let machine = MadeUp::with_online_cpus("0,2-3,6")
        .online_nodes("0")
        .node(0, "0,2-3,6")
        .cpu(0, 0, 0, "0")
        .cpu(2, 0, 1, "2-3")
        .cpu(3, 0, 1, "2-3")
        .cpu(6, 0, 3, "6");
    assert_eq!(spread(&machine, 4), [0, 2, 6, 3]);
    assert_eq!(pack(&machine, 4), [2, 3, 0, 6]);
    for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
        let more = place(&machine, 0..1024, make(5, None));
        assert_refused(more, &insufficient(5, 4));
    }

    let affinity = || Ok(None);
    let here = Machine::made_up(machine.path(), &affinity, &|| None);
    for (cpu, is_online) in [(0, true), (1, false), (4, false), (6, true), (7, false)] {
        let fixed = Placement::Fixed(cpu).generate_on(&here);
        if is_online {
            assert!(fixed.unwrap().next().map(|at| at.cpu).eq([cpu]))
        } else {
            assert_refused(fixed, &format!("NonExistentCpus {{ cpu: {cpu} }}"))
        }
    }
    let wishes: CpuSet = [6, 5, 4, 0]
        .map(|cpu| CpuLocation {
            cpu,
            core: cpu,
            package: 0,
            numa_node: 0,
        })
        .into_iter()
        .collect();
    for refused in [
        Placement::Fenced(wishes.clone()).generate_on(&here),
        PoolPlacement::Fenced(2, wishes.clone()).generate_on(&here),
        PoolPlacement::MaxSpread(2, Some(wishes.clone())).generate_on(&here),
        PoolPlacement::MaxPack(4, Some(wishes.clone())).generate_on(&here),
        PoolPlacement::Custom(vec![here.online().unwrap(), wishes]).generate_on(&here),
    ] {
        assert_refused(refused, "NonExistentCpus { cpu: 4 }");
    }
}

/// The machine is there as a whole, but only some of it is permitted.
#[test]
fn container_with_a_few_cpus() {
    let machine = two_sockets();
    // CPUs 1 and 9 are threads of one core; 99 is not of this machine.
    let permitted = [1, 5, 9, 99];
    let place_here = |placement| place(&machine, permitted, placement);
    let each = |cpus: [usize; 3]| cpus.map(|cpu| vec![cpu]);
    let spread = place_here(PoolPlacement::MaxSpread(3, None)).unwrap();
    assert_eq!(spread, each([1, 5, 9]));
    let packed = place_here(PoolPlacement::MaxPack(3, None)).unwrap();
    assert_eq!(packed, each([1, 9, 5]));
    for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
        assert_refused(place_here(make(4, None)), &insufficient(4, 3));
        assert_refused(place_here(make(16, None)), &insufficient(16, 3));
        // If it is unknown what the process may use, CPUs that are named are taken, and binding
        // reports what is forbidden.
        let affinity = || Ok(None);
        let online = Machine::made_up(machine.path(), &affinity, &|| None)
            .online()
            .unwrap();
        let all = place_here(make(16, Some(online.clone()))).unwrap().concat();
        assert!(
            all.into_iter()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .eq(0..16)
        );
        assert_refused(place_here(make(17, Some(online))), &insufficient(17, 16));
    }
    // A mask of nothing that is online, and a mask that cannot be told.
    let nowhere = place(&machine, [99], PoolPlacement::MaxSpread(1, None));
    assert_refused(nowhere, &insufficient(1, 0));
    let affinity = || Ok(None);
    let unknown = Machine::made_up(machine.path(), &affinity, &|| None);
    assert_eq!(unknown.permitted().unwrap().len(), 16);
}

/// The container leaves six CPUs to the process, and the thread that makes the pool is bound to one.
#[test]
fn named_cpus_that_the_container_forbids_are_left_out() {
    let machine = two_sockets();
    let usable = [1, 2, 5, 6, 9, 13];
    let bound_to = |cpus: &[usize]| AffinityMask::from_cpus(cpus.iter().copied()).unwrap();
    let affinity = || Ok(Some(bound_to(&[2])));
    let process = || Some(bound_to(&usable));
    let here = Machine::made_up(machine.path(), &affinity, &process);
    let online = here.online().unwrap();
    for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
        let mut generator = make(6, Some(online.clone())).generate_on(&here).unwrap();
        let mut picked: Vec<_> = (0..6)
            .flat_map(|_| generator.next())
            .map(|at| at.cpu)
            .collect();
        picked.sort_unstable();
        assert_eq!(picked, usable);
        let more = make(7, Some(online.clone())).generate_on(&here);
        assert_refused(more, &insufficient(7, 6));
        let forbidden = online.clone().filter(|at| at.cpu == 3);
        assert_refused(
            make(1, Some(forbidden)).generate_on(&here),
            &insufficient(1, 0),
        );
    }
    // What the thread itself may use is not asked for.
    let process = || panic!("there is no need to ask");
    let here = Machine::made_up(machine.path(), &affinity, &process);
    let own = online.filter(|at| at.cpu == 2);
    let mut generator = PoolPlacement::MaxPack(1, Some(own))
        .generate_on(&here)
        .unwrap();
    assert!(generator.next().map(|at| at.cpu).eq([2]));
}

#[test]
fn a_quota_bounds_the_default_number_of_shards() {
    assert_eq!(shards_of(Some(8), 8), 8);
    assert_eq!(shards_of(Some(8), 3), 3);
    assert_eq!(shards_of(None, 3), 3);
}

/// No package, no nodes, and core numbers that start anew in each cluster.
#[test]
fn arm_board() {
    let machine = MadeUp::with_online_cpus("0-5").cpus(0..6, |cpu| {
        let core_id = if cpu < 4 { cpu } else { cpu - 4 };
        (-1, core_id as i64, cpu.to_string())
    });
    let check = |machine: &MadeUp| {
        let spread = spread(machine, 6);
        assert_eq!(parts(machine, &spread, |at| at.cpu), 6);
        assert_eq!(parts(machine, &spread, |at| at.core), 6);
        assert_eq!(parts(machine, &spread, |at| at.package), 1);
    };
    check(&machine);
    // The same under a kernel that has only the old name of the list.
    let machine = (0..6).fold(machine, |machine, cpu| {
        machine.topology(cpu, "thread_siblings_list", &cpu.to_string());
        machine.without(&format!("cpu/cpu{cpu}/topology/core_cpus_list"))
    });
    check(&machine);
}

/// Nodes without CPUs are no place to spread to.
#[test]
fn memory_only_nodes() {
    let machine = MadeUp::with_online_cpus("0-3")
        .online_nodes("0-3")
        .node(0, "")
        .node(1, "0-1")
        .node(2, "2-3")
        .node(3, "")
        .cpus(0..4, |cpu| (cpu as i64 / 2, cpu as i64, cpu.to_string()));
    assert_eq!(spread(&machine, 4), [0, 2, 1, 3]);
    assert_eq!(pack(&machine, 4), [0, 1, 2, 3]);
}

/// Kernels without NUMA have no folder of nodes; packages are all there is to tell apart.
#[test]
fn packages_without_nodes() {
    let machine = MadeUp::with_online_cpus("0-5").cpus(0..6, |cpu| {
        (cpu as i64 % 3, cpu as i64 / 3, cpu.to_string())
    });
    assert_eq!(spread(&machine, 6), [0, 1, 2, 3, 4, 5]);
    assert_eq!(pack(&machine, 6), [0, 3, 1, 4, 2, 5]);
}

/// Two nodes of three packages of five cores of seven threads, numbered thread by thread.
#[test]
fn large_and_regular() {
    let machine = MadeUp::with_online_cpus("0-209").online_nodes("0-1");
    let of_node = |node: usize| {
        let cpus = (0..210).filter(|cpu| cpu % 30 / 15 == node);
        cpus.map(|cpu| cpu.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let machine = machine.node(0, &of_node(0)).node(1, &of_node(1));
    let machine = machine.cpus(0..210, |cpu| {
        let core = cpu % 30;
        let threads: Vec<String> = (0..7)
            .map(|thread| (core + 30 * thread).to_string())
            .collect();
        (core as i64 / 5, core as i64 % 5, threads.join(","))
    });
    let spread = spread(&machine, 210);
    assert_eq!(parts(&machine, &spread[..2], |at| at.numa_node), 2);
    assert_eq!(parts(&machine, &spread[..6], |at| at.package), 6);
    assert_eq!(parts(&machine, &spread[..30], |at| at.core), 30);
    assert_eq!(parts(&machine, &spread, |at| at.cpu), 210);
    let packed = pack(&machine, 210);
    assert_eq!(parts(&machine, &packed[..7], |at| at.core), 1);
    assert_eq!(parts(&machine, &packed[..35], |at| at.package), 1);
    assert_eq!(parts(&machine, &packed[..105], |at| at.numa_node), 1);
    assert_eq!(parts(&machine, &packed, |at| at.cpu), 210);
}

/// The largest core of the largest package of the largest node first, then what is left around it.
#[test]
fn small_and_uneven() {
    let machine = MadeUp::with_online_cpus("0-6")
        .online_nodes("0-1")
        .node(0, "0-3,5-6")
        .node(1, "4")
        .cpus(0..4, |_| (0, 0, "0-3".into()))
        .cpu(6, 0, 1, "6")
        .cpu(5, 1, 0, "5")
        .cpu(4, 2, 0, "4");
    assert_eq!(pack(&machine, 7), [0, 1, 2, 3, 6, 5, 4]);
}

/// Machines with nothing regular about them: the cores, each with its node, package and threads.
fn irregular() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    prop::collection::vec((0..3_usize, 0..4_usize, 1..4_usize), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the machine and the mask, shards get each permitted CPU once, and one more is refused
    /// with the right numbers.
    #[test]
    fn all_that_is_permitted_and_nothing_else(
        cores in irregular(),
        is_permitted in prop::collection::vec(any::<bool>(), 32),
    ) {
        let mut machine = MadeUp::with_online_cpus("");
        let mut cpus_of_node = vec![Vec::new(); 3];
        let mut count = 0;
        for (core_id, (node, package, threads)) in cores.into_iter().enumerate() {
            let list = format!("{count}-{}", count + threads - 1);
            for cpu in count..count + threads {
                machine = machine.cpu(cpu, package as i64, core_id as i64, &list);
            }
            cpus_of_node[node].push(list);
            count += threads;
        }
        machine.write("cpu/online", &format!("0-{}", count - 1));
        machine = machine.online_nodes("0-2");
        for (node, lists) in cpus_of_node.into_iter().enumerate() {
            machine = machine.node(node, &lists.join(","));
        }
        let permitted: Vec<usize> = (0..count).filter(|&cpu| is_permitted[cpu]).collect();
        for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
            let shards = permitted.len();
            let more = place(&machine, permitted.clone(), make(shards + 1, None));
            assert_refused(more, &insufficient(shards + 1, shards));
            if shards > 0 {
                let placed = place(&machine, permitted.clone(), make(shards, None)).unwrap();
                let mut cpus = placed.concat();
                cpus.sort_unstable();
                prop_assert_eq!(&cpus, &permitted);
            }
        }
    }
}
