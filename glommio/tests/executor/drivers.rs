//! io_uring or epoll: which one an executor gets. Most cases are processes of their own.

use std::fs::File;

use glommio::Driver;
use nix::sys::resource::Resource;

use crate::common::again_with;
use crate::common::log::{Heard, hearing, hearing_everywhere};
use crate::common::prelude::*;
use crate::faults::{basic_workload, deny};
use crate::missing_calls::{a_connection_echoes, files_are_written_and_read};

fn with(driver: Driver) -> Result<LocalExecutor, GlommioError<()>> {
    LocalExecutorBuilder::default().driver(driver).make()
}

/// Timers, threads, preemption, a connection and files.
fn all_kinds_of_work() {
    basic_workload();
    LocalExecutor::default().run(async {
        assert_eq!(executor().driver(), Driver::Epoll);
        a_connection_echoes().await;
        files_are_written_and_read().await;
    });
}

/// Each call that a profile may deny, with each answer that profiles and sandboxes were seen to give.
#[test]
fn where_io_uring_is_forbidden_an_executor_uses_epoll() {
    let calls = [
        (libc::SYS_io_uring_setup, "setup"),
        (libc::SYS_io_uring_register, "register"),
        (libc::SYS_io_uring_enter, "enter"),
    ];
    for errno in [libc::EPERM, libc::ENOSYS, libc::EACCES] {
        for (call, denied) in calls {
            let denied = format!("{denied} {errno}");
            let environment = [("GLOMMIO_DRIVER", "auto"), ("DENIED", &denied)];
            in_child_with(&environment, || {
                // The child has one of them.
                if std::env::var("DENIED").is_ok_and(|it| it == denied) {
                    deny(call, errno);
                    all_kinds_of_work();
                }
            });
        }
    }
}

#[run_test(in_child_with(&[("GLOMMIO_DRIVER", "auto")]))]
fn a_process_says_once_that_it_does_without_io_uring() {
    let heard = hearing_everywhere();
    deny(libc::SYS_io_uring_setup, libc::EPERM);
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3))
        .on_all_shards(|| async { executor().driver() })
        .expect("nothing is lacking");
    for shard in shards.join_all() {
        assert_eq!(shard.expect("it ends well"), Driver::Epoll);
    }
    drop(LocalExecutor::default());
    let heard = heard();
    let mut warnings = heard.iter().filter(|it| it.level == tracing::Level::WARN);
    let (Some(warning), None) = (warnings.next(), warnings.next()) else {
        panic!("one warning: {heard:?}");
    };
    assert_eq!(warning.field("driver"), Some("epoll"));
    for word in [
        "io_uring is forbidden",
        "seccomp",
        "GLOMMIO_DRIVER=epoll",
        "docs/guide/drivers.md",
    ] {
        assert!(warning.message.contains(word), "{}", warning.message);
    }
}

/// That the first executor says so is not what the tests are about whose log panics.
#[test]
fn where_io_uring_is_forbidden_a_log_that_panics_is_contained_as_well() {
    const NAME: &str =
        "drivers::where_io_uring_is_forbidden_a_log_that_panics_is_contained_as_well";
    in_child_with(&[("GLOMMIO_DRIVER", "auto")], || {
        deny(libc::SYS_io_uring_setup, libc::ENOSYS);
        again_with(NAME, &[], &["::a_log_that_panics_", "_a_log_that_panic_"]);
    });
}

#[test]
fn an_executor_on_epoll_says_what_it_goes_without() {
    let environment = [
        ("GLOMMIO_DRIVER", "epoll"),
        ("GLOMMIO_RING_WITHOUT", "links"),
    ];
    in_child_with(&environment, || {
        let (_executor, heard) = hearing(LocalExecutor::default);
        let mut rings = heard.iter().filter(|it| it.field("lacks").is_some());
        let (Some(ring), None) = (rings.next(), rings.next()) else {
            panic!("one ring, one event: {heard:?}");
        };
        assert_eq!(ring.level, tracing::Level::DEBUG);
        assert_eq!(ring.field("driver"), Some("epoll"));
        let has = |field, name| ring.field(field).is_some_and(|it| it.contains(name));
        assert!(has("uses", "paths") && !has("uses", "links"), "{ring:?}");
        assert!(
            has("lacks", "registered") && !has("lacks", "links"),
            "{ring:?}"
        );
        assert_eq!(ring.field("without"), Some("links"));
    });
}

