//! A clock that tests pause and move.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;
mod driven;
mod outside;
mod paused;

use crate::common::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Runs `future` on an executor whose clock is paused from the start.
fn run_paused<T>(test: impl AsyncFnOnce() -> T) -> T {
    let _watchdog = watchdog();
    let executor = LocalExecutorBuilder::default().start_paused(true).make();
    executor.expect("this machine has io_uring").run(test())
}
