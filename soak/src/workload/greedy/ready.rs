//! Awaits that are ready at once, each in a loop that does nothing else.

use std::rc::Rc;

use glommio::net::lookup_host;
use glommio::timer::{sleep, sleep_until};
use glommio::{GlommioError, spawn_local};

use super::sizes::{SLOWNESS, Sizes};
use super::turns::Turns;
use crate::check::checker::Checker;
use crate::clock;

/// Round after round, until the run drains.
pub(super) async fn run(
    checker: Rc<Checker>,
    turns: Rc<Turns>,
    sizes: Sizes,
) -> Result<(), GlommioError<()>> {
    while !checker.control.is_draining() {
        sleep(sizes.every * 5).await;
        for _ in 0..EACH {
            spawn_local(async {}).await;
            turns.operation();
        }
        for _ in 0..EACH {
            spawn_local(async {}).detach().await;
            turns.operation();
        }
        for _ in 0..EACH {
            spawn_local(async {}).cancel().await;
            turns.operation();
        }
        for _ in 0..EACH {
            drop(lookup_host("127.0.0.1:80").await?);
            turns.operation();
        }
        let due = clock::now();
        for _ in 0..EACH {
            sleep_until(due).await;
            turns.operation();
        }
    }
    Ok(())
}

/// Enough to hold an executor for longer than a slice.
const EACH: usize = 40_000 / SLOWNESS;
