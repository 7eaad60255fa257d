//! The CPUs of the thread that measures.

use std::io;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
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
