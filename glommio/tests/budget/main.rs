//! Each public future takes part in the cooperative budget, unless it is exempt: when the slice of
//! its task is over and the budget is spent, it is pending and has its task woken, though it could
//! be ready.
//!
//! The names of the cases are those of the rows in `docs/reference/budget.md`, which `tests/docs` makes of them and
//! of the source: a public future without a case is missed there.

use glommio::consume_budget;

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

/// [`counts`], of an expression that awaits.
macro_rules! counts {
    ($name:literal, $operation:expr $(,)?) => {
        crate::counts($name, async || {
            let _ = $operation;
        })
        .await
    };
}

mod channels;
mod files;
mod locks;
mod loops;
mod others;
mod sockets;
mod tasks;
mod timers;

use common::rationed::{assert_rationed, begin_spent_slice};

use crate::common::prelude::*;

/// Runs `test` on an executor on which no slice is longer than a millisecond.
fn run(test: impl Future<Output = ()>) {
    common::run(async {
        let _ticks = spawn_local(async {
            loop {
                sleep(Duration::from_millis(1)).await;
            }
        });
        test.await;
    });
}

/// A moment that is over.
fn past() -> Instant {
    Instant::now() - Duration::from_secs(1)
}

/// `operation`, which is ready at once each time, counts each time, and is refused in the end.
async fn counts(name: &str, mut operation: impl AsyncFnMut()) {
    let ready = |cx: &mut Context<'_>| pin!(operation()).poll(cx).is_ready();
    assert_rationed(name, ready).await;
}

/// `operation`, which waits in most cases, is refused as well.
async fn is_refused(name: &str, operation: impl Future) {
    begin_spent_slice().await;
    let mut operation = pin!(operation);
    poll_fn(|cx| {
        while pin!(consume_budget()).poll(cx).is_ready() {}
        let (waker, woken) = counting();
        let polled = operation.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "{name}: it was to be refused");
        assert!(woken.get() > 0, "{name}: refused, it wakes its task");
        Poll::Ready(())
    })
    .await;
    executor().yield_now().await;
}
