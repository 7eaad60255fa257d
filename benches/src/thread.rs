//! The thread that measures, and where and how it runs.

use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// The CPUs that this thread may use.
///
/// # Errors
/// If the machine has more than the set can name.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| allowed.is_set(cpu).unwrap_or(false))
        .collect())
}

/// Binds this thread, and what it starts from now on, to one CPU.
///
/// # Errors
/// If it may not run there.
pub fn bind_to(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu)?;
    sched_setaffinity(Pid::from_raw(0), &cpus)?;
    Ok(())
}

/// How often this thread went to sleep so far.
///
/// # Panics
/// Never on Linux, which counts this for every thread.
pub fn sleeps() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("every thread has one");
    usage.voluntary_context_switches() as u64
}

/// Makes this thread one that does not interrupt others when it is woken.
///
/// # Errors
/// If the scheduler knows no such threads.
pub fn do_not_interrupt() -> io::Result<()> {
    // SAFETY: its fields are numbers, and zeros are what a batch thread needs.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel reads the parameters during the call; zero stands for this thread.
    let returned = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
    Errno::result(returned)?;
    Ok(())
}
