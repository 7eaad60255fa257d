//! Pools of executors: all or nothing at the start, each shard in its place, no error swallowed.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use glommio::timer::sleep;
use glommio::{
    BuilderErrorKind, CpuLocation, CpuSet, ExecutorJoinHandle, GlommioError, LocalExecutorBuilder,
    LocalExecutorPoolBuilder, PoolPlacement, PoolThreadHandles, executor,
};
use nix::sys::resource::Resource;

use crate::common::{
    assert_not, cpus_of, descriptors, in_child, in_child_with, panic_of, permitted_cpus, set_limit,
    set_of, thread_cpu, threads, wait_until, watchdog,
};

fn unbound(shards: usize) -> LocalExecutorPoolBuilder {
    LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards))
}

fn outputs<T>(shards: PoolThreadHandles<T>) -> Vec<T> {
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

/// The error of a pool that must not come into being.
fn refused(builder: LocalExecutorPoolBuilder) -> GlommioError<()> {
    let shards = builder.on_all_shards(|| async { unreachable!("a shard of a refused pool") });
    shards.map(drop).expect_err("this is to be refused")
}

#[test]
fn every_shard_runs_the_program_on_an_executor_and_a_thread_of_its_own() {
    let _watchdog = watchdog();
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

#[test]
fn the_calling_thread_does_not_wait_for_the_shards() {
    let _watchdog = watchdog();
    let go_on = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go_on);
    let shards = unbound(3)
        .on_all_shards(move || async move {
            while !wait.load(Ordering::SeqCst) {
                sleep(Duration::from_micros(200)).await;
            }
        })
        .expect("threads can be created");
    assert!(shards.handles().iter().all(|handle| !handle.is_finished()));
    go_on.store(true, Ordering::SeqCst);
    outputs(shards);
}

#[test]
fn dropped_handles_let_the_shards_run_on() {
    let _watchdog = watchdog();
    let (sender, receiver) = mpsc::channel();
    let shards = unbound(3).on_all_shards(move || async move {
        sleep(Duration::from_millis(2)).await;
        sender.send(executor().id()).expect("somebody listens");
    });
    drop(shards.expect("threads can be created"));
    let ids: BTreeSet<usize> = receiver.into_iter().collect();
    assert_eq!(ids.len(), 3);
}

/// Part of a program: can be cloned a few times, and remembers the threads on which its clones end.
struct Generator(Arc<Fate>);

#[derive(Default)]
struct Fate {
    clones: AtomicUsize,
    clones_max: Option<usize>,
    ends: Mutex<Vec<ThreadId>>,
}

impl Fate {
    fn clones(&self) -> usize {
        self.clones.load(Ordering::SeqCst)
    }

    fn ends(&self) -> Vec<ThreadId> {
        self.ends.lock().unwrap().clone()
    }
}

impl Clone for Generator {
    fn clone(&self) -> Self {
        let clones = self.0.clones.fetch_add(1, Ordering::SeqCst);
        assert!(
            self.0.clones_max.is_none_or(|max| clones < max),
            "one too many"
        );
        Generator(Arc::clone(&self.0))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.0.ends.lock().unwrap().push(thread::current().id());
    }
}

#[test]
fn the_program_is_cloned_once_for_each_shard() {
    let _watchdog = watchdog();
    let fate = Arc::<Fate>::default();
    let generator = Generator(Arc::clone(&fate));
    let shards = unbound(4)
        .on_all_shards(move || {
            let generator = generator;
            async move { drop(generator) }
        })
        .expect("threads can be created");
    outputs(shards);
    assert_eq!((fate.clones(), fate.ends().len()), (4, 5));
}

#[test]
fn each_shard_is_bound_to_what_the_placement_hands_out() {
    let _watchdog = watchdog();
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

#[test]
fn a_placement_that_cannot_be_met_is_refused_with_both_numbers() {
    let missing = CpuLocation {
        cpu: usize::MAX,
        core: 0,
        package: 0,
        numa_node: 0,
    };
    let nothing = || CpuSet::from_iter([]);
    let online = || CpuSet::online().expect("sysfs is there");
    let (permitted, count) = (permitted_cpus().len(), online().len());
    let insufficient = |required, available| {
        format!("InsufficientCpus {{ required: {required}, available: {available} }}")
    };
    let no_shards = String::from("NrShards { minimum: 1, shards: 0 }");
    let non_existent = format!("NonExistentCpus {{ cpu: {} }}", usize::MAX);
    let mut cases = vec![
        (PoolPlacement::Unbound(0), no_shards.clone()),
        (PoolPlacement::Fenced(0, online()), no_shards.clone()),
        (PoolPlacement::Fenced(3, nothing()), insufficient(1, 0)),
        (
            PoolPlacement::Fenced(3, CpuSet::from_iter([missing.clone()])),
            non_existent.clone(),
        ),
        (
            PoolPlacement::Custom(vec![online(), nothing()]),
            insufficient(1, 0),
        ),
        (
            PoolPlacement::Custom(vec![online(), CpuSet::from_iter([missing.clone()])]),
            non_existent.clone(),
        ),
    ];
    for make in [PoolPlacement::MaxSpread, PoolPlacement::MaxPack] {
        cases.extend([
            (make(0, None), no_shards.clone()),
            (
                make(permitted + 1, None),
                insufficient(permitted + 1, permitted),
            ),
            (
                make(count + 1, Some(online())),
                insufficient(count + 1, count),
            ),
            (
                make(1, Some(CpuSet::from_iter([missing.clone()]))),
                non_existent.clone(),
            ),
        ]);
    }
    for (placement, expected) in cases {
        let text = format!("{placement:?}");
        match refused(LocalExecutorPoolBuilder::new(placement)) {
            GlommioError::BuilderError(kind) => assert_eq!(format!("{kind:?}"), expected, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn knobs_are_refused_before_anything_is_made() {
    let long = Duration::from_secs(2);
    for builder in [
        unbound(2).name("zero\0inside"),
        unbound(2).timer_slack(long),
    ] {
        let text = format!("{builder:?}");
        match refused(builder) {
            GlommioError::IoError(error) => {
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    let no_thread = unbound(2).blocking_thread_pool_placement(PoolPlacement::Unbound(0));
    assert!(matches!(
        refused(no_thread),
        GlommioError::BuilderError(BuilderErrorKind::NrShards {
            minimum: 1,
            shards: 0
        })
    ));
    let message = panic_of(|| unbound(2).ring_depth(0));
    assert_eq!(message, "ring depth should be strictly positive");
}

#[test]
fn every_knob_can_be_turned() {
    let _watchdog = watchdog();
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
            sleep(Duration::from_micros(100)).await;
            let started = std::time::Instant::now();
            while !executor().need_preempt() {
                std::hint::spin_loop();
            }
            // Far from the 100 ms of the default, however busy the machine.
            assert!(started.elapsed() >= Duration::from_micros(2900));
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
    let knobs = |text: &str| {
        let start = text.find("knobs: ").expect("both have knobs");
        let end = text.rfind("blocking_pool").expect("it is the last");
        text[start..end].to_owned()
    };
    assert_eq!(knobs(&pool), knobs(&single));
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

#[test]
fn only_shards_with_a_cpu_spin() {
    let _watchdog = watchdog();
    let cpu = permitted_cpus()[0];
    // Others may use the CPU meanwhile, but not each time.
    wait_until(|| {
        cpu_of_a_sleep(PoolPlacement::Custom(vec![set_of(cpu)])) >= Duration::from_millis(30)
    });
    let used = cpu_of_a_sleep(PoolPlacement::Unbound(1));
    assert!(used < Duration::from_millis(30), "{used:?}");
}

#[test]
fn a_panic_is_the_result_of_its_shard_alone() {
    let _watchdog = watchdog();
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

#[test]
fn when_all_panic_all_results_are_errors() {
    let _watchdog = watchdog();
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

#[test]
fn a_program_that_cannot_be_cloned_starts_no_thread() {
    let _watchdog = watchdog();
    let fate = Arc::new(Fate {
        clones_max: Some(2),
        ..Fate::default()
    });
    let generator = Generator(Arc::clone(&fate));
    let message = panic_of(|| {
        unbound(4).on_all_shards(move || {
            let _generator = generator;
            async { unreachable!("a shard of half a pool") }
        })
    });
    assert_eq!(message, "one too many");
    wait_until(|| fate.ends().len() == 3);
    assert_eq!(fate.ends(), [thread::current().id(); 3]);
}

/// As many stacks as this fit into the memory of the child, about.
const ROOM: u64 = 8;
const STACK_BYTES: u64 = 256 << 20;

#[test]
fn shards_give_up_if_the_thread_of_one_cannot_be_created() {
    let name = "pool::shards_give_up_if_the_thread_of_one_cannot_be_created";
    let stack = STACK_BYTES.to_string();
    in_child_with(name, &[("RUST_MIN_STACK", &stack)], || {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs is mounted");
        let pages = statm.split_whitespace().next();
        let pages: u64 = pages.and_then(|it| it.parse().ok()).expect("a number");
        set_limit(Resource::RLIMIT_AS, pages * 4096 + ROOM * STACK_BYTES);
        let (fds, threads_before) = (descriptors(), threads());
        // Also when it is not the first time.
        for _ in 0..3 {
            let fate = Arc::<Fate>::default();
            let generator = Generator(Arc::clone(&fate));
            let shards = unbound(50).on_all_shards(move || {
                let _generator = generator;
                unreachable!("a shard of half a pool") as std::future::Ready<()>
            });
            match shards {
                Err(GlommioError::IoError(error)) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EAGAIN), "{error}");
                }
                other => panic!("there is no room for 50 threads: {other:?}"),
            }
            // When the error comes, all have given up and nothing of theirs is left.
            assert_eq!(descriptors(), fds);
            let ends = fate.ends();
            assert_eq!((fate.clones(), ends.len()), (50, 51));
            let here = thread::current().id();
            let others: HashSet<_> = ends.iter().filter(|&&end| end != here).collect();
            assert!((1..50).contains(&others.len()), "{others:?}");
            // The kernel tells the parent a moment before it takes a thread off its list.
            wait_until(|| threads() == threads_before);
        }
        outputs(unbound(2).on_all_shards(|| async {}).expect("room for two"));
    });
}

#[test]
fn a_pool_for_which_descriptors_do_not_suffice_is_refused() {
    in_child(
        "pool::a_pool_for_which_descriptors_do_not_suffice_is_refused",
        || {
            set_limit(Resource::RLIMIT_NOFILE, 64);
            let (fds, threads_before) = (descriptors(), threads());
            for shards in [100, usize::MAX] {
                match refused(unbound(shards)) {
                    GlommioError::IoError(error) => {
                        assert_eq!(error.raw_os_error(), Some(libc::EMFILE), "{error}");
                    }
                    other => panic!("{other:?}"),
                }
                assert_eq!((descriptors(), threads()), (fds, threads_before));
            }
        },
    );
}

/// Those that got no ring say so, as the variant that it was made as, and the others work.
#[test]
fn a_shard_that_cannot_be_made_does_not_hold_up_the_others() {
    in_child(
        "pool::a_shard_that_cannot_be_made_does_not_hold_up_the_others",
        || {
            const SHARDS: usize = 8;
            // Each has its eventfd, and not all have a ring.
            let limit = descriptors() + SHARDS + SHARDS / 2;
            set_limit(Resource::RLIMIT_NOFILE, limit as u64);
            let go_on = Arc::new(AtomicBool::new(false));
            let wait = Arc::clone(&go_on);
            let shards = unbound(SHARDS)
                .on_all_shards(move || async move {
                    while !wait.load(Ordering::SeqCst) {
                        sleep(Duration::from_micros(200)).await;
                    }
                    executor().id()
                })
                .expect("threads can be created");
            // Nobody gives a descriptor back before somebody has missed it.
            wait_until(|| shards.handles().iter().any(|handle| handle.is_finished()));
            go_on.store(true, Ordering::SeqCst);
            let (made, failed): (Vec<_>, Vec<_>) =
                shards.join_all().into_iter().partition(Result::is_ok);
            assert_eq!(made.len() + failed.len(), SHARDS);
            assert!(!made.is_empty() && !failed.is_empty());
            for result in failed {
                match result {
                    Err(GlommioError::IoError(error)) => {
                        assert!(error.to_string().contains("open files"), "{error}");
                    }
                    other => panic!("{other:?}"),
                }
            }
        },
    );
}

#[test]
fn pools_come_and_go_without_leaving_anything_behind() {
    in_child(
        "pool::pools_come_and_go_without_leaving_anything_behind",
        || {
            let (fds, threads_before) = (descriptors(), threads());
            for round in 0..100 {
                let shards =
                    unbound(4).on_all_shards(|| async { executor().spawn_blocking(|| 1).await });
                let shards = shards.expect("threads can be created");
                if round % 2 == 0 {
                    assert_eq!(outputs(shards), [1; 4]);
                }
            }
            wait_until(|| threads() == threads_before);
            assert_eq!(descriptors(), fds);
        },
    );
}

#[test]
fn the_builder_stays_and_the_handles_travel() {
    fn travels<T: Send + Sync + std::fmt::Debug>() {}
    fn debug<T: std::fmt::Debug>() {}
    assert_not!(Send: LocalExecutorPoolBuilder);
    assert_not!(Sync: LocalExecutorPoolBuilder);
    debug::<LocalExecutorPoolBuilder>();
    travels::<PoolThreadHandles<u8>>();
    travels::<ExecutorJoinHandle<u8>>();
}

#[test]
fn the_prelude_has_both_names() {
    use glommio::prelude as p;
    let build: fn(PoolPlacement) -> p::LocalExecutorPoolBuilder = LocalExecutorPoolBuilder::new;
    let shards: p::PoolThreadHandles<()> = build(PoolPlacement::Unbound(1))
        .on_all_shards(|| async {})
        .expect("a thread starts");
    outputs(shards);
}
