//! Many executors where the kernel charges their rings to `RLIMIT_MEMLOCK`, as Linux 6.14 and later
//! do. Each case is a process of its own, of a user of its own: the kernel counts by user.

use std::io::ErrorKind;

use glommio::ReactorErrorKind;
use nix::sys::resource::Resource;

use super::faults::{ON_RING, become_an_ordinary_user, deny};
use crate::common::log::{Heard, hearing_everywhere};
use crate::common::prelude::*;

/// What systemd gives a service.
const USUAL: u64 = 8 << 20;

/// With as many descriptors as ask for the largest rings. False where root cannot become another.
fn under_a_limit_of(lockable_bytes: u64) -> bool {
    set_limit(Resource::RLIMIT_MEMLOCK, lockable_bytes);
    set_limit(Resource::RLIMIT_NOFILE, 20_000);
    let is_ordinary = become_an_ordinary_user();
    if !is_ordinary {
        skipped("not allowed to become a user for whom nothing is locked");
    }
    is_ordinary
}

fn is_warning(event: &&Heard) -> bool {
    event.level == tracing::Level::WARN && event.message.starts_with("locked memory is short")
}

#[run_test(in_child_with(&ON_RING))]
fn executors_leave_each_other_locked_memory_and_the_limit_is_named_in_time() {
    if !under_a_limit_of(USUAL) {
        return;
    }
    let heard = hearing_everywhere();
    let mut executors = Vec::new();
    let error = loop {
        match LocalExecutorBuilder::default().make() {
            Ok(_) if executors.len() == 1000 => {
                return skipped("this kernel does not charge rings to RLIMIT_MEMLOCK");
            }
            Ok(executor) => executors.push(executor),
            Err(error) => break error,
        }
    };
    assert!(executors.len() >= 150, "{} executors", executors.len());
    let text = error.to_string();
    match error {
        GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(limit, wanted)) => {
            assert_eq!(limit, USUAL);
            assert!(wanted > limit, "{wanted}");
        }
        other => panic!("{other:?}"),
    }
    for named in ["8388608", "RLIMIT_MEMLOCK", "`ulimit -l`", "LimitMEMLOCK"] {
        assert!(text.contains(named), "{text}");
    }
    let heard = heard();
    let warnings: Vec<_> = heard.iter().filter(is_warning).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].field("limit"), Some("8388608"));
}

#[run_test(in_child_with(&ON_RING))]
fn the_shards_of_a_pool_leave_each_other_locked_memory() {
    const SHARDS: usize = 4;
    // What they need, twice.
    if !under_a_limit_of(SHARDS as u64 * (40 << 10)) {
        return;
    }
    let _watchdog = watchdog();
    let heard = hearing_everywhere();
    let made = Arc::new(AtomicUsize::new(0));
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(SHARDS))
        .on_all_shards(move || async move {
            made.fetch_add(1, Ordering::SeqCst);
            // Until all have their rings.
            while made.load(Ordering::SeqCst) < SHARDS {
                sleep(Duration::from_millis(1)).await;
            }
        })
        .expect("threads can be created");
    for shard in shards.join_all() {
        shard.expect("each has a ring");
    }
    assert_eq!(heard().iter().filter(is_warning).count(), 0);
}

/// Where the limit is not the reason, it is not blamed.
#[run_test(in_child_with(&ON_RING))]
fn a_kernel_without_memory_is_not_taken_for_a_low_limit() {
    set_limit(Resource::RLIMIT_MEMLOCK, u64::MAX);
    deny(libc::SYS_io_uring_setup, libc::ENOMEM);
    match LocalExecutorBuilder::default().make().map(drop) {
        Err(GlommioError::IoError(error)) => {
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        }
        // The hard limit of this machine is one.
        Err(GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(..))) => {
            skipped("locked memory is limited for this user");
        }
        other => panic!("{other:?}"),
    }
    let text = crate::common::panic_of(LocalExecutor::default);
    assert!(text.contains("memory"), "{text}");
}
