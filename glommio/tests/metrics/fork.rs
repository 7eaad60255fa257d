//! The list of executors in children of `fork(2)`.

use glommio::metrics;

use crate::common::fork;
use crate::common::prelude::*;

fn listed() -> Vec<usize> {
    metrics::executors().iter().map(|it| it.id()).collect()
}

#[run_test(in_child)]
fn a_child_lists_its_own_executors_and_none_of_its_parents() {
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
}

/// The thread is not there in the child, and would hold its lock for ever.
#[run_test(in_child)]
fn a_child_that_is_forked_while_a_thread_reads_the_metrics_does_not_hang() {
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
}
