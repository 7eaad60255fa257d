//! Each step of the protocol by itself, and the descriptor behind it.

use std::{
    os::fd::{AsFd, AsRawFd},
    sync::Arc,
};

use nix::{
    errno::Errno,
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    unistd::read,
};

use crate::mailbox::{Mailbox, Notifier};

fn notifier() -> Notifier {
    Notifier::new().expect("a descriptor is free")
}

/// Signals raised and not cleared. Clears them.
fn signals(notifier: &Notifier) -> u64 {
    let mut count = [0; 8];
    match read(notifier.as_fd(), &mut count) {
        Ok(8) => u64::from_ne_bytes(count),
        Err(Errno::EAGAIN) => 0,
        other => panic!("an eventfd gives eight bytes or none: {other:?}"),
    }
}

/// An owner that is awake is told without a system call.
#[test]
fn awake_owner_needs_no_signal() {
    let notifier = notifier();
    assert!(!notifier.is_notified());
    assert!(!notifier.take());
    notifier.notify();
    notifier.notify();
    assert!(notifier.is_notified());
    assert_eq!(signals(&notifier), 0);
    assert!(notifier.take());
    assert!(!notifier.is_notified());
    assert!(!notifier.take());
}

/// A notification that was not taken forbids sleep.
#[test]
fn notified_owner_may_not_sleep() {
    let notifier = notifier();
    notifier.notify();
    assert!(!notifier.announce_sleep());
    assert!(notifier.is_notified(), "the attempt took nothing");
    assert!(notifier.take());
    assert!(notifier.announce_sleep());
}

/// However many notify a sleeper, one signal ends its sleep.
#[test]
fn one_signal_per_sleep() {
    let notifier = notifier();
    for _ in 0..3 {
        assert!(notifier.announce_sleep());
        for _ in 0..5 {
            notifier.notify();
        }
        assert_eq!(signals(&notifier), 1);
        notifier.awake();
        notifier.notify();
        assert_eq!(signals(&notifier), 0);
        assert!(notifier.take());
    }
}

/// A sleep that ended by itself leaves nothing behind, and `awake` loses no notification.
#[test]
fn awake_keeps_a_notification() {
    let notifier = notifier();
    assert!(notifier.announce_sleep());
    notifier.awake();
    assert!(!notifier.take());
    notifier.notify();
    assert_eq!(signals(&notifier), 0, "the owner was awake");
    assert!(notifier.take());

    assert!(notifier.announce_sleep());
    notifier.notify();
    notifier.awake();
    assert!(notifier.is_notified());
    notifier.clear_signal();
    assert_eq!(signals(&notifier), 0);
    assert!(notifier.take());
}

/// Clearing does not wait for a signal that nobody raised, and the descriptor is not inherited.
#[test]
fn descriptor_is_nonblocking_and_closed_on_exec() {
    let notifier = notifier();
    assert_eq!(notifier.as_fd().as_raw_fd(), notifier.as_raw_fd());
    notifier.clear_signal();
    let flags = fcntl(notifier.as_fd(), FcntlArg::F_GETFL).expect("it is open");
    assert!(OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK));
    let flags = fcntl(notifier.as_fd(), FcntlArg::F_GETFD).expect("it is open");
    assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
}

/// The owner's word has a cache line to itself.
#[test]
fn notifier_shares_no_cache_line() {
    assert_eq!(align_of::<Notifier>(), 64);
}

/// Mail arrives in order, with one notification for all of it.
#[test]
fn mail_is_received_in_order() {
    let notifier = Arc::new(notifier());
    let mailbox = Mailbox::new(notifier.clone());
    assert_eq!(mailbox.receive(), None);
    for message in 0..100 {
        assert_eq!(mailbox.send(message), Ok(()));
    }
    assert!(notifier.take());
    for message in 0..100 {
        assert_eq!(mailbox.receive(), Some(message));
    }
    assert_eq!(mailbox.receive(), None);
}

/// Closed, a mailbox gives new mail back, notifies nobody of it, and keeps what it had accepted.
#[test]
fn closed_mailbox_keeps_what_it_accepted() {
    let notifier = Arc::new(notifier());
    let mailbox = Mailbox::new(notifier.clone());
    assert_eq!(mailbox.send("before"), Ok(()));
    assert!(notifier.take());
    mailbox.close();
    mailbox.close();
    assert_eq!(mailbox.send("after"), Err("after"));
    assert!(!notifier.is_notified());
    assert_eq!(mailbox.receive(), Some("before"));
    assert_eq!(mailbox.receive(), None);
}
