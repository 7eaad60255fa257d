//! Each step of the protocol by itself, and the descriptor behind it.

#![allow(unsafe_code)]

use std::fs;
use std::os::fd::RawFd;
use std::sync::Arc;

use nix::fcntl::OFlag;

use crate::mailbox::Notifier;

fn notifier() -> Notifier {
    Notifier::new().expect("a descriptor is free")
}

/// What the kernel says of a descriptor, by its name in `fdinfo`.
fn fdinfo(fd: RawFd, name: &str, radix: u32) -> Option<u64> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
    let value = info.lines().find_map(|line| line.strip_prefix(name))?;
    Some(u64::from_str_radix(value.trim(), radix).expect("it is a number"))
}

/// Signals raised and not cleared, if the descriptor is an eventfd.
fn count(fd: RawFd) -> Option<u64> {
    fdinfo(fd, "eventfd-count:", 16)
}

/// Signals raised and not cleared.
fn signals(notifier: &Notifier) -> u64 {
    count(notifier.signal_fd()).expect("the descriptor is an open eventfd")
}

/// What it has inherited is not the sleeper of its parent.
#[test]
fn a_forked_child_signals_no_executor() {
    let notifier = notifier();
    assert!(notifier.announce_sleep());
    // SAFETY: the child takes no lock and ends by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "a process is free");
    if pid == 0 {
        notifier.notify();
        // SAFETY: always allowed.
        unsafe { libc::_exit(42) };
    }
    let mut status = 0;
    // SAFETY: `status` is a place for a number.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42);
    assert_eq!(signals(&notifier), 0);
    notifier.notify();
    assert_eq!(signals(&notifier), 1);
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
        notifier.clear_signal();
        assert_eq!(signals(&notifier), 0);
        notifier.notify();
        assert_eq!(signals(&notifier), 0);
        assert!(notifier.take());
    }
}

/// Clearing does not wait for a signal that was not raised, and the descriptor is not inherited.
#[test]
fn descriptor_is_nonblocking_and_closed_on_exec() {
    let notifier = notifier();
    notifier.clear_signal();
    let flags = fdinfo(notifier.signal_fd(), "flags:", 8).expect("it is open");
    let flags = OFlag::from_bits_retain(flags.try_into().expect("flags are an int"));
    assert!(flags.contains(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC));
}

/// The descriptor goes with the owner, though others still hold the notifier and use it.
#[test]
fn closed_signal_gives_the_descriptor_back() {
    let notifier = Arc::new(notifier());
    let (producer, fd) = (notifier.clone(), notifier.signal_fd());
    for _ in 0..7 {
        assert!(notifier.announce_sleep());
        producer.notify();
        assert!(notifier.take());
    }
    assert_eq!(count(fd), Some(7));
    assert!(notifier.announce_sleep());
    notifier.close_signal();
    // Another test may get the number at once; no other counts to seven.
    assert_ne!(count(fd), Some(7));

    producer.notify();
    notifier.awake();
    notifier.clear_signal();
    assert!(notifier.take(), "without a signal, a notification is one");
}
