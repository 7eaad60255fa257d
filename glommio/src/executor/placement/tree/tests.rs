use proptest::prelude::*;

use super::*;

/// Where CPUs sit, as (node, package, core, cpu).
fn cpu_set(locations: impl IntoIterator<Item = (usize, usize, usize, usize)>) -> CpuSet {
    locations
        .into_iter()
        .map(|(numa_node, package, core, cpu)| CpuLocation {
            cpu,
            core,
            package,
            numa_node,
        })
        .collect()
}

/// A machine in which everything has equally many parts; all ids are unique.
fn regular(nodes: usize, packages: usize, cores: usize, threads: usize) -> CpuSet {
    cpu_set((0..nodes * packages * cores * threads).map(|cpu| {
        let core = cpu / threads;
        let package = core / cores;
        (package / packages, package, core, cpu)
    }))
}

fn picks(cpus: CpuSet, spacing: Spacing, count: usize) -> Vec<CpuLocation> {
    let mut tree = CpuTree::new(cpus, spacing);
    (0..count).map(|_| tree.pick()).collect()
}

fn pick_cpus(cpus: CpuSet, spacing: Spacing, count: usize) -> Vec<usize> {
    picks(cpus, spacing, count).iter().map(cpu).collect()
}

fn distinct(locations: &[CpuLocation], level: Level) -> usize {
    locations.iter().map(level).collect::<HashSet<_>>().len()
}

/// Two nodes of three packages of five cores of seven threads.
#[test]
fn spread_covers_each_level_before_it_repeats() {
    let picks = picks(regular(2, 3, 5, 7), Spacing::Spread, 2 * 210);
    assert_eq!(distinct(&picks[..2], numa_node), 2);
    assert_eq!(distinct(&picks[..6], package), 6);
    assert_eq!(distinct(&picks[..30], core), 30);
    assert_eq!(distinct(&picks[..210], cpu), 210);
    // And so on in the next round.
    assert_eq!(distinct(&picks[210..212], numa_node), 2);
    assert_eq!(distinct(&picks[210..216], package), 6);
    assert_eq!(distinct(&picks[210..240], core), 30);
    assert_eq!(distinct(&picks[210..], cpu), 210);
}

#[test]
fn pack_fills_each_level_before_it_moves_on() {
    let picks = picks(regular(2, 3, 5, 7), Spacing::Pack, 2 * 210);
    for round in picks.chunks(210) {
        assert_eq!(distinct(round, cpu), 210);
        assert!(
            round
                .chunks(7)
                .all(|core_picks| distinct(core_picks, core) == 1)
        );
        assert!(round.chunks(35).all(|picks| distinct(picks, package) == 1));
        assert!(
            round
                .chunks(105)
                .all(|picks| distinct(picks, numa_node) == 1)
        );
    }
}

/// Uneven parts: the larger ones are begun first.
#[test]
fn pack_prefers_the_larger_part() {
    let cpus = || {
        cpu_set([
            (0, 0, 0, 0),
            (0, 0, 0, 1),
            (0, 0, 0, 2),
            (0, 0, 0, 3),
            (0, 0, 1, 6),
            (0, 1, 2, 5),
            (1, 2, 3, 4),
        ])
    };
    let picked = pick_cpus(cpus(), Spacing::Pack, 14);
    let mut first_core = picked[..4].to_vec();
    first_core.sort_unstable();
    assert_eq!(first_core, [0, 1, 2, 3]);
    assert_eq!(picked[4..7], [6, 5, 4]);
    assert_eq!(picked[..7], picked[7..]);
}

/// A small part is as soon half used as a large one, so it gets its turn by its size.
#[test]
fn spread_compares_parts_not_numbers() {
    // Node 0 has six CPUs, node 1 two.
    let cpus = cpu_set((0..8).map(|cpu| (cpu / 6, cpu / 6, cpu, cpu)));
    let nodes: Vec<usize> = picks(cpus, Spacing::Spread, 8)
        .iter()
        .map(numa_node)
        .collect();
    assert_eq!(nodes.iter().filter(|node| **node == 1).count(), 2);
    assert_eq!(nodes[..4].iter().filter(|node| **node == 1).count(), 1);
}

