//! Where the threads for blocking calls run: on the CPUs that were asked for, or on those of their
//! executor, and never all on one by accident.

use crate::common::prelude::*;
use crate::common::{cpus_of, permitted_cpus, set_of};

/// The CPUs of the running executor's thread and those of each of the `count` threads of its pool.
async fn cpus_of_all(count: usize) -> (Vec<usize>, Vec<Vec<usize>>) {
    // Each call keeps its thread until all have one.
    let all_here = Arc::new(Barrier::new(count));
    let calls: Vec<_> = (0..count)
        .map(|_| {
            let all_here = Arc::clone(&all_here);
            spawn_local(executor().spawn_blocking(move || {
                all_here.wait();
                let name = thread::current().name().map(str::to_owned);
                (name, permitted_cpus())
            }))
        })
        .collect();
    let mut cpus = Vec::new();
    for call in calls {
        cpus.push(call.await);
    }
    // Threads are numbered as they start, calls find whichever is free.
    cpus.sort_by_key(|(name, _)| (name.as_ref().map(String::len), name.clone()));
    let by_thread = cpus.into_iter().map(|(_, cpus)| cpus).collect();
    (permitted_cpus(), by_thread)
}

fn cpus_in(builder: LocalExecutorBuilder, count: usize) -> (Vec<usize>, Vec<Vec<usize>>) {
    let handle = builder
        .spawn(move || cpus_of_all(count))
        .expect("a thread starts");
    handle.join().expect("it ends in good order")
}

fn permitted_set() -> CpuSet {
    let permitted = permitted_cpus();
    CpuSet::online()
        .expect("sysfs is there")
        .filter(|at| permitted.contains(&at.cpu))
}

#[run_test]
fn threads_of_an_unbound_pool_do_not_inherit_the_executors_binding() {
    let all = permitted_cpus();
    for &cpu in &all {
        let fixed = || LocalExecutorBuilder::new(Placement::Fixed(cpu));
        let builder = fixed().blocking_thread_pool_placement(PoolPlacement::Unbound(3));
        assert_eq!(cpus_in(builder, 3), (vec![cpu], vec![all.clone(); 3]));
        // Placed like the executor if nothing is said.
        assert_eq!(cpus_in(fixed(), 1), (vec![cpu], vec![vec![cpu]]));
        let builder = LocalExecutorBuilder::default()
            .blocking_thread_pool_placement(PoolPlacement::Custom(vec![set_of(cpu)]));
        assert_eq!(cpus_in(builder, 1), (all.clone(), vec![vec![cpu]]));
    }
    let unbound = LocalExecutorBuilder::default();
    assert_eq!(cpus_in(unbound, 1), (all.clone(), vec![all.clone()]));
    let fenced = LocalExecutorBuilder::new(Placement::Fenced(permitted_set()));
    assert_eq!(cpus_in(fenced, 1), (all.clone(), vec![all]));
}

/// What `make` does to the calling thread comes after the threads' CPUs were settled, though they
/// start later; and what that thread was bound to before, by whomever, they are bound to as well.
#[run_test]
fn threads_of_an_unbound_pool_stay_where_the_making_thread_was() {
    let test = || {
        let all = permitted_cpus();
        let last = *all.last().expect("this thread runs somewhere");
        let make = || {
            LocalExecutorBuilder::new(Placement::Fixed(last))
                .blocking_thread_pool_placement(PoolPlacement::Unbound(2))
                .make()
                .expect("the CPU exists")
        };
        assert_eq!(make().run(cpus_of_all(2)), (vec![last], vec![all; 2]));
        // By now this thread is bound.
        assert_eq!(make().run(cpus_of_all(2)).1, vec![vec![last]; 2]);
    };
    thread::spawn(test).join().expect("all as promised");
}

