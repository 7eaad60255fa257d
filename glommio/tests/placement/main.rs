//! Which CPUs placements choose, on whatever machine the tests run.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic;

use glommio::CpuLocation;
use nix::sched;
use nix::unistd::Pid;

#[path = "../common/mod.rs"]
mod common;

use common::{cpus_of, permitted_cpus};

use crate::common::prelude::*;

mod single {
    use super::*;

    #[test]
    fn unbound_binds_to_nothing() {
        let mut generator = Placement::Unbound.generate_cpu_set().unwrap();
        for _ in 0..3 {
            assert!(generator.next().cpu_binding().is_none());
        }
        assert_eq!(generator.next().count(), 0);
    }

    #[test]
    fn fenced_binds_to_the_whole_set() {
        let mut generator = Placement::Fenced(online()).generate_cpu_set().unwrap();
        assert_eq!(binding(generator.next().cpu_binding()), cpus_of(&online()));
        assert_eq!(generator.next().collect::<CpuSet>(), online());
    }

    #[test]
    fn fenced_refuses_nothing_and_what_is_not_there() {
        assert_insufficient(Placement::Fenced(empty()).generate_cpu_set(), 1, 0);

        let set: CpuSet = online()
            .into_iter()
            .chain([missing(2), missing(1)])
            .collect();
        assert_non_existent(Placement::Fenced(set).generate_cpu_set(), missing(1).cpu);
    }

    /// Users make locations by hand, and may not know what core a CPU belongs to.
    #[test]
    fn only_the_id_of_a_cpu_must_exist() {
        let cpu = lowest_online();
        let location = CpuLocation {
            cpu,
            core: 1 << 20,
            package: 1 << 20,
            numa_node: 1 << 20,
        };
        let set = CpuSet::from_iter([location]);
        let mut generator = Placement::Fenced(set).generate_cpu_set().unwrap();
        assert_eq!(binding(generator.next().cpu_binding()), [cpu]);
    }

    #[test]
    fn fixed_binds_to_one_cpu() {
        for location in online() {
            let placement = Placement::Fixed(location.cpu);
            let mut generator = placement.generate_cpu_set().unwrap();
            assert_eq!(binding(generator.next().cpu_binding()), [location.cpu]);
            assert_eq!(generator.next().collect::<Vec<_>>(), [location]);
        }
    }

    #[test]
    fn fixed_refuses_what_is_not_there() {
        let placement = Placement::Fixed(usize::MAX);
        assert_non_existent(placement.generate_cpu_set(), usize::MAX);
    }
}

mod pool {
    use super::*;

    #[test]
    fn the_number_of_shards_is_what_was_asked_for() {
        assert_eq!(PoolPlacement::Unbound(3).executor_count(), 3);
        assert_eq!(PoolPlacement::Fenced(4, online()).executor_count(), 4);
        assert_eq!(PoolPlacement::MaxSpread(5, None).executor_count(), 5);
        assert_eq!(PoolPlacement::MaxPack(6, None).executor_count(), 6);
        assert_eq!(PoolPlacement::Custom(vec![empty(); 7]).executor_count(), 7);
    }

