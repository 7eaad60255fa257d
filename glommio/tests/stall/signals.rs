//! Signals: which may be used, which other handlers get them, and those that mean nothing.

use libc::{SIGRTMIN, SIGURG, SIGUSR1, SIGUSR2, SIGWINCH};

use crate::common::prelude::*;
use crate::witness::{
    INTERVAL, Witness, count_signals, has_a_frame, ignore_signals_so_far, raise, signals,
    stall_until_signalled,
};

#[run_test]
fn executors_may_use_different_signals() {
    let threads: Vec<_> = [SIGUSR1, SIGUSR2, SIGRTMIN() + 1]
        .into_iter()
        .map(|signal| {
            count_signals(signal);
            thread::spawn(move || {
                let witness = Witness::of(signal);
                for _ in 0..3 {
                    let executor = witness.executor();
                    witness.stack_of(|| executor.run(async { stall_until_signalled() }));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("each gets its signal");
    }
}

/// The message of the error of kind `InvalidInput` that this must be.
fn invalid_input<T>(result: Result<T, GlommioError<()>>) -> String {
    match result.err().expect("it is refused") {
        GlommioError::IoError(error) => {
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            error.to_string()
        }
        error => panic!("not an I/O error: {error}"),
    }
}

#[run_test]
fn signals_that_cannot_be_handled_are_errors_that_name_them() {
    count_signals(SIGUSR1);
    let witness = Witness::of(SIGUSR1);
    let executor = witness.executor();
    for signal in [
        libc::SIGKILL,
        libc::SIGSTOP,
        libc::SIGSEGV,
        libc::SIGILL,
        libc::SIGFPE,
        libc::SIGBUS,
        0,
        65,
        255,
    ] {
        let name = format!("signal {signal} ");
        let builder =
            || LocalExecutorBuilder::default().detect_stalls(Some(Witness::of(signal).boxed()));
        for message in [
            invalid_input(executor.detect_stalls(Some(Witness::of(signal).boxed()))),
            invalid_input(builder().make()),
            invalid_input(builder().spawn(|| async {}).expect("it starts").join()),
        ] {
            assert!(message.contains(&name), "{message}");
        }
    }
    // What was there before still is.
    executor.run(async { stall_until_signalled() });
    assert_eq!(witness.the_one().executor, executor.id());
}

#[test]
fn a_handler_that_was_there_before_is_called_as_well() {
    static CALLED: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn before(signal: libc::c_int) {
        CALLED.fetch_add(usize::from(signal == SIGWINCH), Ordering::SeqCst);
    }
    let _watchdog = watchdog();
    let handler: extern "C" fn(libc::c_int) = before;
    // SAFETY: all zeroes is an empty mask, no flags and no handler.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is initialised, and its handler only touches an atomic. No other test of
    // this program uses the signal.
    let installed = unsafe { libc::sigaction(SIGWINCH, &action, std::ptr::null_mut()) };
    assert_eq!(installed, 0);

    let witness = Witness::of(SIGWINCH);
    let executor = witness.executor();
    executor.run(async {
        while CALLED.load(Ordering::SeqCst) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!(CALLED.load(Ordering::SeqCst), 1);
    assert!(witness.the_one().frames > 0, "it was our turn, too");
    // And when no executor detects stalls any more.
    drop(executor);
    raise(SIGWINCH);
    assert_eq!(CALLED.load(Ordering::SeqCst), 2);
}

#[run_test]
fn after_the_detection_the_signal_does_not_end_the_process() {
    let signal = SIGRTMIN() + 2;
    drop(Witness::of(signal).executor());
    // Its default action would.
    raise(signal);
}

#[inline(never)]
fn too_early() {
    raise(SIGUSR1);
}

#[inline(never)]
fn in_the_end() {
    stall_until_signalled();
    has_a_frame("in_the_end");
}

#[run_test]
fn a_signal_before_the_budget_ends_means_nothing() {
    count_signals(SIGUSR1);
    let witness = Witness::new(SIGUSR1, |_, _| Some(Duration::from_millis(500)));
    let executor = witness.executor();
    let seen = witness.stack_of(|| {
        executor.run(async {
            let before = signals();
            for _ in 0..10 {
                too_early();
            }
            thread::sleep(4 * INTERVAL);
            assert!(signals() >= before + 10);
            ignore_signals_so_far();
            in_the_end();
        });
    });
    assert!(seen.was_in("in_the_end"), "{seen:#?}");
}

#[run_test]
fn two_watched_executors_of_one_thread_are_told_apart() {
    count_signals(SIGUSR1);
    let (first, second) = (Witness::of(SIGUSR1), Witness::of(SIGUSR1));
    let executors = [first.executor(), second.executor()];
    for i in [0, 1, 0] {
        let (told, untold) = if i == 0 {
            (&first, &second)
        } else {
            (&second, &first)
        };
        let seen = told.stack_of(|| executors[i].run(async { stall_until_signalled() }));
        assert_eq!(seen.executor, executors[i].id());
        assert_eq!(untold.take().len(), 0);
    }
}

#[run_test]
fn a_thread_that_blocks_the_signal_has_stalls_without_stacks() {
    let handle = thread::spawn(|| {
        let witness = Witness::of(SIGURG);
        let executor = witness.executor();
        // SAFETY: an empty set is filled in before it is used, and the mask is that of this thread.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, SIGURG);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        executor.run(async { thread::sleep(5 * INTERVAL) });
        witness.the_one()
    });
    let seen = handle.join().expect("no harm is done");
    assert_eq!(seen.frames, 0);
    assert!(seen.text.contains("the signal did not reach this handler"));
}