#[run_test]
fn threads_of_one_pool_are_where_their_placement_puts_them() {
    let all = permitted_cpus();
    let count = all.len();
    for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
        for cpus in [None, Some(permitted_set())] {
            // Also beside an executor that is bound to one CPU itself.
            let builder = LocalExecutorBuilder::new(Placement::Fixed(all[0]))
                .blocking_thread_pool_placement(make(count, cpus));
            let (_, threads) = cpus_in(builder, count);
            assert!(threads.iter().all(|cpus| cpus.len() == 1), "{threads:?}");
            let distinct: BTreeSet<usize> = threads.concat().into_iter().collect();
            assert!(distinct.into_iter().eq(all.iter().copied()));
        }
    }
    let fenced = PoolPlacement::Fenced(count + 1, permitted_set());
    let builder = LocalExecutorBuilder::default().blocking_thread_pool_placement(fenced);
    assert_eq!(cpus_in(builder, count + 1).1, vec![all.clone(); count + 1]);
    let sets: Vec<CpuSet> = all.iter().rev().map(|&cpu| set_of(cpu)).collect();
    let expected: Vec<Vec<usize>> = sets.iter().map(cpus_of).collect();
    let builder =
        LocalExecutorBuilder::default().blocking_thread_pool_placement(PoolPlacement::Custom(sets));
    assert_eq!(cpus_in(builder, count).1, expected);
}

/// Once those of all shards were on the first CPU of the pool.
#[run_test]
fn the_thread_of_a_shard_is_on_the_cpus_of_its_shard() {
    let all = permitted_cpus();
    let singles: Vec<CpuSet> = all.iter().map(|&cpu| set_of(cpu)).collect();
    for placement in [
        PoolPlacement::MaxSpread(all.len(), None),
        PoolPlacement::MaxPack(all.len(), None),
        PoolPlacement::Custom(singles),
        PoolPlacement::Fenced(2, permitted_set()),
        PoolPlacement::Unbound(2),
    ] {
        let text = format!("{placement:?}");
        let shards = LocalExecutorPoolBuilder::new(placement)
            .on_all_shards(|| cpus_of_all(1))
            .expect("threads can be created");
        for shard in shards.join_all() {
            let (own, blocking) = shard.expect("the shard ends in good order");
            assert_eq!(blocking, [own], "{text}");
        }
    }
}

#[run_test]
fn a_given_placement_goes_for_each_shard_by_itself() {
    let all = permitted_cpus();
    let sets: Vec<CpuSet> = all.iter().map(|&cpu| set_of(cpu)).collect();
    let expected: Vec<Vec<usize>> = sets.iter().map(cpus_of).collect();
    let count = sets.len();
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3))
        .blocking_thread_pool_placement(PoolPlacement::Custom(sets))
        .on_all_shards(move || cpus_of_all(count))
        .expect("threads can be created");
    for shard in shards.join_all() {
        let (own, blocking) = shard.expect("the shard ends in good order");
        assert_eq!((own, blocking), (all.clone(), expected.clone()));
    }
}

#[test]
fn a_pool_that_cannot_be_placed_is_refused_when_the_executor_is_made() {
    let many = CpuSet::online().expect("sysfs is there").len() + 1;
    for (placement, expected) in [
        (
            PoolPlacement::Unbound(0),
            String::from("NrShards { minimum: 1, shards: 0 }"),
        ),
        (
            PoolPlacement::MaxSpread(many, Some(CpuSet::online().expect("as before"))),
            format!(
                "InsufficientCpus {{ required: {many}, available: {} }}",
                many - 1
            ),
        ),
    ] {
        let builder =
            || LocalExecutorBuilder::default().blocking_thread_pool_placement(placement.clone());
        let made = builder().make().map(drop);
        let spawned = builder().spawn(|| async { unreachable!("not started") });
        for result in [made, spawned.map(drop)] {
            match result {
                Err(GlommioError::BuilderError(kind)) => assert_eq!(format!("{kind:?}"), expected),
                other => panic!("{other:?}"),
            }
        }
    }
    let no_thread = LocalExecutorBuilder::default()
        .blocking_thread_pool_placement(PoolPlacement::Custom(Vec::new()))
        .make();
    assert!(matches!(
        no_thread.expect_err("no thread would run a call"),
        GlommioError::BuilderError(BuilderErrorKind::NrShards {
            minimum: 1,
            shards: 0
        })
    ));
}

/// Threads start when they have something to do, so their number costs nothing.
#[run_test]
fn a_pool_may_have_any_number_of_threads() {
    let executor = LocalExecutorBuilder::default()
        .blocking_thread_pool_placement(PoolPlacement::Fenced(usize::MAX, permitted_set()))
        .make()
        .expect("an executor");
    let (_, blocking) = executor.run(cpus_of_all(20));
    assert_eq!(blocking, vec![permitted_cpus(); 20]);
}
