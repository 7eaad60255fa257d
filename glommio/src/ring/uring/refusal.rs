//! What an executor that asks for io_uring says where there is none, or not enough of it.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwrapped_error_begins_with_the_advice() {
        let error = explain(io::Error::from_raw_os_error(libc::EMFILE));
        let printed = format!("{error:?}");
        let advice = "error: \"no descriptor is left for an io_uring: raise `ulimit -n` (";
        assert!(printed.contains(advice), "{printed}");
    }

    #[test]
    fn advice_names_the_switch_that_is_off() {
        for (disabled, names, not) in [
            ("1", "kernel.io_uring_disabled = 1", "seccomp"),
            ("1", "kernel.io_uring_group", "seccomp"),
            ("2", "kernel.io_uring_disabled = 2", "io_uring_group"),
            ("0", "seccomp", "io_uring_disabled"),
            ("", "seccomp", "io_uring_disabled"),
        ] {
            let advice = denied_advice(disabled);
            assert!(advice.contains(names) && !advice.contains(not), "{advice}");
        }
    }

    #[test]
    fn a_profile_that_answers_as_an_old_kernel_is_told_from_one() {
        for release in [
            "4.4.0",
            "4.18.0-553.el8.x86_64",
            "5.12.19",
            "5.4",
            "",
            "unknown",
        ] {
            let (kind, advice) = missing_advice(release);
            assert_eq!(kind, io::ErrorKind::Unsupported, "{release}");
            assert!(advice.contains("no io_uring"), "{advice}");
        }
        for release in [
            "5.13.0",
            "5.14.0-427.el9.x86_64",
            "6.1-rc2",
            "6.18.44",
            "10.0",
        ] {
            let (kind, advice) = missing_advice(release);
            assert_eq!(kind, io::ErrorKind::PermissionDenied, "{release}");
            assert!(
                advice.contains(release) && advice.contains("seccomp"),
                "{advice}"
            );
        }
    }

    #[test]
    fn missing_operations_are_named() {
        assert!(refuse(None).is_ok());
        let error = refuse(Some("ACCEPT, CONNECT")).expect_err("something is missing");
        let GlommioError::IoError(error) = error else {
            panic!("not an I/O error: {error:?}");
        };
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(
            text.contains("ACCEPT, CONNECT") && text.contains("Linux 5.13"),
            "{text}"
        );
    }

    /// The kernel's own number is found from whatever the error becomes on its way.
    #[test]
    fn the_errno_stays_within_reach() {
        for (errno, kind) in [
            // Of a kernel that has io_uring, as those that tests run on.
            (libc::ENOSYS, io::ErrorKind::PermissionDenied),
            (libc::EINVAL, io::ErrorKind::Unsupported),
            (libc::EPERM, io::ErrorKind::PermissionDenied),
            (libc::EACCES, io::ErrorKind::PermissionDenied),
            (
                libc::EMFILE,
                io::Error::from_raw_os_error(libc::EMFILE).kind(),
            ),
            (
                libc::EFAULT,
                io::Error::from_raw_os_error(libc::EFAULT).kind(),
            ),
        ] {
            let error = io::Error::from(explain(io::Error::from_raw_os_error(errno)));
            assert_eq!(error.kind(), kind);
            let source = std::error::Error::source(&error);
            let source = source.and_then(|source| source.downcast_ref::<io::Error>());
            let found = source.unwrap_or(&error).raw_os_error();
            assert_eq!(found, Some(errno), "{error}");
        }
    }
}
