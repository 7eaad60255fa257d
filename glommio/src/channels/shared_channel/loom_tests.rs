//! Ends whose checks are put off to the end of a round: a task that waits at the other end is
//! woken.

use loom::thread;

use super::{ConnectedReceiver, ConnectedSender, ends};
use crate::channels::tests::{block_on, bounded};

#[test]
fn loom_shared_channel_a_round_ends_with_room_for_a_sender() {
    bounded(3, || {
        let (sending, receiving) = ends::make(1);
        sending.store(0).expect("there is room");
        let receiver = ConnectedReceiver::new(receiving);
        receiver.bound.begin_round(receiver.end.lines());
        let thread = thread::spawn(move || {
            let sender = ConnectedSender::new(sending);
            block_on(sender.send(1)).is_ok()
        });
        assert_eq!(block_on(receiver.recv()), Some(0));
        receiver.bound.end_round();
        // In vain while the sender sleeps.
        assert!(thread.join().expect("it ends well"));
        assert_eq!(block_on(receiver.recv()), Some(1));
    });
}

#[test]
fn loom_shared_channel_a_round_ends_with_items_for_a_receiver() {
    bounded(3, || {
        let (sending, receiving) = ends::make(2);
        let sender = ConnectedSender::new(sending);
        sender.bound.begin_round(sender.end.lines());
        let thread = thread::spawn(move || {
            let receiver = ConnectedReceiver::new(receiving);
            [block_on(receiver.recv()), block_on(receiver.recv())]
        });
        sender.try_send(0).expect("there is room");
        sender.try_send(1).expect("there is room");
        sender.bound.end_round();
        assert_eq!(thread.join().expect("it ends well"), [Some(0), Some(1)]);
    });
}

/// Two tasks wait, and each change is owed to one of them.
#[test]
fn loom_shared_channel_a_round_ends_with_items_for_two_tasks() {
    bounded(2, || {
        let (sending, receiving) = ends::make(2);
        let sender = ConnectedSender::new(sending);
        sender.bound.begin_round(sender.end.lines());
        let thread = thread::spawn(move || {
            let receiver = ConnectedReceiver::new(receiving);
            let both = futures_lite::future::zip(receiver.recv(), receiver.recv());
            block_on(both)
        });
        sender.try_send(0).expect("there is room");
        sender.try_send(1).expect("there is room");
        sender.bound.end_round();
        let received = thread.join().expect("it ends well");
        assert!(matches!(received, (Some(0), Some(1)) | (Some(1), Some(0))));
    });
}

#[test]
fn loom_shared_channel_an_end_that_goes_owes_nothing() {
    bounded(3, || {
        let (sending, receiving) = ends::make(1);
        sending.store(0).expect("there is room");
        let receiver = ConnectedReceiver::new(receiving);
        receiver.bound.begin_round(receiver.end.lines());
        let thread = thread::spawn(move || {
            let sender = ConnectedSender::new(sending);
            drop(block_on(sender.send(1)));
        });
        assert_eq!(block_on(receiver.recv()), Some(0));
        drop(receiver);
        thread.join().expect("it ends well");
    });
}
