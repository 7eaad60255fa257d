//! What the kernel counts for this process and its threads.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use procfs::page_size;
use procfs::process::Process;

/// For how long this thread has been on a processor: on a busy machine that is less than has
/// passed.
///
/// # Panics
/// Never on Linux, where each thread has this clock.
///
/// # Examples
/// ```
/// let before = support::process::thread_time();
/// assert!((0..1_000_000_u64).sum::<u64>() > 0);
/// assert!(support::process::thread_time() >= before);
/// ```
pub fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("each thread has this clock")
        .into()
}

/// The memory of this process that is resident, in bytes.
///
/// # Errors
/// If procfs is not mounted or does not say.
pub fn resident_bytes() -> io::Result<u64> {
    // Not `status`, of which gVisor leaves out lines that the crate wants.
    let statm = Process::myself().and_then(|process| process.statm());
    Ok(statm.map_err(io::Error::other)?.resident * page_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_written_is_resident() {
        let before = resident_bytes().expect("procfs is mounted");
        let held = vec![1_u8; 64 << 20];
        let after = resident_bytes().expect("procfs is mounted");
        assert!(after >= before + (32 << 20), "{before}, then {after}");
        drop(held);
    }
}
