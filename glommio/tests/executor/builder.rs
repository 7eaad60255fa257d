//! The builder's knobs, where executors run, and what `spawn` and `join` return.

use crate::common::prelude::*;
use crate::common::{cpus_of, permitted_cpus};

/// A bit of everything that goes through the reactor.
async fn work() -> usize {
    sleep(Duration::from_micros(100)).await;
    let tasks: Vec<_> = (0..10_usize)
        .map(|i| {
            spawn_local(async move {
                sleep(Duration::from_micros(50 * i as u64)).await;
                yield_if_needed().await;
                yield_now().await;
                executor().yield_task_queue_now().await;
                i
            })
        })
        .collect();
    let mut sum = executor().spawn_blocking(|| 100).await;
    for task in tasks {
        sum += task.await;
    }
    sum
}

#[test]
fn a_ring_of_no_entries_is_refused_at_once() {
    let message = panic_of(|| LocalExecutorBuilder::default().ring_depth(0));
    assert_eq!(message, "ring depth should be strictly positive");
}

#[run_test]
fn a_ring_of_any_other_depth_works() {
    for depth in [
        1,
        2,
        3,
        100,
        32_768,
        32_769,
        100_000,
        u32::MAX as usize,
        usize::MAX,
    ] {
        let executor = LocalExecutorBuilder::default()
            .ring_depth(depth)
            .make()
            .unwrap_or_else(|error| panic!("{depth}: {error}"));
        assert_eq!(executor.run(work()), 145, "{depth}");
    }
}

#[run_test]
fn a_slack_of_more_than_a_second_is_an_error_that_names_the_limit() {
    let with = |slack| LocalExecutorBuilder::default().timer_slack(slack);
    let second = Duration::from_secs(1);
    let executor = with(second).make().expect("the longest there is");
    executor.run(async {});
    for slack in [
        second + Duration::from_nanos(1),
        Duration::from_secs(86_400),
        Duration::MAX,
    ] {
        let made = with(slack).make().expect_err("too long");
        let spawned = with(slack).spawn(|| async { unreachable!("not started") });
        for error in [made, spawned.expect_err("too long")] {
            assert!(
                matches!(&error, GlommioError::IoError(io) if io.kind() == io::ErrorKind::InvalidInput),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(
                text.contains("timer slack") && text.contains(&format!("{slack:?}")),
                "{text}"
            );
            assert!(text.contains("at most 1s"), "{text}");
        }
    }
}

#[test]
fn without_a_word_there_is_no_slack() {
    let text = format!("{:?}", LocalExecutorBuilder::default());
    assert!(text.contains("timer_slack: 0ns"), "{text}");
}

#[test]
fn a_cpu_that_does_not_exist_is_an_error_from_make_and_from_spawn() {
    let is_right = |error: GlommioError<()>| {
        matches!(error, GlommioError::BuilderError(BuilderErrorKind::NonExistentCpus { cpu })
            if cpu == usize::MAX)
    };
    let builder = || LocalExecutorBuilder::new(Placement::Fixed(usize::MAX));
    assert!(is_right(builder().make().expect_err("no such CPU")));
    let spawned = builder().spawn(|| async { unreachable!("not started") });
    assert!(is_right(spawned.expect_err("no such CPU")));
}

#[run_test]
fn a_fenced_executor_is_bound_to_the_whole_set() {
    let all = CpuSet::online().expect("sysfs is there");
    let cpus = cpus_of(&all);
    let handle = LocalExecutorBuilder::new(Placement::Fenced(all))
        .spawn(|| async { permitted_cpus() })
        .expect("the CPUs exist");
    let bound = handle.join().expect("it ends in good order");
    assert!(!bound.is_empty() && bound.iter().all(|cpu| cpus.contains(cpu)));
    let nothing = CpuSet::online().expect("as before").filter(|_| false);
    let error = LocalExecutorBuilder::new(Placement::Fenced(nothing))
        .make()
        .expect_err("nowhere to run");
    assert!(
        matches!(
            &error,
            GlommioError::BuilderError(BuilderErrorKind::InsufficientCpus {
                required: 1,
                available: 0
            })
        ),
        "{error:?}"
    );
}

#[test]
fn an_unbound_executor_leaves_its_thread_alone() {
    let before = permitted_cpus();
    let executor = LocalExecutor::default();
    assert_eq!(permitted_cpus(), before);
    executor.run(async {});
    assert_eq!(permitted_cpus(), before);
}

#[run_test]
fn threads_are_named_after_the_executor() {
    for name in [
        "worker",
        "",
        "a name that is longer than the kernel's fifteen bytes",
    ] {
        let handle = LocalExecutorBuilder::default()
            .name(name)
            .spawn(|| async {
                let blocking = executor()
                    .spawn_blocking(|| thread::current().name().map(str::to_owned))
                    .await;
                let own = thread::current().name().map(str::to_owned);
                (executor().id(), own, blocking)
            })
            .expect("a thread starts");
        let from_outside = handle.thread().name().map(str::to_owned);
        let (id, own, blocking) = handle.join().expect("it ends in good order");
        let expected = format!("{name}-{id}");
        assert_eq!(own.as_deref(), Some(expected.as_str()));
        assert_eq!(own, from_outside);
        assert!(blocking.is_some_and(|it| it.starts_with(&expected)));
    }
    let unnamed = LocalExecutorBuilder::default()
        .spawn(|| async { thread::current().name().map(str::to_owned) })
        .expect("a thread starts");
    let name = unnamed.join().expect("it ends in good order");
    assert!(name.is_some_and(|it| it.starts_with("unnamed-")));
}

#[run_test]
fn a_name_that_no_thread_can_have_is_an_error_and_not_a_panic() {
    let spawned = LocalExecutorBuilder::default()
        .name("zero\0inside")
        .spawn(|| async {});
    let error = spawned.expect_err("a thread's name has no zero byte");
    assert!(
        matches!(&error, GlommioError::IoError(io) if io.kind() == io::ErrorKind::InvalidInput),
        "{error:?}"
    );
}
