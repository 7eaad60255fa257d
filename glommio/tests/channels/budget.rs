//! Channels take part in the cooperative budget, and lose nothing by that.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_lite::Stream;
use futures_lite::future::or;
use glommio::channels::{broadcast, local_channel, oneshot, watch};
use glommio::timer::sleep;
use glommio::{executor, spawn_local};

use crate::common::rationed::{assert_rationed, begin_spent_slice};
use crate::common::run;

#[test]
fn a_local_channel_that_is_never_empty_lets_other_tasks_run() {
    run(async {
        let (sender, receiver) = local_channel::new_unbounded();
        (0..1000).for_each(|number| sender.try_send(number).unwrap());
        let mut expected = 0;
        assert_rationed("recv", |cx| {
            let received = pin!(receiver.recv()).poll(cx);
            received.is_ready() && {
                assert_eq!(received, Poll::Ready(Some(expected)), "nothing is lost");
                expected += 1;
                true
            }
        })
        .await;
        let mut stream = pin!(receiver.stream());
        assert_rationed("stream", |cx| {
            let received = stream.as_mut().poll_next(cx);
            received.is_ready() && {
                assert_eq!(received, Poll::Ready(Some(expected)), "nothing is lost");
                expected += 1;
                true
            }
        })
        .await;
    });
}

#[test]
fn a_local_channel_that_is_never_full_lets_other_tasks_run() {
    run(async {
        let (sender, receiver) = local_channel::new_unbounded();
        let mut sent = 0;
        assert_rationed("send", |cx| {
            let is_sent = pin!(sender.send(sent)).poll(cx).is_ready();
            sent += usize::from(is_sent);
            is_sent
        })
        .await;
        assert_eq!(sender.len(), sent, "a refused send has sent nothing");
        drop(receiver);
    });
}

/// Neither of two tasks that feed each other waits for anything else.
#[test]
fn a_pair_of_tasks_that_are_never_idle_lets_a_timer_end_it() {
    run(async {
        let (sender, receiver) = local_channel::new_bounded(1000);
        let rounds = Rc::new(Cell::new(0u64));
        let counted = rounds.clone();
        let endless = async {
            loop {
                sender.send(()).await.unwrap();
                receiver.recv().await.unwrap();
                counted.update(|it| it + 1);
            }
        };
        or(endless, sleep(Duration::from_millis(5))).await;
        assert!(rounds.get() > 0);
    });
}

#[test]
fn a_watch_that_changes_all_the_time_lets_other_tasks_run() {
    run(async {
        let (sender, mut receiver) = watch::watch(0);
        assert_rationed("changed", |cx| {
            let value = receiver.get() + 1;
            sender.send(value).unwrap();
            pin!(receiver.changed()).poll(cx).is_ready()
        })
        .await;
        let (sender, mut receiver) = watch::shared(0);
        assert_rationed("watch as a stream", |cx| {
            let value = receiver.get() + 1;
            sender.send(value).unwrap();
            pin!(&mut receiver).poll_next(cx).is_ready()
        })
        .await;
    });
}

#[test]
fn a_broadcast_that_is_never_empty_lets_other_tasks_run() {
    run(async {
        let (sender, mut receiver) = broadcast::broadcast(1000);
        (0..1000).for_each(|number| assert_eq!(sender.send(number).unwrap(), 1));
        let mut expected = 0;
        assert_rationed("recv", |cx| {
            let received = pin!(receiver.recv()).poll(cx);
            received.is_ready() && {
                assert_eq!(received, Poll::Ready(Ok(expected)), "nothing is lost");
                expected += 1;
                true
            }
        })
        .await;
    });
}

#[test]
fn answers_that_are_there_let_other_tasks_run() {
    run(async {
        let mut open = None;
        assert_rationed("oneshot", |cx| {
            let mut answer = open.take().unwrap_or_else(|| {
                let (reply, answer) = oneshot::oneshot();
                reply.send(7).unwrap();
                answer
            });
            match pin!(&mut answer).poll(cx) {
                Poll::Ready(value) => assert_eq!(value.unwrap(), 7),
                Poll::Pending => open = Some(answer),
            }
            open.is_none()
        })
        .await;
    });
}

/// Uses the budget of this poll up.
fn spend_all(cx: &mut std::task::Context<'_>) {
    while pin!(glommio::consume_budget()).poll(cx).is_ready() {}
}

#[test]
fn a_receiver_that_is_refused_when_its_value_comes_keeps_it() {
    run(async {
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
    });
}

#[test]
fn a_receiver_that_is_refused_and_dropped_passes_the_wake_on() {
    run(async {
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
    });
}
