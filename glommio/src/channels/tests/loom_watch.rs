use loom::thread;

use super::{block_on, poll_once};
use crate::channels::watch::shared;

#[run_test(loom::model)]
fn loom_watch_shows_the_last_value_before_the_end() {
    let (sender, mut receiver) = shared(0);
    let sender = thread::spawn(move || {
        sender.send(1).expect("the receiver is there");
        sender.send(2).expect("the receiver is there");
    });
    let mut last = 0;
    while block_on(receiver.changed()).is_ok() {
        let value = receiver.get();
        assert!(value >= last);
        last = value;
    }
    assert_eq!(last, 2);
    sender.join().expect("it ends well");
}

/// As a stream each value comes once, and belongs to the version that is marked seen.
#[run_test(loom::model)]
fn loom_watch_streams_each_value_once() {
    let (sender, mut receiver) = shared(0);
    let sender = thread::spawn(move || {
        sender.send(1).expect("the receiver is there");
        sender.send(2).expect("the receiver is there");
    });
    let mut last = 0;
    let next = |cx: &mut std::task::Context<'_>| {
        futures_core::Stream::poll_next(std::pin::Pin::new(&mut receiver), cx)
    };
    let mut next = next;
    while let Some(value) = block_on(std::future::poll_fn(&mut next)) {
        assert!(value > last, "twice");
        last = value;
    }
    assert_eq!(last, 2);
    sender.join().expect("it ends well");
}

#[test]
fn loom_watch_wakes_two_receivers() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let (sender, mut receiver) = shared(0);
        let mut other = receiver.clone();
        let watcher = thread::spawn(move || block_on(other.changed()).is_ok());
        let sender = thread::spawn(move || sender.send(1).is_ok());
        assert!(block_on(receiver.changed()).is_ok());
        assert!(watcher.join().expect("it ends well"));
        assert!(sender.join().expect("it ends well"));
    });
}

#[run_test(loom::model)]
fn loom_watch_sending_against_receivers_that_go() {
    let (sender, mut receiver) = shared(0);
    let sender = thread::spawn(move || {
        let was_closed = sender.is_closed();
        let is_sent = sender.send(1).is_ok();
        assert!(!(was_closed && is_sent));
        is_sent
    });
    let changed = poll_once(receiver.changed());
    if let Some(Ok(())) = changed {
        assert_eq!(receiver.get(), 1);
    }
    drop(receiver);
    let is_sent = sender.join().expect("it ends well");
    assert!(is_sent || !matches!(changed, Some(Ok(()))));
}

/// One receiver was polled and is kept: it takes no wake from the other.
#[run_test(super::bounded(3))]
fn loom_watch_a_receiver_that_gave_up_keeps_no_wake_from_others() {
    let (sender, mut kept) = shared(0);
    let mut receiver = kept.clone();
    let sender = thread::spawn(move || sender.send(1).is_ok());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let stream = std::pin::Pin::new(&mut kept);
    let _ = futures_core::Stream::poll_next(stream, &mut cx);
    assert!(block_on(receiver.changed()).is_ok());
    assert!(sender.join().expect("it ends well"));
    assert_eq!(kept.get(), 1);
}