#[test]
fn what_a_program_asks_for_it_gets() {
    // As if it were not set.
    in_child_with(&[("GLOMMIO_DRIVER", "kqueue")], || {
        let (made, heard) = hearing(|| with(Driver::Epoll));
        let of = |it: &LocalExecutor| it.run(async { executor().driver() });
        assert_eq!(of(&made.expect("it needs no ring")), Driver::Epoll);
        let ignored = |it: &&Heard| it.message.contains("GLOMMIO_DRIVER=kqueue");
        assert_eq!(heard.iter().filter(ignored).count(), 1, "{heard:?}");
        let on_ring = with(Driver::IoUring).expect("this machine has io_uring");
        assert_eq!(of(&on_ring), Driver::IoUring);
        assert_eq!(of(&with(Driver::Auto).expect("as before")), Driver::IoUring);
        deny(libc::SYS_io_uring_setup, libc::EPERM);
        match with(Driver::IoUring) {
            Err(GlommioError::IoError(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            }
            other => panic!("{other:?}"),
        }
        // What one thread may not goes for it alone, and each executor decides for itself.
        assert_eq!(
            of(&with(Driver::Auto).expect("it needs none")),
            Driver::Epoll
        );
        assert_eq!(of(&on_ring), Driver::IoUring);
    });
}

#[run_test(in_child_with(&[("GLOMMIO_DRIVER", "epoll")]))]
fn the_environment_goes_before_what_a_program_says() {
    let executor = with(Driver::IoUring).expect("it needs no ring");
    assert_eq!(
        executor.run(async { glommio::executor().driver() }),
        Driver::Epoll
    );
    let debug = format!("{executor:?}");
    assert!(debug.contains("Epoll"), "{debug}");
}

/// Falling back would hide what is to be mended.
#[run_test(in_child_with(&[("GLOMMIO_DRIVER", "auto")]))]
fn want_of_memory_or_descriptors_is_an_error_of_the_ring() {
    for errno in [libc::ENOMEM, libc::EMFILE] {
        let refused = std::thread::spawn(move || {
            deny(libc::SYS_io_uring_setup, errno);
            let error = LocalExecutorBuilder::default().make().map(drop);
            error.expect_err("there is no ring");
        });
        refused.join().expect("it is an error");
    }
}

#[run_test]
fn executors_with_different_drivers_work_together() {
    let builder = |driver| LocalExecutorBuilder::default().driver(driver);
    for (driver, other) in [
        (Driver::Epoll, Driver::IoUring),
        (Driver::IoUring, Driver::Epoll),
    ] {
        let waiting = builder(driver).spawn(move || async move {
            let (send, receive) = glommio::channels::oneshot::shared();
            let thread = builder(other).spawn(move || async move {
                // What waits sleeps in the meantime, whatever it does so by.
                sleep(Duration::from_millis(5)).await;
                send.send(7).expect("it is waited for");
            });
            assert_eq!(receive.await.expect("it is sent"), 7);
            let join = || thread.expect("a thread is free").join();
            executor().spawn_blocking(join).await.expect("it ends well");
        });
        waiting
            .expect("a thread is free")
            .join()
            .expect("it ends well");
    }
}

#[run_test(in_child)]
fn an_executor_without_descriptors_for_epoll_is_an_error_and_leaks_none() {
    set_limit(Resource::RLIMIT_NOFILE, 64);
    let opened = std::iter::from_fn(|| File::open("/dev/null").ok());
    let mut files: Vec<_> = opened.collect();
    // For the mailbox, the threads and epoll.
    for free in 0..3 {
        with(Driver::Epoll)
            .map(drop)
            .expect_err("one is lacking at least");
        drop(files.pop());
        let mut others: Vec<_> = (0..=free).map(|_| File::open("/dev/null")).collect();
        assert!(others.iter().all(Result::is_ok), "some were leaked");
        assert!(File::open("/dev/null").is_err());
        others.clear();
    }
    let executor = with(Driver::Epoll).expect("three are enough");
    let sleep = async |wait| {
        let begun = Instant::now();
        sleep(wait).await;
        assert!(begun.elapsed() >= wait);
    };
    executor.run(async {
        sleep(Duration::from_millis(3)).await;
        drop(files.pop());
        // A wait that is over before the thread sleeps takes no timer.
        for doubled in 2..14 {
            sleep(Duration::from_millis(1 << doubled)).await;
            if File::open("/dev/null").is_err() {
                break;
            }
        }
    });
    File::open("/dev/null").expect_err("it is the timer's since a later sleep");
}
