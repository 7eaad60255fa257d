//! Signals that come late, or for another thread: the trap without a watchdog.

#![allow(unsafe_code)]

use std::thread;

use super::*;

const SIGNAL: libc::c_int = libc::SIGUSR2;

fn trap() -> InstalledTrap {
    StackTrap::set(SIGNAL as u8).expect("the signal can be handled")
}

/// Blocks the signal in the calling thread, or lets it in, also one that has come meanwhile.
fn block(how: libc::c_int) {
    // SAFETY: the set is filled in before it is used, and the mask is that of the calling thread.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGNAL);
        libc::pthread_sigmask(how, &set, ptr::null_mut());
    }
}

/// Runs in a thread of its own, whose signal mask a failing test may leave as it is.
fn on_own_thread(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().expect("the test passes");
}

#[test]
fn a_deadline_that_is_no_more_does_not_spring_it() {
    let trap = trap();
    trap.spring(7);
    trap.arm(8);
    trap.spring(7);
    assert_eq!(trap.deadline_ns(), Some(8));
    assert!(trap.disarm().is_none());
    trap.spring(8);
    assert!(trap.disarm().is_none());
    assert!(trap.frames.is_empty(), "no signal was sent");
}

#[run_test(on_own_thread)]
fn a_signal_that_comes_after_its_turn_is_ignored() {
    let trap = trap();
    block(libc::SIG_BLOCK);
    trap.arm(7);
    trap.spring(7);
    assert!(trap.disarm().is_none());
    trap.arm(8);
    block(libc::SIG_UNBLOCK);
    assert_eq!(trap.deadline_ns(), Some(8));
    assert!(trap.disarm().is_none());
}

#[run_test(on_own_thread)]
fn other_threads_and_their_traps_are_not_caught() {
    let trap = trap();
    block(libc::SIG_BLOCK);
    trap.arm(7);
    trap.spring(7);
    thread::spawn(|| {
        let of_other = self::trap();
        of_other.arm(7);
        block(libc::SIG_UNBLOCK);
        send(gettid(), SIGNAL);
        assert_eq!(of_other.deadline_ns(), Some(7));
    })
    .join()
    .expect("it is left alone");
    assert!(trap.frames.is_empty());
    block(libc::SIG_UNBLOCK);
    assert!(trap.disarm().is_some(), "the one that was meant");
}
