//! The end of a reactor: nothing is closed before the kernel has let go of all memory.

use std::time::{Duration, Instant};
use std::{io, mem};

use super::driver::{Driver, FLUSH_ATTEMPTS, LOST};
use super::turn_time::deadline_after;
use crate::clock;
use crate::panic::{self, FirstPanic};
use crate::ring::Wait;

/// How long a drain goes on in silence.
const SILENT: Duration = Duration::from_secs(1);

/// Cancels everything in flight and reaps until nothing is. Requests that a device already works on
/// cannot be cancelled: they are waited for, with a line in the log once a second. Keeps the first
/// panic of code that is called meanwhile in `panics`: unwinding from here would skip the waiting.
pub(super) fn shut_down(driver: &Driver, panics: &mut FirstPanic) {
    let keys = driver.in_flight.borrow().keys();
    for key in keys {
        let given_up = driver.in_flight.borrow_mut().abandon(key);
        panics.catch(|| drop(given_up));
    }
    drain(driver, SILENT, panics);
}

/// Waits until nothing is in flight; every `silent`, the log is told. What is left if the ring
/// does not work any more is leaked with the table.
pub(super) fn drain(driver: &Driver, silent: Duration, panics: &mut FirstPanic) {
    let mut left = driver.in_flight.borrow().len();
    let mut patience = deadline_after(clock::real(), silent);
    while left > 0 {
        let waited = panics.catch(|| hand_over_and_wait(driver, patience));
        let before = mem::replace(&mut left, driver.in_flight.borrow().len());
        let has_lost = driver.has_lost_completions();
        if let Some(Err(error)) = waited
            && !has_lost
        {
            panic::log(|| {
                tracing::error!(
                    "dropping an executor: its ring fails, {left} operations are leaked: {error}"
                );
            });
            return;
        }
        let is_silent = clock::real() >= patience;
        if left < before || is_silent {
            patience = deadline_after(clock::real(), silent);
        }
        if left == 0 || !is_silent {
            continue;
        }
        if has_lost {
            // Some of them have completed, and the rest may yet.
            panic::log(|| {
                tracing::error!("dropping an executor: {left} operations are leaked: {LOST}");
            });
            return;
        }
        panic::log(|| {
            tracing::warn!("dropping an executor: waiting for {left} operations in the kernel");
        });
    }
}

fn hand_over_and_wait(driver: &Driver, until: Instant) -> io::Result<()> {
    for _ in 0..FLUSH_ATTEMPTS {
        if driver.in_flight.borrow_mut().flush(driver.ring()).is_ok() {
            break;
        }
        driver.try_enter(Wait::Now)?;
        driver.reap();
    }
    driver.try_enter(Wait::Until(until))?;
    driver.reap();
    Ok(())
}
