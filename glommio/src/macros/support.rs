//! What the macros expand to. No part of the interface of the crate.

use std::cell::Cell;
pub use std::future::{Future, IntoFuture, poll_fn};
pub use std::option::Option;
pub use std::pin::pin;
pub use std::result::Result;
pub use std::task::Poll;

pub use super::maybe_done::MaybeDone;
#[cfg(feature = "simulation")]
pub use super::simulated::{run_paused, run_simulated};
use crate::executor::LocalExecutorBuilder;
use crate::executor::placement::Placement;
use crate::sys::door::draw_branch;

/// Runs the body of a function with `#[main]` or `#[test]`.
#[track_caller]
pub fn run<T>(placement: Placement, body: impl Future<Output = T>) -> T {
    run_in(LocalExecutorBuilder::new(placement), body)
}

#[track_caller]
pub(super) fn run_in<T>(builder: LocalExecutorBuilder, body: impl Future<Output = T>) -> T {
    match builder.make() {
        Ok(executor) => executor.run(body),
        Err(error) => panic!("building the executor failed: {error}"),
    }
}

/// Which of `count` branches of a `select!` is polled first.
///
/// In a simulation the seed decides. Else a counter of the thread, spread by multiples of the golden ratio:
/// every branch gets its turn
/// soon and equally often, also where several `select!`s take turns. A plain remainder would have
/// two of them with two branches each begin with the same one every time.
pub fn first_branch(count: usize) -> usize {
    if let Some(branch) = draw_branch(count) {
        return branch;
    }
    thread_local! {
        static USES: Cell<u32> = const { Cell::new(0) };
    }
    const GOLDEN: u32 = 0x9E37_79B9;
    let spread = USES.replace(USES.get().wrapping_add(GOLDEN));
    let count = u64::try_from(count).expect("it was counted in a source file");
    usize::try_from((u64::from(spread) * count) >> 32).expect("it is less than `count`")
}
