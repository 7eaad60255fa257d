//! Real threads, a real descriptor, real sleep.

use std::{os::fd::AsFd, sync::Arc, thread};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::mailbox::{Mailbox, Notifier};

/// Sleeps as an executor does, until it is signalled. A lost wake hangs the test.
fn park(notifier: &Notifier) {
    if notifier.announce_sleep() {
        let mut fds = [PollFd::new(notifier.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::NONE).expect("no signal handler interrupts a test");
        notifier.awake();
        notifier.clear_signal();
    }
}

/// Every message of every sender arrives, in its sender's order, though the owner sleeps whenever it
/// finds nothing.
#[test]
fn no_wake_is_lost() {
    const SENDERS: usize = 3;
    const MESSAGES: usize = 20_000;
    let notifier = Arc::new(Notifier::new().expect("a descriptor is free"));
    let mailbox = Mailbox::new(notifier.clone());
    let mut next = [0; SENDERS];
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let mailbox = &mailbox;
            scope.spawn(move || {
                for message in 0..MESSAGES {
                    mailbox
                        .send((sender, message))
                        .expect("the mailbox is open");
                }
            });
        }
        while next.iter().sum::<usize>() < SENDERS * MESSAGES {
            if notifier.take() {
                while let Some((sender, message)) = mailbox.receive() {
                    assert_eq!(message, next[sender]);
                    next[sender] += 1;
                }
            } else {
                park(&notifier);
            }
        }
    });
    assert_eq!(mailbox.receive(), None);
}

/// There and back between two sleepers, where a lost wake shows at once.
#[test]
fn ping_pong() {
    const ROUNDS: usize = 5_000;
    let ends = [(); 2].map(|()| {
        let notifier = Arc::new(Notifier::new().expect("a descriptor is free"));
        (Mailbox::new(notifier.clone()), notifier)
    });
    let send = |end: usize, round| ends[end].0.send(round).expect("the mailbox is open");
    let receive = |end: usize| {
        let (mailbox, notifier) = &ends[end];
        loop {
            if notifier.take()
                && let Some(round) = mailbox.receive()
            {
                return round;
            }
            park(notifier);
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                assert_eq!(receive(1), round);
                send(0, round);
            }
        });
        for round in 0..ROUNDS {
            send(1, round);
            assert_eq!(receive(0), round);
        }
    });
}
