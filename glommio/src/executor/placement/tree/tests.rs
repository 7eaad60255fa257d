use proptest::prelude::*;

use super::*;

fn picks(cpus: CpuSet, spacing: Spacing, count: usize) -> Vec<CpuLocation> {
    let mut tree = CpuTree::new(cpus, spacing);
    (0..count).map(|_| tree.pick()).collect()
}

/// Machines with nothing regular about them, but with machine-wide core ids.
fn irregular() -> impl Strategy<Value = CpuSet> {
    let core = (0..3usize, 0..4usize, 1..5usize);
    prop::collection::vec(core, 1..12).prop_map(|cores| {
        let mut next_cpu = 0;
        let mut locations = Vec::new();
        for (core, (numa_node, package, threads)) in cores.into_iter().enumerate() {
            for _ in 0..threads {
                locations.push(CpuLocation {
                    cpu: next_cpu,
                    core,
                    package,
                    numa_node,
                });
                next_cpu += 1;
            }
        }
        locations.into_iter().collect()
    })
}

proptest! {
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
