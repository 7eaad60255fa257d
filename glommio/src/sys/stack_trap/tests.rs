//! The trap without a watchdog: who is caught, and when.

#![allow(unsafe_code)]

use std::thread;

use super::*;

const SIGNAL: libc::c_int = libc::SIGUSR2;

fn trap() -> InstalledTrap {
    StackTrap::set(SIGNAL as u8).expect("the signal can be handled")
}

/// Names of functions on the stack, if one was taken.
fn disarm(trap: &StackTrap) -> Option<String> {
    let mut stack = trap.disarm()?;
    stack.resolve();
    Some(format!("{stack:?}"))
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

#[inline(never)]
fn walks_into(trap: &StackTrap, deadline_ns: u64) {
    // The thread sends the signal to itself, and has handled it before the call returns.
    trap.spring(deadline_ns);
    // Without something to come back for, an optimized build would leave this frame before the
    // call.
    std::hint::black_box(trap);
}

#[test]
fn the_stack_is_taken_where_the_signal_finds_the_thread() {
    let trap = trap();
    assert!(disarm(&trap).is_none());
    for deadline_ns in [0, 7, LAST_DEADLINE_NS] {
        trap.arm(deadline_ns);
        assert_eq!(trap.deadline_ns(), Some(deadline_ns));
        walks_into(&trap, deadline_ns);
        assert_eq!(trap.deadline_ns(), None);
        let stack = disarm(&trap).expect("it was armed");
        assert!(stack.contains("walks_into"), "{stack}");
        assert!(!stack.contains("on_signal"), "{stack}");
        assert!(disarm(&trap).is_none(), "it is handed out once");
    }
}

#[test]
fn a_trap_springs_once() {
    let trap = trap();
    trap.arm(7);
    walks_into(&trap, 7);
    trap.spring(7);
    send(trap.thread, trap.signal);
    let stack = disarm(&trap).expect("it was armed");
    assert_eq!(stack.matches("walks_into").count(), 1, "{stack}");
}

#[test]
fn a_deadline_that_is_no_more_does_not_spring_it() {
    let trap = trap();
    trap.spring(7);
    trap.arm(8);
    trap.spring(7);
    assert_eq!(trap.deadline_ns(), Some(8));
    assert!(disarm(&trap).is_none());
    trap.spring(8);
    assert!(disarm(&trap).is_none());
    assert!(trap.frames.is_empty(), "no signal was sent");
}

#[test]
fn a_signal_of_another_sender_is_ignored() {
    let trap = trap();
    send(trap.thread, trap.signal);
    trap.arm(8);
    send(trap.thread, trap.signal);
    assert_eq!(trap.deadline_ns(), Some(8));
    assert!(disarm(&trap).is_none());
    assert!(trap.frames.is_empty(), "nothing is left for the next stack");
}

#[run_test(on_own_thread)]
fn a_signal_that_comes_after_its_turn_is_ignored() {
    let trap = trap();
    block(libc::SIG_BLOCK);
    trap.arm(7);
    trap.spring(7);
    assert!(disarm(&trap).is_none());
    trap.arm(8);
    block(libc::SIG_UNBLOCK);
    assert_eq!(trap.deadline_ns(), Some(8));
    assert!(disarm(&trap).is_none());
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
    assert!(disarm(&trap).is_some(), "the one that was meant");
}

#[test]
fn a_trap_that_is_gone_takes_nothing_and_the_signal_does_no_harm() {
    let trap = trap();
    let unused = Arc::clone(&trap);
    trap.arm(7);
    drop(trap);
    assert_eq!(Arc::strong_count(&unused), 1, "the handler has let go");
    unused.spring(7);
    assert!(disarm(&unused).is_none());
}
