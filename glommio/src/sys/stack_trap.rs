//! The stack of a thread, taken from outside by a signal.
//!
//! Owns the only signal handler of the crate, and the word by which three parties agree on when a
//! stack is taken:
//!
//! ```text
//!         arm(deadline)                spring(deadline)            the handler
//!  Idle ────────────────▶ Armed(deadline) ────────▶ Due ──────────────────────▶ Taken
//!   ▲     the thread           │     another thread  │    the thread, interrupted  │
//!   └──────────────────────────┴─────────────────────┴────────────────────────────┘
//!                            disarm: the thread
//! ```
//!
//! Only `Due` makes the handler act. `spring` moves there from the very deadline that its caller
//! saw passing, and sends the signal then. A signal that comes late finds the trap disarmed, or
//! armed anew, and does nothing; so does one of another sender. One that finds the trap due takes
//! the stack of something that has outlasted its deadline, whatever sent it.
//!
//! The handler does what a handler may: it reads the number of its thread, exchanges the word,
//! unwinds and pushes addresses into a queue whose memory exists already. It takes no lock of ours
//! and allocates nothing. The queue has one user at a time: the handler pushes between `Due` and
//! its own return, the thread that it interrupts pops after `disarm`, and both are the same thread.
//!
//! What the unwinder does is not ours: see [`StackTrap::set`].

#![allow(unsafe_code)]

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

use backtrace::{Backtrace, BacktraceFrame, Frame};
use concurrent_queue::ConcurrentQueue;
use nix::unistd::{Pid, getpid, gettid};
use signal_hook_registry::{FORBIDDEN, SigId, register_sigaction, unregister};

use super::fork_detect::Origin;

/// Frames that a stack is cut off after.
const MAX_FRAMES: usize = 256;

const IDLE: u64 = u64::MAX;
const DUE: u64 = u64::MAX - 1;
const TAKEN: u64 = u64::MAX - 2;

/// The latest deadline that can be told from the other states, 584 years from the beginning.
pub(crate) const LAST_DEADLINE_NS: u64 = u64::MAX - 3;

/// Takes the stack of one thread. See the module.
#[derive(Debug)]
pub(crate) struct StackTrap {
    thread: Pid,
    /// A child that is forked in a turn of the thread ends that turn, too.
    origin: Origin,
    signal: libc::c_int,
    state: AtomicU64,
    frames: ConcurrentQueue<Frame>,
}

/// A trap whose handler is installed until this is dropped.
#[derive(Debug)]
pub(crate) struct InstalledTrap {
    trap: Arc<StackTrap>,
    registration: SigId,
}

