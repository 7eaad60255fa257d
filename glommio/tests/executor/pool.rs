//! Pools of executors: each shard in its place, with all knobs turned alike, and no panic
//! swallowed.

use std::thread::ThreadId;

use glommio::PoolThreadHandles;

use crate::common::prelude::*;
use crate::common::{cpus_of, permitted_cpus, set_of};

pub fn unbound(shards: usize) -> LocalExecutorPoolBuilder {
    LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards))
}

pub fn outputs<T>(shards: PoolThreadHandles<T>) -> Vec<T> {
    let joined = shards.join_all().into_iter();
    joined
        .map(|output| output.expect("the shard ends in good order"))
        .collect()
}

/// The CPUs to which each shard is bound.
fn bindings(placement: PoolPlacement) -> Vec<Vec<usize>> {
    let shards = LocalExecutorPoolBuilder::new(placement)
        .on_all_shards(|| async { permitted_cpus() })
        .expect("the placement can be met");
    outputs(shards)
}

#[run_test]
fn every_shard_runs_the_program_on_an_executor_and_a_thread_of_its_own() {
    let shards = unbound(5)
        .name("shard")
        .on_all_shards(|| {
            // The executor is there already, and what the future holds need not be `Send`.
            let id = Rc::new(executor().id());
            async move {
                sleep(Duration::from_micros(100)).await;
                let name = thread::current().name().map(str::to_owned);
                (*id, name, thread::current().id())
            }
        })
        .expect("threads can be created");
    let from_outside: Vec<(Option<String>, ThreadId)> = shards
        .handles()
        .iter()
        .map(|handle| {
            (
                handle.thread().name().map(str::to_owned),
                handle.thread().id(),
            )
        })
        .collect();
    let outputs = outputs(shards);
    let ids: BTreeSet<usize> = outputs.iter().map(|output| output.0).collect();
    assert_eq!(ids.len(), 5);
    assert!(!ids.contains(&0));
    // The results are in the order of the handles.
    assert_eq!(outputs.len(), from_outside.len());
    for ((id, name, thread), outside) in outputs.into_iter().zip(from_outside) {
        assert_eq!(name, Some(format!("shard-{id}")));
        assert_eq!((name, thread), outside);
    }
}

#[run_test]
fn dropped_handles_let_the_shards_run_on() {
    let (sender, receiver) = mpsc::channel();
    let shards = unbound(3).on_all_shards(move || async move {
        sleep(Duration::from_millis(2)).await;
        sender.send(executor().id()).expect("the test receives");
    });
    drop(shards.expect("threads can be created"));
    let ids: BTreeSet<usize> = receiver.into_iter().collect();
    assert_eq!(ids.len(), 3);
}

#[run_test]
fn each_shard_is_bound_to_what_the_placement_hands_out() {
    let permitted = permitted_cpus();
    let all: CpuSet = CpuSet::online()
        .expect("sysfs is there")
        .filter(|at| permitted.contains(&at.cpu));
    for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
        for cpus in [None, Some(all.clone())] {
            for shards in 1..=permitted.len() {
                let bound = bindings(make(shards, cpus.clone()));
                assert_eq!(bound.len(), shards);
                assert!(bound.iter().all(|cpus| cpus.len() == 1), "{bound:?}");
                let distinct: BTreeSet<_> = bound.concat().into_iter().collect();
                assert_eq!(distinct.len(), shards);
            }
        }
    }
    // More shards than CPUs, on all of them.
    let more = permitted.len() + 1;
    let everywhere = vec![permitted.clone(); more];
    assert_eq!(
        bindings(PoolPlacement::Fenced(more, all.clone())),
        everywhere
    );
    assert_eq!(bindings(PoolPlacement::Unbound(more)), everywhere);
    // Sets go to the shards in their order.
    let singles = permitted.iter().rev().map(|&cpu| set_of(cpu));
    let sets: Vec<CpuSet> = singles.chain([all]).collect();
    let expected: Vec<Vec<usize>> = sets.iter().map(cpus_of).collect();
    assert_eq!(bindings(PoolPlacement::Custom(sets)), expected);
}

#[test]
fn a_custom_placement_without_sets_is_a_pool_without_shards() {
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Custom(Vec::new()))
        .on_all_shards(|| async {})
        .expect("nothing is wrong with it");
    assert!(shards.handles().is_empty());
    assert!(shards.join_all().is_empty());
}

