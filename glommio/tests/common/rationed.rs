//! Whether an operation takes part in the cooperative budget.

use std::future::poll_fn;
use std::task::{Context, Poll};

use glommio::executor;

/// Polls `operation`, which can always succeed at once, when the slice of the running task is over. It
/// must be refused after 32 times, and go on with the next poll of the task.
pub async fn assert_rationed(name: &str, mut operation: impl FnMut(&mut Context<'_>) -> bool) {
    begin_spent_slice().await;
    poll_fn(|cx| {
        let done = (0..100).filter(|_| operation(cx)).count();
        assert_eq!(done, 32, "{name}: each success counts once");
        Poll::Ready(())
    })
    .await;
    executor().yield_now().await;
    poll_fn(|cx| {
        assert!(operation(cx), "{name}: a new poll has a full budget");
        Poll::Ready(())
    })
    .await;
}

/// Returns in a poll that has a full budget and a slice that is over.
pub async fn begin_spent_slice() {
    executor().yield_now().await;
    while !executor().need_preempt() {
        std::hint::spin_loop();
    }
}