impl StackTrap {
    /// Sets a trap for the calling thread.
    ///
    /// The handler that was there for `signal` is called first whenever the signal comes, and so
    /// are those of other traps. The default action, which for most signals is to end the
    /// process, is off from the first trap on and stays so: a signal that was sent in time may
    /// be delivered late.
    ///
    /// Unwinding is not on the list of what a signal handler may do. Here one stack is unwound
    /// before any signal is sent, so that the unwinder has been loaded, bound and initialised;
    /// after that, glibc from 2.35 on finds the unwind tables without a lock. Elsewhere the
    /// unwinder takes the lock of the dynamic linker, and code that is interrupted inside
    /// `dlopen` could hang.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for numbers that are no signals, and for signals that must not or cannot be
    /// handled.
    pub(crate) fn set(signal: u8) -> io::Result<InstalledTrap> {
        let signal = libc::c_int::from(signal);
        // A handler that returns from a fault of the processor returns into the fault.
        if FORBIDDEN.contains(&signal) || signal == libc::SIGBUS {
            return Err(refused(signal, "is reserved to the system"));
        }
        let trap = Arc::new(StackTrap {
            thread: gettid(),
            origin: Origin::here()?,
            signal,
            // With no handler yet: the trial below leaves a stack behind.
            state: AtomicU64::new(TAKEN),
            frames: ConcurrentQueue::bounded(MAX_FRAMES),
        });
        trap.take_stack(0);
        drop(trap.disarm());
        let of_handler = Arc::clone(&trap);
        // SAFETY: the action must be fit for a signal handler, as `on_signal` is (see the module).
        // The registry calls it with the handler's own signal information only.
        let registration =
            unsafe { register_sigaction(signal, move |info| of_handler.on_signal(info)) };
        match registration {
            Ok(registration) => Ok(InstalledTrap { trap, registration }),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Err(refused(signal, "cannot be handled"))
            }
            Err(error) => Err(error),
        }
    }

    /// Arms the trap. Called by its thread. The caller tells the thread that is to
    /// [`spring`](Self::spring) it.
    pub(crate) fn arm(&self, deadline_ns: u64) {
        debug_assert!(deadline_ns <= LAST_DEADLINE_NS);
        debug_assert!(self.is_own_thread());
        // Sequentially consistent, here and in `deadline_ns`: see the watchdog's proof.
        self.state.store(deadline_ns, Ordering::SeqCst);
    }

    fn is_own_thread(&self) -> bool {
        gettid() == self.thread || !self.origin.is_here()
    }

    /// The deadline, if the trap is armed and has not sprung.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        let state = self.state.load(Ordering::SeqCst);
        (state <= LAST_DEADLINE_NS).then_some(state)
    }

    /// Sends the signal, unless the trap has been disarmed, or armed with another deadline,
    /// meanwhile.
    pub(crate) fn spring(&self, deadline_ns: u64) {
        if self
            .state
            .compare_exchange(deadline_ns, DUE, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            send(self.thread, self.signal);
        }
    }

    /// Disarms the trap, and returns the stack if one was taken. Called by the trap's thread.
    pub(crate) fn disarm(&self) -> Option<Backtrace> {
        debug_assert!(self.is_own_thread());
        if self.state.swap(IDLE, Ordering::SeqCst) != TAKEN {
            return None;
        }
        let frames: Vec<_> = self.frames.try_iter().map(BacktraceFrame::from).collect();
        Some(Backtrace::from(frames))
    }

    fn on_signal(&self, info: &libc::siginfo_t) {
        if gettid() != self.thread {
            return;
        }
        let is_due = self
            .state
            .compare_exchange(DUE, TAKEN, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if !is_due {
            return;
        }
        // The kernel puts what it tells the handler on the stack, between the frames of the handler
        // and those of what was interrupted: only the latter are of interest.
        self.take_stack(ptr::from_ref(info).addr());
        if self.frames.is_empty() {
            // An unwinder that does not tell where its frames are.
            self.take_stack(0);
        }
    }

    /// Pushes the frames above `address`.
    fn take_stack(&self, address: usize) {
        let mut is_above = false;
        let push = |frame: &Frame| {
            is_above = is_above || frame.sp().addr() >= address;
            // A full queue ends the walk.
            !is_above || self.frames.push(frame.clone()).is_ok()
        };
        // SAFETY: what is not synchronised is the use of `dbghelp` on Windows. The unwinder of a
        // Linux system may be entered by any thread at any time; about signal handlers see
        // `set`. The closure does not panic: `push` hands back what does not fit.
        unsafe { backtrace::trace_unsynchronized(push) };
    }
}

impl Deref for InstalledTrap {
    type Target = Arc<StackTrap>;

    fn deref(&self) -> &Arc<StackTrap> {
        &self.trap
    }
}

impl Drop for InstalledTrap {
    fn drop(&mut self) {
        // Waits until no handler runs that could still see the trap.
        unregister(self.registration);
    }
}

/// Sends a signal to one thread of this process.
fn send(thread: Pid, signal: libc::c_int) {
    // SAFETY: the call takes three numbers and touches no memory of ours. The signal has a handler
    // that returns, installed for good: it ends neither the process nor a thread that got the
    // number since.
    //
    // Of a thread that is gone, or that has as many real-time signals pending as it may, there is
    // simply no stack.
    unsafe {
        libc::syscall(libc::SYS_tgkill, getpid().as_raw(), thread.as_raw(), signal);
    }
}

fn refused(signal: libc::c_int, why: &str) -> io::Error {
    let error = format!("signal {signal} {why}: stalls are not detected by it");
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

#[cfg(test)]
mod tests;