#[run_test]
fn every_knob_can_be_turned() {
    let cpu = permitted_cpus()[0];
    let set = set_of(cpu);
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Custom(vec![set.clone(), set]))
        .name("all knobs")
        .spin_before_park(Duration::from_micros(10))
        .timer_slack(Duration::from_micros(10))
        .io_memory(1)
        .ring_depth(7)
        .preempt_timer(Duration::from_millis(3))
        .record_io_latencies(true)
        .blocking_thread_pool_placement(PoolPlacement::Unbound(3))
        .on_all_shards(|| async {
            let before = std::time::Instant::now();
            sleep(Duration::from_micros(100)).await;
            // The slice has begun since.
            spin_until_preempted();
            assert!(before.elapsed() >= Duration::from_millis(3));
            executor().spawn_blocking(|| 7).await
        })
        .expect("the CPU exists");
    assert_eq!(outputs(shards), [7, 7]);
}

#[test]
fn without_a_word_a_pool_is_as_one_executor() {
    let (pool, single) = (
        format!("{:?}", unbound(1)),
        format!("{:?}", LocalExecutorBuilder::default()),
    );
    let config = |text: &str| {
        let start = text.find("config: ").expect("both have a configuration");
        let end = text.rfind("blocking_pool").expect("it is the last");
        text[start..end].to_owned()
    };
    assert_eq!(config(&pool), config(&single));
    assert!(pool.starts_with("LocalExecutorPoolBuilder") && pool.contains("Unbound(1)"));
    assert!(pool.ends_with(".. }"), "{pool}");
}

/// CPU time that a shard uses in a sleep of 100 ms, if it may spin as long.
fn cpu_of_a_sleep(placement: PoolPlacement) -> Duration {
    let shards = LocalExecutorPoolBuilder::new(placement)
        .spin_before_park(Duration::from_secs(1))
        .on_all_shards(|| async {
            let before = thread_cpu();
            sleep(Duration::from_millis(100)).await;
            thread_cpu() - before
        })
        .expect("a thread starts");
    outputs(shards)[0]
}

#[run_test]
fn only_shards_with_a_cpu_spin() {
    let cpu = permitted_cpus()[0];
    // Others may use the CPU meanwhile, but not each time.
    wait_until(|| {
        cpu_of_a_sleep(PoolPlacement::Custom(vec![set_of(cpu)])) >= Duration::from_millis(30)
    });
    let used = cpu_of_a_sleep(PoolPlacement::Unbound(1));
    assert!(used < Duration::from_millis(30), "{used:?}");
}

#[run_test]
fn a_panic_is_the_result_of_its_shard_alone() {
    let turn = Arc::new(AtomicUsize::new(0));
    let shards = unbound(4)
        .on_all_shards(move || async move {
            let turn = turn.fetch_add(1, Ordering::SeqCst);
            assert_ne!(turn, 2, "turn of the unlucky");
            turn
        })
        .expect("threads can be created");
    let mut turns = Vec::new();
    let mut panics = Vec::new();
    for output in shards.join_all() {
        match output {
            Ok(turn) => turns.push(turn),
            Err(GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(payload))) => {
                panics.push(payload.message().expect("it has one").to_owned());
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    turns.sort_unstable();
    assert_eq!(turns, [0, 1, 3]);
    assert_eq!(panics.len(), 1);
    assert!(panics[0].contains("turn of the unlucky"), "{panics:?}");
}

#[run_test]
fn when_all_panic_all_results_are_errors() {
    // Before there is a future, and in it.
    let in_generator = unbound(3).on_all_shards::<_, std::future::Ready<()>, _>(|| panic!("first"));
    let in_future = unbound(3).on_all_shards(|| async { panic!("later") });
    for (shards, message) in [(in_generator, "first"), (in_future, "later")] {
        let results = shards.expect("threads can be created").join_all();
        assert_eq!(results.len(), 3);
        for result in results {
            match result {
                Err(GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(payload))) => {
                    assert_eq!(payload.message(), Some(message));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[run_test(in_child)]
fn pools_come_and_go_without_leaving_anything_behind() {
    let (fds, threads_before) = (descriptors(), threads());
    for round in 0..100 {
        let shards = unbound(4).on_all_shards(|| async { executor().spawn_blocking(|| 1).await });
        let shards = shards.expect("threads can be created");
        if round % 2 == 0 {
            assert_eq!(outputs(shards), [1; 4]);
        }
    }
    wait_until(|| threads() == threads_before);
    assert_eq!(descriptors(), fds);
}
