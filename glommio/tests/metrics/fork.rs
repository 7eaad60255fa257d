//! The list of executors in children of `fork(2)`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use futures_lite::future::yield_now;
use glommio::{LocalExecutor, metrics};

use crate::common::in_child;

/// Runs `child` in a forked child, and asserts that it ended well, and did not hang.
fn fork(child: impl FnOnce()) {
    // SAFETY: the child runs what the test needs: memory, whose locks the C library looks after, and
    // a ring. The other threads of this process hold no other lock that these take.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: it takes a number. The watchdog is not in this process.
        unsafe { libc::alarm(30) };
        let is_well = catch_unwind(AssertUnwindSafe(child)).is_ok();
        // SAFETY: always allowed. No destructors of what belongs to the parent.
        unsafe { libc::_exit(if is_well { 42 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is a place for a number.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42,
        "the forked child ended with status {status:#x}"
    );
}

fn listed() -> Vec<usize> {
    metrics::executors().iter().map(|it| it.id()).collect()
}

#[test]
fn a_child_lists_its_own_executors_and_none_of_its_parents() {
    let name = "fork::a_child_lists_its_own_executors_and_none_of_its_parents";
    in_child(name, || {
        let parents = LocalExecutor::default();
        fork(|| {
            assert_eq!(listed(), []);
            let own = LocalExecutor::default();
            assert_eq!(listed(), [own.id()]);
            fork(|| {
                let of_grandchild = LocalExecutor::default();
                assert_eq!(listed(), [of_grandchild.id()]);
            });
            own.run(yield_now());
            drop(own);
            assert_eq!(listed(), []);
        });
        assert_eq!(listed(), [parents.id()]);
    });
}

/// The thread is not there in the child, and would hold its lock for ever.
#[test]
fn a_child_that_is_forked_while_a_thread_reads_the_metrics_does_not_hang() {
    let name = "fork::a_child_that_is_forked_while_a_thread_reads_the_metrics_does_not_hang";
    in_child(name, || {
        // The longer the list, the longer the lock is held.
        let executors: Vec<_> = (0..32).map(|_| LocalExecutor::default()).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let readers = [(); 2].map(|()| {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(listed().len(), 32);
                }
            })
        });
        for _ in 0..40 {
            fork(|| {
                let own = LocalExecutor::default();
                own.run(yield_now());
                assert_eq!(listed(), [own.id()]);
            });
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("it ends well");
        }
        drop(executors);
    });
}