    #[test]
    fn zero_shards_are_refused_before_anything_else() {
        for placement in [
            PoolPlacement::Unbound(0),
            PoolPlacement::Fenced(0, empty()),
            PoolPlacement::MaxSpread(0, None),
            PoolPlacement::MaxSpread(0, Some(empty())),
            PoolPlacement::MaxPack(0, None),
            PoolPlacement::MaxPack(0, Some(one_missing())),
        ] {
            let text = format!("{placement:?}");
            match placement.generate_cpu_set() {
                Err(GlommioError::BuilderError(BuilderErrorKind::NrShards { minimum, shards })) => {
                    assert_eq!((minimum, shards), (1, 0), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn fenced_refuses_nothing_and_what_is_not_there() {
        assert_insufficient(PoolPlacement::Fenced(3, empty()).generate_cpu_set(), 1, 0);
        assert_non_existent(
            PoolPlacement::Fenced(3, one_missing()).generate_cpu_set(),
            missing(0).cpu,
        );
    }

    #[test]
    fn spread_and_pack_refuse_more_shards_than_cpus() {
        let count = online().len();
        for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
            let placement = make(count + 1, Some(online()));
            assert_insufficient(placement.generate_cpu_set(), count + 1, count);
            assert_insufficient(make(1, Some(empty())).generate_cpu_set(), 1, 0);
            // The number is checked before the existence.
            assert_insufficient(make(2, Some(one_missing())).generate_cpu_set(), 2, 1);
            let placement = make(1, Some(one_missing()));
            assert_non_existent(placement.generate_cpu_set(), missing(0).cpu);
        }
    }

    /// A container's CPUs are known by the affinity of its threads.
    #[test]
    fn spread_and_pack_of_everything_leave_forbidden_cpus_out() {
        let test = || {
            let permitted = *permitted_cpus().last().expect("this thread runs somewhere");
            bind_to(permitted);
            for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
                let mut generator = make(1, None).generate_cpu_set().unwrap();
                assert_eq!(binding(generator.next().cpu_binding()), [permitted]);
                assert_insufficient(make(2, None).generate_cpu_set(), 2, 1);
            }
        };
        // The mask is of the thread, and this one goes on to other tests.
        thread::spawn(test).join().unwrap();
    }

    /// A thread that is bound to a CPU makes a pool on all of them.
    #[test]
    fn spread_and_pack_of_named_cpus_may_leave_the_mask_of_the_thread() {
        let whole = permitted_cpus();
        let test = move || {
            bind_to(whole[0]);
            for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
                let named = online().filter(|at| whole.contains(&at.cpu));
                let mut generator = make(whole.len(), Some(named)).generate_cpu_set().unwrap();
                let picked: BTreeSet<usize> = (0..whole.len())
                    .flat_map(|_| binding(generator.next().cpu_binding()))
                    .collect();
                assert!(picked.iter().eq(&whole));
            }
        };
        thread::spawn(test).join().unwrap();
    }

    #[test]
    fn the_default_number_of_shards_fits_what_the_thread_may_use() {
        let test = || {
            let shards = PoolPlacement::default_shards();
            assert!((1..=permitted_cpus().len()).contains(&shards));
            let placement = PoolPlacement::MaxSpread(shards, None);
            assert!(placement.generate_cpu_set().is_ok());
            bind_to(permitted_cpus()[0]);
            assert_eq!(PoolPlacement::default_shards(), 1);
        };
        thread::spawn(test).join().unwrap();
    }

    #[test]
    fn the_choice_is_the_same_every_time() {
        let choose = || {
            let count = permitted().len();
            let placement = PoolPlacement::MaxSpread(count, Some(permitted()));
            let mut generator = placement.generate_cpu_set().unwrap();
            (0..count)
                .flat_map(|_| binding(generator.next().cpu_binding()))
                .collect::<Vec<_>>()
        };
        assert_eq!(choose(), choose());
    }

    #[test]
    fn custom_sets_come_in_the_order_given() {
        let singles = online()
            .into_iter()
            .map(|location| CpuSet::from_iter([location]));
        let sets: Vec<CpuSet> = singles.chain([online()]).collect();
        let placement = PoolPlacement::Custom(sets.clone());
        let mut generator = placement.generate_cpu_set().unwrap();
        for set in &sets {
            assert_eq!(binding(generator.next().cpu_binding()), cpus_of(set));
        }

        let asked_too_often = panic::AssertUnwindSafe(|| generator.next());
        assert!(panic::catch_unwind(asked_too_often).is_err());
    }

    #[test]
    fn custom_checks_each_set() {
        let placement = PoolPlacement::Custom(vec![online(), empty()]);
        assert_insufficient(placement.generate_cpu_set(), 1, 0);
        let placement = PoolPlacement::Custom(vec![online(), one_missing()]);
        assert_non_existent(placement.generate_cpu_set(), missing(0).cpu);
    }

    #[test]
    fn a_single_placement_is_a_pool_of_one() {
        assert_eq!(
            PoolPlacement::from(Placement::Unbound),
            PoolPlacement::Unbound(1)
        );
        assert_eq!(
            PoolPlacement::from(Placement::Fenced(online())),
            PoolPlacement::Fenced(1, online())
        );

        let cpu = lowest_online();
        let expected = online().filter(|location| location.cpu == cpu);
        assert_eq!(
            PoolPlacement::from(Placement::Fixed(cpu)),
            PoolPlacement::Custom(vec![expected])
        );

        let nowhere = PoolPlacement::from(Placement::Fixed(usize::MAX));
        assert_eq!(nowhere, PoolPlacement::Custom(vec![empty()]));
    }
}

mod cpu_set {
    use super::*;

    #[test]
    fn online_holds_what_the_kernel_lists() {
        let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        let listed: Vec<usize> = list
            .trim()
            .split(',')
            .flat_map(|part| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                first.parse::<usize>().unwrap()..=last.parse().unwrap()
            })
            .collect();
        assert_eq!(cpus_of(&online()), listed);
        assert_eq!(online(), online());
    }

    #[test]
    fn filters_add_up() {
        let all = numbered(0..100);
        let some = all
            .clone()
            .filter(|location| location.cpu % 2 == 0)
            .filter(|location| location.cpu % 3 == 0);
        assert_eq!(some, numbered((0..100).step_by(6)));
        assert!(all.filter(|_| false).is_empty());
    }

    #[test]
    fn sets_compare_like_sets() {
        let (low, high) = (numbered(0..6), numbered(4..9));
        let set = |locations: Vec<&CpuLocation>| locations.into_iter().cloned().collect::<CpuSet>();

        assert_eq!(set(low.union(&high).collect()), numbered(0..9));
        assert_eq!(set(low.intersection(&high).collect()), numbered(4..6));
        assert_eq!(set(low.difference(&high).collect()), numbered(0..4));
        assert_eq!(
            set(low.symmetric_difference(&high).collect()),
            numbered((0..4).chain(6..9))
        );

        assert!(!low.is_disjoint(&high) && low.is_disjoint(&numbered(6..9)));
        assert!(!low.is_subset(&high) && numbered(4..6).is_subset(&low));
        assert!(!low.is_superset(&high) && low.is_superset(&numbered(4..6)));
        assert_eq!((low.len(), empty().len()), (6, 0));
        assert!(low.contains(&location(5)) && !low.contains(&location(6)));
        assert_eq!(set(low.iter().collect()), low);
        assert_eq!(set((&low).into_iter().collect()), low);
    }

    /// Hashes once followed the order of iteration, which differs from set to set.
    #[test]
    fn equal_sets_hash_alike() {
        let hash = |set: &CpuSet| {
            let mut hasher = DefaultHasher::new();
            set.hash(&mut hasher);
            hasher.finish()
        };
        let forwards = numbered(0..64);
        let backwards = numbered((0..64).rev());
        assert_eq!(forwards, backwards);
        assert_eq!(hash(&forwards), hash(&backwards));
        assert_ne!(hash(&forwards), hash(&numbered(0..63)));

        let placements = HashSet::from([
            PoolPlacement::Custom(vec![forwards.clone()]),
            PoolPlacement::Custom(vec![backwards]),
            PoolPlacement::Fenced(1, forwards),
        ]);
        assert_eq!(placements.len(), 2);
    }

    /// Each field of a location counts.
    #[test]
    fn hashes_see_where_cpus_sit() {
        let hash = |location: CpuLocation| {
            let mut hasher = DefaultHasher::new();
            CpuSet::from_iter([location]).hash(&mut hasher);
            hasher.finish()
        };
        let hashes = HashSet::from([
            hash(location(1)),
            hash(CpuLocation {
                cpu: 9,
                ..location(1)
            }),
            hash(CpuLocation {
                core: 9,
                ..location(1)
            }),
            hash(CpuLocation {
                package: 9,
                ..location(1)
            }),
            hash(CpuLocation {
                numa_node: 9,
                ..location(1)
            }),
        ]);
        assert_eq!(hashes.len(), 5);
    }
}

mod auto_traits {
    use super::*;

