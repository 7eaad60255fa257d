//! What goes wrong at the start, and rings of older kernels. Each case is a process of its own.

use std::fs::File;

use glommio::ReactorErrorKind;
use nix::sys::resource::Resource;

use crate::common::log::hearing;
use crate::common::prelude::*;
pub(crate) use crate::common::seccomp::{deny, forbid, install};
use crate::common::{permitted_cpus, set_of};

/// For what only io_uring has.
pub(crate) const ON_RING: [(&str, &str); 1] = [("GLOMMIO_DRIVER", "io_uring")];

/// Root is exempt from the limit of locked memory, which the kernel counts by user: this process, which
/// is a child of a test, is that of a user of its own from now on, if it may.
pub(crate) fn become_an_ordinary_user() -> bool {
    let user = 10_000 + std::process::id() % 50_000;
    // SAFETY: these take numbers only; this process does nothing else.
    unsafe { libc::setgid(user) == 0 && libc::setuid(user) == 0 }
}

/// What making an executor fails with, from `make`, from a thread of its own, and as a shard.
fn errors_of_making() -> Vec<GlommioError<()>> {
    let made = LocalExecutorBuilder::default().make().map(drop);
    let spawned = LocalExecutorBuilder::default()
        .spawn(|| async { unreachable!("there is no executor") })
        .and_then(|handle| handle.join());
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
        .on_all_shards(|| async { unreachable!("there is no executor") })
        .expect("what a shard lacks is not known before it runs");
    let results = [made, spawned].into_iter().chain(shards.join_all());
    results
        .map(|result| result.expect_err("it cannot be made"))
        .collect()
}

fn assert_fails_without_leaks(kind: io::ErrorKind, errno: i32, words: &[&str]) {
    for error in errors_of_making() {
        let GlommioError::IoError(error) = error else {
            panic!("not an I/O error: {error:?}");
        };
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
        let source = std::error::Error::source(&error)
            .and_then(|source| source.downcast_ref::<io::Error>())
            .or_else(|| error.get_ref()?.source()?.downcast_ref::<io::Error>())
            .expect("the kernel's own error is kept");
        assert_eq!(source.raw_os_error(), Some(errno));
    }
    let before = descriptors();
    (0..100).for_each(|_| drop(errors_of_making()));
    assert_eq!(descriptors(), before);
    let panics = crate::common::panic_of(LocalExecutor::default);
    assert!(words.iter().all(|word| panics.contains(word)), "{panics}");
}

/// A profile answers with what its author likes: Podman's says that it does not know the call, which is not taken for
/// an old kernel. Kernels before 5.6 know io_uring, but none of the flags.
#[test]
fn what_is_denied_is_named_by_the_error() {
    use io::ErrorKind::{PermissionDenied, Unsupported};
    let [setup, register, enter] = [
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_register,
        libc::SYS_io_uring_enter,
    ];
    let docker = "io_uring, seccomp, allow";
    let podman = "io_uring is forbidden, seccomp, Podman, allow io_uring_setup";
    let old = "kernel, io_uring, too old, Linux 5.13";
    let registering = "io_uring_register";
    let entering = "io_uring_enter, seccomp";
    for (call, errno, kind, words) in [
        (setup, libc::EPERM, PermissionDenied, docker),
        (setup, libc::ENOSYS, PermissionDenied, podman),
        (setup, libc::EINVAL, Unsupported, old),
        (register, libc::EACCES, PermissionDenied, registering),
        (enter, libc::EPERM, PermissionDenied, entering),
        (enter, libc::ENOSYS, PermissionDenied, entering),
    ] {
        let denied = format!("{call} {errno}");
        in_child_with(&[ON_RING[0], ("DENIED", &denied)], || {
            // The child has one of them.
            if std::env::var("DENIED").is_ok_and(|it| it == denied) {
                if call == enter {
                    // What one thread has found out does not go for the next.
                    LocalExecutor::default().run(yield_now());
                }
                deny(call, errno);
                let words: Vec<_> = words.split(", ").collect();
                assert_fails_without_leaks(kind, errno, &words);
            }
        });
    }
}

#[run_test(in_child_with(&ON_RING))]
fn the_kind_of_an_error_survives_all_ways_of_making() {
    set_limit(Resource::RLIMIT_MEMLOCK, 64 << 10);
    become_an_ordinary_user();
    deny(libc::SYS_io_uring_setup, libc::ENOMEM);
    for error in errors_of_making() {
        let expected = ReactorErrorKind::MemLockLimit(64 << 10, 512 << 10);
        match error {
            GlommioError::ReactorError(kind) => assert_eq!(kind, expected),
            other => panic!("{other:?}"),
        }
    }
}

