//! A way around a defect of the kernel: an operation that is never done.
//!
//! What cannot be done without blocking, such as making a directory, the kernel hands to workers
//! (io-wq), which belong to the thread that submits. Since "io_uring: allow io-wq workers to exit when
//! unused" (commit 91214661489467f8452d34edbf257488d85176e4, in Linux 7.0 and ported back, among others
//! to 6.18) they exit when the last ring of their thread has gone:
//!
//! ```text
//!   worker                                this thread
//!   ──────                                ───────────
//!   no work, and it is to exit
//!      (an interrupt, or the              makes a ring, submits an operation
//!       hypervisor, keeps it here)        wakes the worker, since it is listed as free
//!   leaves the list, and is gone          waits forever
//! ```
//!
//! What was handed over that way is done as soon as the kernel makes another worker, which it does for
//! the next operation that finds none free. So a thread that had a ring before has each new ring do
//! an operation that only a worker does, and submits one more where none completes in time.
//!
//! On Linux 6.18.44, with a CPU for the workers that interrupts kept for about 100 µs at a time, 13 of 56,003
//! operations were not done within 30 seconds, and all of them after another operation. With this it was
//! none of 63,065. It takes about 150 µs, most of which is making a worker.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

/// How long the first operation may take before there is a second one. Each next one may take twice as
/// long.
const FIRST_PATIENCE: Duration = Duration::from_millis(1);

/// After so many, half a second in all, the machine is overloaded, or workers cannot be made at all.
const ATTEMPTS: u32 = 9;

thread_local! {
    /// Whether this thread has had a ring.
    static HAD_RING: Cell<bool> = const { Cell::new(false) };
}

/// To be called with each ring of this thread, before it is used: see the module. Completions that come
/// later, if all attempts fail, have `user_data` 0.
///
/// # Errors
///
/// As `io_uring_enter(2)` gives them.
pub(super) fn replace_last_worker(ring: &mut IoUring) -> io::Result<()> {
    if !HAD_RING.replace(true) {
        return Ok(());
    }
    let mut patience = FIRST_PATIENCE;
    let mut missing = 0;
    for _ in 0..ATTEMPTS {
        submit_to_worker(ring);
        missing += 1;
        wait(ring, missing, patience)?;
        missing -= ring.completion().count();
        if missing == 0 {
            return Ok(());
        }
        patience *= 2;
    }
    tracing::warn!("no worker of the kernel (io-wq) did an operation within half a second");
    Ok(())
}

fn submit_to_worker(ring: &mut IoUring) {
    let operation = opcode::Nop::new().build().flags(squeue::Flags::ASYNC);
    // SAFETY: it points to no memory.
    unsafe { ring.submission().push(&operation) }.expect("those before were submitted");
}

fn wait(ring: &IoUring, completions: usize, patience: Duration) -> io::Result<()> {
    let patience = Timespec::from(patience);
    let limit = SubmitArgs::new().timespec(&patience);
    match ring.submitter().submit_with_args(completions, &limit) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::{fs, thread};

    use super::super::{KernelRing, Mode};

    /// The kernel's workers for what this thread submits.
    pub(in crate::ring) fn workers() -> usize {
        let name = format!("iou-wrk-{}", nix::unistd::gettid());
        let tasks = fs::read_dir("/proc/self/task").expect("there is /proc");
        // Others may end meanwhile.
        let names = tasks.filter_map(|it| fs::read_to_string(it.ok()?.path().join("comm")).ok());
        names.filter(|it| it.trim_end() == name).count()
    }

    #[test]
    fn a_ring_after_another_has_a_worker_that_works() {
        for mode in [Mode::Defer, Mode::Coop, Mode::Plain] {
            let ring = move || KernelRing::with_first_mode(4, 1, mode).expect("there is io_uring");
            // A thread that has had no ring.
            let test = move || {
                drop(ring());
                assert_eq!(workers(), 0);
                let ring = ring();
                // More where the first was slow.
                assert!(workers() >= 1);
                let mut completions = Vec::new();
                ring.reap(&mut completions);
                assert!(completions.iter().all(|it| it.user_data == 0));
            };
            thread::spawn(test).join().expect("it passes");
        }
    }
}
