//! What is said, and of which kind it is.

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
