//! What a process has used, by `/proc`.

use std::{fs, io};

/// The processor time of all threads that the process has now, in nanoseconds.
pub fn cpu_ns(process: u32) -> io::Result<u64> {
    let mut total_ns = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = text.split(' ').next().and_then(|word| word.parse().ok());
        total_ns += first.unwrap_or(0);
    }
    Ok(total_ns)
}

/// The most memory that the process has had resident, in KiB.
pub fn memory_peak_kib(process: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let word = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    word.ok_or_else(|| io::Error::other("its memory is not known"))
}
