//! The model under many seeds, and for long.

use proptest::prelude::*;

use crate::common::prelude::*;
use crate::model::{Kind, run};

proptest! {
    #[test]
    fn agrees_with_the_model(
        kind in prop::sample::select(vec![Kind::Semaphore, Kind::RwLock, Kind::Mutex]),
        seed in any::<u64>(),
        operations in 0..200u64,
    ) {
        run(kind, seed, operations);
    }
}

#[test]
fn no_wake_up_is_lost_in_a_long_run_of_a_semaphore() {
    long(Kind::Semaphore);
}

#[test]
fn no_wake_up_is_lost_in_a_long_run_of_a_lock() {
    long(Kind::RwLock);
}

#[test]
fn no_wake_up_is_lost_in_a_long_run_of_a_mutex() {
    long(Kind::Mutex);
}

fn long(kind: Kind) {
    // The environment may ask for more than the watchdog has patience for.
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    run(kind, 1, operations());
}
