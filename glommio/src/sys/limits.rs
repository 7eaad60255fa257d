//! Resource limits of the process.

use std::fs;

use nix::sys::resource::{Resource, getrlimit};

/// How much memory the processes of this user may lock, in bytes (`RLIMIT_MEMLOCK`, the soft
/// limit); `u64::MAX` if there is no limit. Buffers registered with a ring count towards it, and on
/// Linux 6.14 and later the rings do.
pub(crate) fn locked_memory_limit_bytes() -> u64 {
    getrlimit(Resource::RLIMIT_MEMLOCK).map_or(u64::MAX, |(soft, _hard)| soft)
}

/// How many bytes the calling thread may lock, which may be exempt (`CAP_IPC_LOCK`). Reads a small file.
pub(crate) fn lockable_bytes() -> u64 {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    if capabilities.is_some_and(|it| it & CAP_IPC_LOCK != 0) {
        return u64::MAX;
    }
    locked_memory_limit_bytes()
}

/// How many descriptors the process may have (`RLIMIT_NOFILE`, the soft limit); the usual 1024 if
/// the kernel does not say.
pub(crate) fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _hard)| soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_what_the_kernel_lists() {
        let limits = fs::read_to_string("/proc/self/limits").unwrap();
        let soft = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max locked memory"))
            .and_then(|columns| columns.split_whitespace().next())
            .expect("the kernel lists this limit");
        let expected = match soft {
            "unlimited" => u64::MAX,
            bytes => bytes.parse().unwrap(),
        };
        assert_eq!(locked_memory_limit_bytes(), expected);
    }
}
