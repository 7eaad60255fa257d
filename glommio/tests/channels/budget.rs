//! Channels take part in the cooperative budget, and lose nothing by that.

use crate::common::prelude::*;
use crate::common::rationed::begin_spent_slice;

/// Uses the budget of this poll up.
fn spend_all(cx: &mut std::task::Context<'_>) {
    while pin!(glommio::consume_budget()).poll(cx).is_ready() {}
}

#[run_test]
async fn a_receiver_that_is_refused_when_its_value_comes_keeps_it() {
    let (sender, receiver) = local_channel::new_unbounded();
    let mut waiting = pin!(receiver.recv());
    assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
    begin_spent_slice().await;
    poll_fn(|cx| {
        spend_all(cx);
        sender.try_send(7).unwrap();
        assert!(waiting.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    executor().yield_now().await;
    assert_eq!(waiting.await, Some(7));
}

#[run_test]
async fn a_receiver_that_is_refused_and_dropped_passes_the_wake_on() {
    let (sender, receiver) = local_channel::new_unbounded();
    let receiver = Rc::new(receiver);
    let mut first = Box::pin(receiver.recv());
    assert!(poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await);
    let second = spawn_local({
        let receiver = receiver.clone();
        async move { receiver.recv().await }
    });
    begin_spent_slice().await;
    poll_fn(|cx| {
        spend_all(cx);
        sender.try_send(7).unwrap();
        assert!(first.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    drop(first);
    assert_eq!(second.await, Some(7));
}
