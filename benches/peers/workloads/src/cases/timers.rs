//! Creating, dropping, cancelling and moving timers that never fire, among others that sleep.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;

use crate::cases::sleepers::sleepers;
use crate::samples::{Batches, between};
use crate::{Actions, Runtime, report};

const FIVE_SECONDS: Duration = Duration::from_secs(5);
const MIXED: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(30));

/// `timer-<count>-5s`, ns: see [`create_poll_drop`]; every timer at 5 s.
pub fn create_same<R: Runtime>(row: &'static str, sleeper_count: usize) {
    create_poll_drop::<R>(row, sleeper_count, |_| FIVE_SECONDS);
}

/// `timer-<count>-mixed`, ns: every timer at a random time from 1 ms to 30 s. Sleepers whose time comes sleep anew.
pub fn create_mixed<R: Runtime>(row: &'static str, sleeper_count: usize) {
    create_poll_drop::<R>(row, sleeper_count, mixed);
}

fn mixed(random: &mut Rng) -> Duration {
    between(random, MIXED.0, MIXED.1)
}

/// Creates a timer, polls it once (which registers it, at the latest) and drops it, beside `sleeper_count`
/// tasks that sleep. The clock covers batches of 100 and one yield, so that put-off work counts; a longer batch
/// would use up tokio's budget, after which a timer is polled but not registered.
fn create_poll_drop<R: Runtime>(
    row: &'static str,
    sleeper_count: usize,
    delay: fn(&mut Rng) -> Duration,
) {
    let ns = R::run(async move {
        sleepers::<R>(sleeper_count, 1, delay).await;
        let mut random = Rng::with_seed(2);
        // Drawn beforehand: the clock shall see timers, not random numbers.
        let delays: Vec<Duration> = (0..65_536).map(|_| delay(&mut random)).collect();
        let mut delays = delays.into_iter().cycle();
        Batches::new(4000, 100)
            .run(async |operations| {
                for delay in delays.by_ref().take(operations) {
                    poll_once(R::timer(delay)).await;
                }
                R::yield_now().await;
            })
            .await
    });
    report(row, ns);
}

/// Polls `timer` with the waker of the calling task, then drops it.
async fn poll_once(timer: impl Future) {
    let mut timer = pin!(timer);
    poll_fn(|context| {
        // A deadline of 1 ms may have passed already, hence no assertion that it is pending.
        let _ = timer.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

/// `timeout-yield`, ns: a timeout of 5 s around a future that yields once; 10,000 tasks sleep 5 to 30 s.
pub fn timeout_around_yield<R: Runtime>() {
    let ns = R::run(async {
        sleepers::<R>(10_000, 1, |random| between(random, FIVE_SECONDS, MIXED.1)).await;
        Batches::new(1000, 500)
            .run(async |operations| {
                for _ in 0..operations {
                    R::timeout(FIVE_SECONDS, R::yield_now()).await;
                }
            })
            .await
    });
    report("timeout-yield", ns);
}

/// `action-cancel`, ns: arm an action 5 s ahead, yield once so that its task sleeps, cancel it and wait until it
/// is gone, one by one.
pub fn action_cancel<R: Actions>() {
    let ns = R::run(Batches::new(1000, 200).run(async |operations| {
        for _ in 0..operations {
            let action = R::action(FIVE_SECONDS);
            R::yield_now().await;
            R::cancel(action).await;
        }
    }));
    report("action-cancel", ns);
}

/// `action-destroy`, ns: the same, but the action is only told to end, which it does at the next yield.
pub fn action_destroy<R: Actions>() {
    let ns = R::run(Batches::new(1000, 200).run(async |operations| {
        for _ in 0..operations {
            let action = R::action(FIVE_SECONDS);
            R::yield_now().await;
            R::destroy(action);
            R::yield_now().await;
        }
    }));
    report("action-destroy", ns);
}

/// `action-rearm`, ns: move the deadline of one armed action, to 5 s ahead and a little more each time.
pub fn action_rearm<R: Actions>() {
    let ns = R::run(async {
        let action = Rc::new(R::action(FIVE_SECONDS));
        // The action's own task must have armed its timer, else there is nothing to move.
        for _ in 0..10 {
            R::yield_now().await;
        }
        Batches::new(1000, 500)
            .run(async |operations| {
                for number in 0..operations {
                    R::rearm_in(&action, FIVE_SECONDS + Duration::from_micros(number as u64));
                }
                R::yield_now().await;
            })
            .await
    });
    report("action-rearm", ns);
}