/// A CPU may be online and yet forbidden, which only binding tells.
#[run_test(in_child)]
fn a_thread_that_cannot_be_bound_is_an_error_of_that_thread() {
    deny(libc::SYS_sched_setaffinity, libc::EINVAL);
    let cpu = permitted_cpus()[0];
    let single = || LocalExecutorBuilder::new(Placement::Fixed(cpu));
    let made = single().make().map(drop);
    let spawned = single()
        .spawn(|| async {})
        .expect("the CPU is online, more is not known before the thread runs")
        .join();
    let sets = vec![set_of(cpu), set_of(cpu)];
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Custom(sets))
        .on_all_shards(|| async {})
        .expect("as before");
    let results = [made, spawned].into_iter().chain(shards.join_all());
    for result in results {
        match result {
            Err(GlommioError::IoError(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
                let text = error.to_string();
                assert!(text.contains(&format!("the CPUs [{cpu}]")), "{text}");
                let source = error.get_ref().and_then(|it| it.source());
                let source = source.and_then(|it| it.downcast_ref::<io::Error>());
                let errno = source.and_then(io::Error::raw_os_error);
                assert_eq!(errno, Some(libc::EINVAL));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// As on machines that can have more CPUs than the C library's mask has bits.
#[run_test(in_child)]
fn a_thread_that_cannot_be_asked_for_its_cpus_is_good_enough() {
    deny(libc::SYS_sched_getaffinity, libc::EINVAL);
    basic_workload();
    let online = CpuSet::online().expect("sysfs is there").len();
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::MaxSpread(online, None))
        .blocking_thread_pool_placement(PoolPlacement::Unbound(1))
        .on_all_shards(|| async { executor().spawn_blocking(|| 1).await })
        .expect("no CPU is known to be forbidden");
    for shard in shards.join_all() {
        assert_eq!(shard.expect("it ends in good order"), 1);
    }
}

#[run_test(in_child_with(&ON_RING))]
fn little_locked_memory_suffices() {
    set_limit(Resource::RLIMIT_MEMLOCK, 64 << 10);
    become_an_ordinary_user();
    for _ in 0..20 {
        basic_workload();
    }
    // One after the other, with no time between: the kernel gives the memory of a ring back a
    // moment after it was closed.
    for _ in 0..300 {
        make_soon().run(sleep(Duration::from_micros(10)));
    }
    // Several at once may be too many, depending on what this kernel counts. Then the error
    // says so.
    let mut executors = vec![make_soon()];
    for _ in 0..5 {
        match LocalExecutorBuilder::default().make() {
            Ok(executor) => executors.push(executor),
            Err(GlommioError::ReactorError(error)) => {
                assert!(error.to_string().contains("memlock"), "{error}");
                assert!(error.to_string().contains("65536"), "{error}");
                break;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    for executor in &executors {
        executor.run(sleep(Duration::from_micros(10)));
    }
}

#[run_test(in_child)]
fn a_process_without_descriptors_gets_an_error_and_recovers() {
    basic_workload();
    set_limit(Resource::RLIMIT_NOFILE, 64);
    let mut files = Vec::new();
    let refused = loop {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));
    // None for the eventfd, one for it and none for the ring, ...
    let mut made = 0;
    for _ in 0..5 {
        for _ in 0..20 {
            match LocalExecutorBuilder::default().make() {
                Ok(executor) => {
                    executor.run(sleep(Duration::from_micros(1)));
                    made += 1;
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        text.contains("files") || text.contains("descriptor"),
                        "{text}"
                    );
                }
            }
        }
        files.pop();
    }
    assert!(made > 0, "four descriptors are enough for one executor");
    files.clear();
    basic_workload();
}

/// Makes an executor. Where locked memory is short it may take a while: the kernel gives back that
/// of closed rings one after the other, also those that other tests have just closed by the
/// thousand.
fn make_soon() -> LocalExecutor {
    loop {
        match LocalExecutorBuilder::default().make() {
            Ok(executor) => return executor,
            Err(GlommioError::ReactorError(error)) => {
                assert!(error.to_string().contains("memlock"))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Timers, wakes from elsewhere, blocking calls and preemption.
pub(crate) fn basic_workload() {
    let executor = make_soon();
    let sum = executor.run(async {
        let tasks: Vec<_> = (1..=20_u64)
            .map(|i| {
                spawn_local(async move {
                    sleep(Duration::from_micros(i * 50)).await;
                    glommio::executor().spawn_blocking(move || i).await
                })
            })
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await;
        }
        sum
    });
    assert_eq!(sum, 210);
    executor.run(async {
        // Beside a task that only stops when it is told to.
        let busy = spawn_local(async {
            loop {
                spin_until_preempted();
                yield_now().await;
            }
        });
        for _ in 0..5 {
            sleep(Duration::from_millis(1)).await;
            glommio::executor().spawn_blocking(|| ()).await;
        }
        drop(busy);
    });
}

/// The basic work, and that an idle ring of this mode sleeps.
fn work_and_sleep() {
    basic_workload();
    let executor = LocalExecutorBuilder::default()
        .ring_depth(2)
        .make()
        .expect("an executor");
    let ring = format!("{executor:?}");
    let wanted = std::env::var("GLOMMIO_RING").expect("set for this process");
    if let "coop" | "plain" = wanted.as_str() {
        assert!(ring.to_lowercase().contains(&wanted), "{ring}");
    }
    let before = crate::common::thread_cpu();
    executor.run(sleep(Duration::from_millis(500)));
    let used = crate::common::thread_cpu() - before;
    assert!(used < Duration::from_millis(100), "{used:?}");
    // Slices end, and no sooner than they should.
    let before = Instant::now();
    executor.run(async {
        spin_until_preempted();
    });
    let slice = before.elapsed();
    assert!(slice >= Duration::from_millis(99), "{slice:?}");
}

#[run_test(in_child_with(&[("GLOMMIO_RING", "coop"), ON_RING[0]]))]
fn a_ring_without_deferred_work_does_the_same() {
    work_and_sleep();
}

#[run_test(in_child_with(&[("GLOMMIO_RING", "plain"), ON_RING[0]]))]
fn a_plain_ring_does_the_same() {
    work_and_sleep();
}

#[run_test(in_child_with(&[("GLOMMIO_RING", "turbo"), ON_RING[0]]))]
fn an_unknown_kind_of_ring_is_the_ordinary_one() {
    work_and_sleep();
}

/// The log tells what a ring is; `modes` are those that may be tried, in this order.
fn says_what_it_is(modes: &[&str]) {
    let (executor, events) = hearing(|| LocalExecutorBuilder::default().ring_depth(32).make());
    let executor = format!("{:?}", executor.expect("an executor"));
    let mut rings = events.iter().filter(|event| event.field("mode").is_some());
    let (Some(ring), None) = (rings.next(), rings.next()) else {
        panic!("one ring, one event: {events:?}");
    };
    assert_eq!(ring.level, tracing::Level::DEBUG);
    assert_eq!(ring.field("entries"), Some("32"));
    let field = |name| ring.field(name).expect("a field of this name");
    // What was tried, in this order, the last with success.
    let mut tried: Vec<&str> = names(field("refused")).collect();
    tried.push(field("mode"));
    assert_eq!(tried, modes[..tried.len()]);
    assert!(
        executor.to_lowercase().contains(field("mode")),
        "{executor}"
    );
    assert!(
        executor.contains(&format!("[{}]", field("uses"))),
        "{executor}"
    );
    let mut features: Vec<&str> = ["uses", "lacks", "without"]
        .map(field)
        .into_iter()
        .flat_map(names)
        .collect();
    features.sort_unstable();
    let of_files = ["links", "make_directory", "paths", "truncate", "registered"];
    let mut all = [
        &[
            "absolute_wait",
            "poll_multi",
            "no_iowait",
            "registered_ring",
        ][..],
        &of_files,
    ]
    .concat();
    all.sort_unstable();
    assert_eq!(features, all);
    let forbidden = std::env::var("GLOMMIO_RING_WITHOUT").unwrap_or_default();
    for name in names(&forbidden) {
        assert!(!field("uses").contains(name), "{ring:?}");
    }
    assert!(
        names(field("without")).all(|name| forbidden.contains(name)),
        "{ring:?}"
    );
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|name| !name.is_empty())
}

#[run_test(in_child_with(&[("GLOMMIO_RING", "defer"), ON_RING[0]]))]
fn a_ring_says_what_it_is() {
    says_what_it_is(&["defer", "coop", "plain"]);
}

#[run_test(in_child_with(&[("GLOMMIO_RING", "plain"), ON_RING[0]]))]
fn a_plain_ring_says_what_it_is() {
    says_what_it_is(&["plain"])
}

/// What is done without is not what the kernel lacks, and the work is done.
#[test]
fn a_ring_says_what_it_does_without() {
    let without = "absolute_wait,poll_multi,registered_ring";
    let environment = [
        ("GLOMMIO_RING", "coop"),
        ("GLOMMIO_RING_WITHOUT", without),
        ON_RING[0],
    ];
    in_child_with(&environment, || {
        says_what_it_is(&["coop", "plain"]);
        work_and_sleep();
    });
}
