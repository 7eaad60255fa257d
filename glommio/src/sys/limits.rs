//! Resource limits of the process.

use std::io;

use nix::sys::resource::{Resource, getrlimit};

/// How much memory the process may lock, in bytes (`RLIMIT_MEMLOCK`, the soft
/// limit); `u64::MAX` if there is no limit. Buffers registered with a ring count
/// towards it.
pub(crate) fn locked_memory_limit_bytes() -> io::Result<u64> {
    let (soft, _hard) = getrlimit(Resource::RLIMIT_MEMLOCK)?;
    Ok(soft)
}

/// How many descriptors the process may have (`RLIMIT_NOFILE`, the soft limit); the usual 1024 if
/// the kernel does not say.
pub(crate) fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _hard)| soft)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert_eq!(locked_memory_limit_bytes().unwrap(), expected);
    }
}
