use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use loom::thread;

use super::{block_on, bounded, poll_once};
use crate::channels::broadcast::{RecvError, shared};

/// Polls the stream once and keeps it, as a task does in which another arm of a `select!` has won.
fn give_up<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    match Pin::new(stream).poll_next(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(item) => item,
        Poll::Pending => None,
    }
}

/// One receiver was polled and is kept, while the value comes: the other is woken.
#[run_test(bounded(3))]
fn loom_broadcast_a_receiver_that_gave_up_keeps_no_wake_from_others() {
    let (sender, mut kept) = shared(2);
    let mut receiver = sender.subscribe();
    let thread = thread::spawn(move || drop(sender.send(7)));
    let early = give_up(&mut kept);
    assert_eq!(block_on(receiver.recv()), Ok(7));
    assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
    thread.join().expect("it ends well");
    if early.is_none() {
        assert_eq!(block_on(kept.recv()), Ok(7));
    }
}

#[run_test(bounded(3))]
fn loom_broadcast_a_receiver_that_gives_up_while_the_value_comes() {
    let (sender, mut first) = shared(2);
    let mut second = sender.subscribe();
    let thread = thread::spawn(move || drop(sender.send(7)));
    let early = poll_once(first.recv());
    assert_eq!(block_on(second.recv()), Ok(7));
    if early.is_none() {
        assert_eq!(block_on(first.recv()), Ok(7));
    }
    thread.join().expect("it ends well");
}

/// Two receivers pass a value at the same time, or one of them goes: it is released once, by the last
/// of them.
#[test]
fn loom_broadcast_releases_what_all_have_seen() {
    for goes in [false, true] {
        bounded(3, move || {
            // Its references are the values that there are, and this one.
            let alive = Arc::new(());
            let (sender, mut first) = shared(2);
            let mut second = sender.subscribe();
            assert!(sender.send(Arc::clone(&alive)).is_ok());
            let thread = thread::spawn(move || {
                let value = if goes { None } else { second.try_recv().ok() };
                drop(value);
                second
            });
            let value = block_on(first.recv()).expect("it was sent");
            let second = thread.join().expect("it ends well");
            if goes {
                assert_eq!(Arc::strong_count(&alive), 3, "the second is to see it yet");
            }
            drop((value, second));
            assert_eq!(Arc::strong_count(&alive), 1, "it is kept");
            drop((sender, first));
        });
    }
}