/// With two nodes in each package, the packages are the outer level.
#[test]
fn fewer_packages_than_nodes_turn_the_levels_round() {
    // Four nodes in two packages, nodes 0 and 1 in the first; two cores each.
    let cpus = || cpu_set((0..8).map(|cpu| (cpu / 2, cpu / 4, cpu, cpu)));

    let spread = picks(cpus(), Spacing::Spread, 8);
    assert_eq!(distinct(&spread[..2], package), 2);
    assert_eq!(distinct(&spread[..4], numa_node), 4);
    assert_eq!(distinct(&spread, cpu), 8);

    let packed = picks(cpus(), Spacing::Pack, 8);
    assert_eq!(distinct(&packed[..2], numa_node), 1);
    assert_eq!(distinct(&packed[..4], package), 1);
    assert_eq!(distinct(&packed[..4], numa_node), 2);
}

#[test]
#[should_panic(expected = "at least one")]
fn an_empty_tree_is_refused() {
    CpuTree::new(cpu_set([]), Spacing::Spread);
}

/// Machines with nothing regular about them, but with machine-wide core ids.
fn irregular() -> impl Strategy<Value = CpuSet> {
    let core = (0..3usize, 0..4usize, 1..5usize);
    prop::collection::vec(core, 1..12).prop_map(|cores| {
        let mut next_cpu = 0;
        let mut locations = Vec::new();
        for (core, (numa_node, package, threads)) in cores.into_iter().enumerate() {
            for _ in 0..threads {
                locations.push((numa_node, package, core, next_cpu));
                next_cpu += 1;
            }
        }
        cpu_set(locations)
    })
}

proptest! {
    /// Every round picks every CPU once, whatever the machine.
    #[test]
    fn rounds_are_fair(cpus in irregular(), packs in any::<bool>()) {
        let spacing = if packs { Spacing::Pack } else { Spacing::Spread };
        let count = cpus.len();
        let picked = picks(cpus, spacing, 3 * count);
        for round in picked.chunks(count) {
            prop_assert_eq!(distinct(round, cpu), count);
        }
    }

    /// Pack never leaves a part of the machine before it is used up.
    #[test]
    fn pack_does_not_come_back(cpus in irregular()) {
        let [outer, inner, ..] = levels(&cpus);
        let count = cpus.len();
        let picked = picks(cpus, Spacing::Pack, count);
        let by_core: Level = core;
        let paths = [
            picked.iter().map(|at| vec![outer(at)]).collect::<Vec<_>>(),
            picked.iter().map(|at| vec![outer(at), inner(at)]).collect(),
            picked.iter().map(|at| vec![outer(at), inner(at), by_core(at)]).collect(),
        ];
        for mut parts in paths {
            let distinct = parts.iter().collect::<HashSet<_>>().len();
            parts.dedup();
            prop_assert_eq!(parts.len(), distinct);
        }
    }

    /// While spreading, no two parts of the same whole differ by more than one CPU's
    /// worth of use.
    #[test]
    fn spread_keeps_the_outer_parts_level(cpus in irregular()) {
        let [outer, ..] = levels(&cpus);
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for location in &cpus {
            *sizes.entry(outer(location)).or_default() += 1;
        }
        let count = cpus.len();
        let mut used: BTreeMap<usize, usize> = sizes.keys().map(|id| (*id, 0)).collect();
        for location in picks(cpus, Spacing::Spread, count) {
            *used.get_mut(&outer(&location)).unwrap() += 1;
            for (a, a_size) in &sizes {
                for (b, b_size) in &sizes {
                    // (used[a] - 1) / a_size <= used[b] / b_size
                    let before_last = used[a].saturating_sub(1);
                    prop_assert!(before_last * b_size <= used[b] * a_size);
                }
            }
        }
    }
}
