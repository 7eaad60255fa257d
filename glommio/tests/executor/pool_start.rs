//! The start of a pool is all or nothing; only what a shard finds out on its own thread is its own
//! affair.

use std::thread::ThreadId;

use nix::sys::resource::Resource;

use crate::common::prelude::*;
use crate::common::{mapped_bytes, permitted_cpus};
use crate::pool::{outputs, unbound};

/// The error of a pool that must not come into being, on no thread but this one.
fn refused(builder: LocalExecutorPoolBuilder) -> GlommioError<()> {
    let fate = Arc::<Fate>::default();
    let generator = Generator(Arc::clone(&fate));
    let shards = builder.on_all_shards(move || {
        generator.call();
        async {}
    });
    let here = thread::current().id();
    assert!(fate.ends().into_iter().all(|end| end == here));
    assert_eq!((fate.calls(), fate.ends().len()), (0, fate.clones() + 1));
    shards.expect_err("this is to be refused")
}

/// Part of a program: can be cloned a few times, and remembers the threads on which its clones end.
struct Generator(Arc<Fate>);

#[derive(Default)]
struct Fate {
    clones: AtomicUsize,
    clones_max: Option<usize>,
    /// How many shards ran the program.
    calls: AtomicUsize,
    ends: Mutex<Vec<ThreadId>>,
}

impl Fate {
    fn clones(&self) -> usize {
        self.clones.load(Ordering::SeqCst)
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn ends(&self) -> Vec<ThreadId> {
        self.ends.lock().unwrap().clone()
    }
}

impl Generator {
    fn call(self) {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
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

#[run_test]
fn the_program_is_cloned_once_for_each_shard() {
    let fate = Arc::<Fate>::default();
    let generator = Generator(Arc::clone(&fate));
    let shards = unbound(4)
        .on_all_shards(move || {
            generator.call();
            async {}
        })
        .expect("threads can be created");
    outputs(shards);
    assert_eq!((fate.clones(), fate.calls(), fate.ends().len()), (4, 4, 5));
}

/// What each placement demands is tested in `placement`.
#[test]
fn a_placement_that_cannot_be_met_is_refused_with_both_numbers() {
    let permitted = permitted_cpus().len();
    let online = CpuSet::online().expect("sysfs is there");
    let sets = vec![online, CpuSet::from_iter([])];
    let cases = [
        (
            PoolPlacement::Unbound(0),
            "NrShards { minimum: 1, shards: 0 }".to_owned(),
        ),
        (
            PoolPlacement::MaxSpread(permitted + 1, None),
            format!(
                "InsufficientCpus {{ required: {}, available: {permitted} }}",
                permitted + 1
            ),
        ),
        (
            PoolPlacement::Custom(sets),
            "InsufficientCpus { required: 1, available: 0 }".to_owned(),
        ),
    ];
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

#[run_test]
fn a_program_that_cannot_be_cloned_starts_no_thread() {
    let fate = Arc::new(Fate {
        clones_max: Some(2),
        ..Fate::default()
    });
    let generator = Generator(Arc::clone(&fate));
    let message = panic_of(|| {
        unbound(4).on_all_shards(move || {
            generator.call();
            async {}
        })
    });
    assert_eq!(message, "one too many");
    wait_until(|| fate.ends().len() == 3);
    assert_eq!(fate.ends(), [thread::current().id(); 3]);
    assert_eq!(fate.calls(), 0);
}

/// About so many stacks fit into the memory of the child.
const STACKS: u64 = 8;
const STACK_BYTES: u64 = 256 << 20;

#[test]
fn shards_give_up_if_the_thread_of_one_cannot_be_created() {
    let stack = STACK_BYTES.to_string();
    in_child_with(&[("RUST_MIN_STACK", &stack)], || {
        set_limit(
            Resource::RLIMIT_AS,
            mapped_bytes() as u64 + STACKS * STACK_BYTES,
        );
        let (fds, threads_before) = (descriptors(), threads());
        // Also when it is not the first time.
        for _ in 0..3 {
            let fate = Arc::<Fate>::default();
            let generator = Generator(Arc::clone(&fate));
            let shards = unbound(50).on_all_shards(move || {
                generator.call();
                async {}
            });
            match shards {
                Err(GlommioError::IoError(error)) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EAGAIN), "{error}");
                }
                other => panic!("there is no memory for 50 threads: {other:?}"),
            }
            // When the error comes, all have given up and nothing of theirs is left.
            assert_eq!(descriptors(), fds);
            let ends = fate.ends();
            assert_eq!((fate.clones(), fate.calls(), ends.len()), (50, 0, 51));
            let here = thread::current().id();
            let others: HashSet<_> = ends.iter().filter(|&&end| end != here).collect();
            assert!((1..50).contains(&others.len()), "{others:?}");
            // The kernel tells the parent a moment before it takes a thread off its list.
            wait_until(|| threads() == threads_before);
        }
        outputs(
            unbound(2)
                .on_all_shards(|| async {})
                .expect("memory for two"),
        );
    });
}

#[run_test(in_child)]
fn a_pool_for_which_descriptors_do_not_suffice_is_refused() {
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
}

/// Those that got no ring say so, as the variant that it was made as, and the others work.
#[run_test(in_child)]
fn a_shard_that_cannot_be_made_does_not_hold_up_the_others() {
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
    // No shard gives a descriptor back before another has missed it.
    wait_until(|| shards.handles().iter().any(|handle| handle.is_finished()));
    go_on.store(true, Ordering::SeqCst);
    let (made, failed): (Vec<_>, Vec<_>) = shards.join_all().into_iter().partition(Result::is_ok);
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
}
