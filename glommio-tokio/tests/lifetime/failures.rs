//! No thread, no descriptors, and a forked process.

#![allow(unsafe_code, reason = "fork")]

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Output};
use std::time::Duration;

use glommio::{LocalExecutor, future};
use glommio_tokio::{Tokio, with_tokio};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Uid, fork, setuid};

use crate::{PATIENCE, sleep_of_tokio, take_turn, threads};

const IS_CHILD: &str = "GLOMMIO_TOKIO_CHILD";

/// Runs `test` in a process of its own, where `child` may do what would harm other tests.
fn in_a_process(test: &str, child: impl FnOnce()) {
    if std::env::var_os(IS_CHILD).is_some() {
        return child();
    }
    let Output {
        status,
        stderr,
        stdout,
    } = Command::new(std::env::current_exe().expect("it runs"))
        .args([test, "--exact", "--nocapture"])
        .env(IS_CHILD, "1")
        .output()
        .expect("the test starts itself");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{status}: {stdout}{stderr}");
    assert!(
        stdout.contains("1 passed"),
        "{test} is the test's name: {stdout}"
    );
}

/// Lowers a limit, and returns what raises it again.
fn lower(resource: Resource, limit: u64) -> impl FnOnce() {
    let (soft, hard) = getrlimit(resource).expect("a known limit");
    setrlimit(resource, limit.min(hard), hard).expect("lower is allowed");
    move || setrlimit(resource, soft, hard).expect("it was so before")
}

#[test]
fn no_thread_is_an_error_that_says_so() {
    in_a_process("failures::no_thread_is_an_error_that_says_so", || {
        // The limit is none for the superuser.
        if Uid::effective().is_root() {
            setuid(Uid::from_raw(65534)).expect("root may");
        }
        let raise = lower(Resource::RLIMIT_NPROC, 1);
        let error = Tokio::start().expect_err("there is no thread");
        let text = error.to_string();
        assert!(
            text.starts_with("cannot start the thread of tokio's driver: "),
            "{text}"
        );
        let source = error
            .source()
            .and_then(|it| it.downcast_ref::<std::io::Error>());
        assert_eq!(
            source.and_then(|it| it.raw_os_error()),
            Some(Errno::EAGAIN as i32)
        );

        let panicked = catch_unwind(|| drop(with_tokio(async {})));
        let payload = panicked.expect_err("it has no other way to say so");
        let message = payload.downcast_ref::<String>().expect("a text");
        assert_eq!(*message, format!("with_tokio: {text}"));

        // Inside a runtime, where tokio refuses to drop another one.
        let outer = tokio::runtime::Builder::new_current_thread().build();
        outer.expect("it has no thread").block_on(async {
            Tokio::start().expect_err("there is no thread");
        });
        raise();
        LocalExecutor::default().run(with_tokio(sleep_of_tokio(1)));
    });
}

#[test]
fn no_descriptors_are_an_error_that_says_so() {
    in_a_process("failures::no_descriptors_are_an_error_that_says_so", || {
        let raise = lower(Resource::RLIMIT_NOFILE, 3);
        let error = Tokio::start().expect_err("there is no descriptor");
        raise();
        let text = error.to_string();
        assert!(text.starts_with("cannot create tokio's driver: "), "{text}");
        let source = error
            .source()
            .and_then(|it| it.downcast_ref::<std::io::Error>());
        assert_eq!(
            source.and_then(|it| it.raw_os_error()),
            Some(Errno::EMFILE as i32)
        );
        assert_eq!(threads(), 0);
        LocalExecutor::default().run(with_tokio(sleep_of_tokio(1)));
    });
}

/// The child has no thread for what it inherits, and takes one of its own.
#[test]
fn a_forked_process_starts_its_own() {
    in_a_process("failures::a_forked_process_starts_its_own", || {
        let _turn = take_turn();
        let inherited = Tokio::start().expect("there are resources");
        let pending = inherited.with(sleep_of_tokio(1));
        // SAFETY: the child calls functions that are not async-signal-safe, which glibc allows as long
        // as no other thread holds a lock of theirs: the harness's waits for this test, and tokio's
        // for events.
        match unsafe { fork() }.expect("there is a process") {
            ForkResult::Child => {
                let slept = catch_unwind(AssertUnwindSafe(|| {
                    assert_eq!(threads(), 0);
                    let done = with_tokio(async {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        tokio::spawn(async { 7 }).await.expect("the runtime runs")
                    });
                    let done = LocalExecutor::default().run(future::timeout(PATIENCE, done));
                    drop((pending, inherited));
                    done.expect("the test does not hang")
                }));
                // No destructors: those of the harness are the parent's.
                // SAFETY: ends this process, whatever its state is.
                unsafe { libc::_exit(slept.map_or(1, |it| it)) }
            }
            ForkResult::Parent { child } => {
                let status = waitpid(child, None).expect("it is our child");
                assert_eq!(status, WaitStatus::Exited(child, 7));
                // The runtime here has not noticed.
                LocalExecutor::default().run(async {
                    pending.await;
                    let spawned = inherited.handle().spawn(async { 8 });
                    assert_eq!(spawned.await.expect("the runtime runs"), 8);
                });
            }
        }
    });
}