    fn is_shareable<T: Send + Sync + 'static>(_: &T) {}

    #[test]
    fn placements_go_to_other_threads() {
        is_shareable(&Placement::Unbound);
        is_shareable(&PoolPlacement::Unbound(1));
        is_shareable(&online());
        let mut generator = PoolPlacement::MaxPack(1, None).generate_cpu_set().unwrap();
        is_shareable(&generator);
        let cpus = generator.next();
        is_shareable(&cpus);
        assert_eq!(format!("{:?}", cpus.clone()), format!("{cpus:?}"));
        assert_eq!(
            binding(cpus.clone().cpu_binding()),
            binding(cpus.cpu_binding())
        );
    }
}

fn online() -> CpuSet {
    CpuSet::online().unwrap()
}

/// Those that a container leaves to the tests.
fn permitted() -> CpuSet {
    let permitted = permitted_cpus();
    online().filter(|at| permitted.contains(&at.cpu))
}

fn empty() -> CpuSet {
    CpuSet::from_iter([])
}

fn location(id: usize) -> CpuLocation {
    CpuLocation {
        cpu: id,
        core: id / 2,
        package: id / 4,
        numa_node: id / 8,
    }
}

fn numbered(ids: impl IntoIterator<Item = usize>) -> CpuSet {
    ids.into_iter().map(location).collect()
}

/// The `nth` of the CPUs that no machine has.
fn missing(nth: usize) -> CpuLocation {
    location((1 << 30) + nth)
}

fn one_missing() -> CpuSet {
    CpuSet::from_iter([missing(0)])
}

fn lowest_online() -> usize {
    cpus_of(&online())[0]
}

fn binding(cpus: Option<impl IntoIterator<Item = usize>>) -> Vec<usize> {
    let cpus = cpus.expect("this placement binds its shards");
    cpus.into_iter().collect()
}

fn bind_to(cpu: usize) {
    let mut mask = sched::CpuSet::new();
    mask.set(cpu).unwrap();
    sched::sched_setaffinity(Pid::from_raw(0), &mask).unwrap();
}

#[track_caller]
fn assert_insufficient<T>(result: glommio::Result<T, ()>, wanted: usize, found: usize) {
    match result {
        Err(GlommioError::BuilderError(BuilderErrorKind::InsufficientCpus {
            required,
            available,
        })) => assert_eq!((required, available), (wanted, found)),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("too few CPUs were enough"),
    }
}

#[track_caller]
fn assert_non_existent<T>(result: glommio::Result<T, ()>, wanted: usize) {
    match result {
        Err(GlommioError::BuilderError(BuilderErrorKind::NonExistentCpus { cpu })) => {
            assert_eq!(cpu, wanted);
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("a missing CPU was found"),
    }
}
