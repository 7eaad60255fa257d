//! Whether the clock of this process is that of the host.
//!
//! In a time namespace (`unshare --time`, `timeOffsets` of OCI, a restored container)
//! `CLOCK_MONOTONIC` lies ahead of the host's or behind it. Kernels before mid-2026 forget to
//! translate the absolute times that io_uring is given, and wait for them on the host's clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io};

use super::fork_detect::Origin;

/// Whether the monotonic clock may differ from the host's. Asks the system once per process; `here`
/// is this process, for a forked child may be in another namespace than its parent.
pub(crate) fn is_clock_shifted(here: Origin) -> bool {
    /// The number of the process that asked, and its answer in the lowest bit.
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known >> 1 == here.number() {
        return known & 1 != 0;
    }
    let is_shifted = look(|path| fs::read_link(path).map(|link| link.into_os_string()));
    KNOWN.store(
        here.number() << 1 | u64::from(is_shifted),
        Ordering::Relaxed,
    );
    is_shifted
}

/// The first time namespace of a system, whose clock is the host's (`linux/nsfs.h`).
const HOST: &str = "time:[4026531834]";

/// The namespace is compared, and not `/proc/self/timens_offsets` read, which tells the offsets for
/// the children of a process. If in doubt the clock is taken for a shifted one, which is slower and
/// never wrong.
fn look(read_link: impl Fn(&str) -> io::Result<std::ffi::OsString>) -> bool {
    match read_link("/proc/self/ns/time") {
        Ok(namespace) => namespace != HOST,
        // A kernel without time namespaces, unless there is no procfs.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            read_link("/proc/self/ns/mnt").is_err()
        }
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `look` says where the two links read so, or fail.
    fn with_links(time: Result<&str, io::ErrorKind>, mnt: Result<&str, io::ErrorKind>) -> bool {
        look(|path| {
            let link = match path {
                "/proc/self/ns/time" => time,
                "/proc/self/ns/mnt" => mnt,
                other => panic!("{other} tells nothing"),
            };
            link.map(Into::into).map_err(Into::into)
        })
    }

    #[test]
    fn the_clock_is_the_hosts_where_that_is_certain() {
        use io::ErrorKind::{NotFound, PermissionDenied};
        let mnt = Ok("mnt:[4026531841]");
        assert!(!with_links(Ok(HOST), mnt));
        assert!(with_links(Ok("time:[4026532180]"), mnt));
        assert!(!with_links(Err(NotFound), mnt), "an older kernel");
        assert!(with_links(Err(NotFound), Err(NotFound)), "no procfs");
        assert!(with_links(Err(PermissionDenied), mnt));
    }
}
