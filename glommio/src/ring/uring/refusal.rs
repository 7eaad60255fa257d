//! What an executor that asks for io_uring says where there is none, or not enough of it.

#[cfg(test)]
mod tests;

use std::{fs, io};

use crate::error::{GlommioError, ReactorErrorKind, advised};
use crate::sys::limits;

/// Locked memory that lets every supported kernel build a ring.
const WANTED_MEMLOCK_BYTES: u64 = 512 << 10;

fn denied(error: io::Error) -> GlommioError<()> {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let advice = denied_advice(disabled.as_deref().unwrap_or_default().trim());
    advised(io::ErrorKind::PermissionDenied, advice.to_owned(), error).into()
}

pub(super) fn refuse(missing: Option<&str>) -> Result<(), GlommioError<()>> {
    match missing {
        None => Ok(()),
        Some(missing) => Err(GlommioError::IoError(io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "this kernel's io_uring lacks {missing}: Linux 5.13 or newer has all that is needed"
            ),
        ))),
    }
}

/// Says what to change, and keeps the kernel's own error as the source.
pub(super) fn explain(error: io::Error) -> GlommioError<()> {
    let (kind, advice) = match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            let release = fs::read_to_string("/proc/sys/kernel/osrelease");
            missing_advice(release.as_deref().unwrap_or_default().trim())
        }
        // What `Mode::Plain` asks for came with Linux 5.5 and 5.6.
        Some(libc::EINVAL) => (
            io::ErrorKind::Unsupported,
            "this kernel's io_uring is too old: Linux 5.13 or newer is needed".to_owned(),
        ),
        Some(libc::EPERM | libc::EACCES) => return denied(error),
        Some(libc::ENOMEM) => return explain_no_memory(error, 0),
        Some(libc::EMFILE | libc::ENFILE) => (
            error.kind(),
            "no descriptor is left for an io_uring: raise `ulimit -n`".to_owned(),
        ),
        _ => return GlommioError::IoError(error),
    };
    advised(kind, advice, error).into()
}

/// Of `ENOSYS`, on a kernel of this release.
fn missing_advice(release: &str) -> (io::ErrorKind, String) {
    let mut numbers = release.split(['.', '-']).map_while(|it| it.parse().ok());
    let version: Option<(u32, u32)> = numbers.next().zip(numbers.next());
    if version.is_none_or(|it| it < (5, 13)) {
        let advice = "this kernel has no io_uring: Linux 5.13 or newer is needed";
        return (io::ErrorKind::Unsupported, advice.to_owned());
    }
    let advice = format!(
        "io_uring is forbidden for this process: Linux {release} has it, and most likely a seccomp profile answers as \
         if it had not, as Podman's does: allow io_uring_setup, io_uring_enter and io_uring_register"
    );
    (io::ErrorKind::PermissionDenied, advice)
}

/// As [`explain`]; `needed_bytes` of locked memory are what the executors need that are being made.
pub(super) fn explain_no_memory(error: io::Error, needed_bytes: u64) -> GlommioError<()> {
    let limit = limits::lockable_bytes();
    if limit < u64::MAX {
        // That much in addition: what is locked already may belong to other processes.
        let wanted = limit.saturating_add(needed_bytes).max(WANTED_MEMLOCK_BYTES);
        return GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(limit, wanted));
    }
    let advice = "the kernel has no memory for an io_uring".to_owned();
    advised(io::ErrorKind::OutOfMemory, advice, error).into()
}

/// What to change where io_uring is forbidden; `disabled` is what the sysctl of that name says.
fn denied_advice(disabled: &str) -> &'static str {
    match disabled {
        "1" => {
            "io_uring is disabled for this user (sysctl kernel.io_uring_disabled = 1): set it to 0, or \
              put the user into the group that kernel.io_uring_group names"
        }
        "2" => {
            "io_uring is disabled on this host (sysctl kernel.io_uring_disabled = 2): set it to 0"
        }
        _ => {
            "io_uring is forbidden for this process, most likely by a container's seccomp profile: \
              allow io_uring_setup, io_uring_enter and io_uring_register"
        }
    }
}
