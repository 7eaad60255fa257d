//! Child processes by descriptor: opened, signalled and waited for.
//!
//! A pidfd refers to one process for good. A number may be that of another process as soon as the
//! child is reaped, and other code may do that (`waitpid(-1)`, an ignored `SIGCHLD`).

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A descriptor of the child `pid`, which was not waited for yet. It is readable once the child has
/// ended, and has close-on-exec set.
///
/// # Errors
///
/// What `pidfd_open(2)` gives, for instance `EMFILE`.
pub(crate) fn open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two numbers and touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = libc::c_int::try_from(fd).expect("the kernel numbers descriptors by `int`s");
    // SAFETY: the kernel has just opened it, and nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends `signal` to the process.
///
/// # Errors
///
/// What `pidfd_send_signal(2)` gives: `ESRCH` if the process was reaped, `EPERM` if it has changed
/// its user.
pub(crate) fn send_signal(pidfd: impl AsFd, signal: libc::c_int) -> io::Result<()> {
    let pidfd = pidfd.as_fd().as_raw_fd();
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the call reads no memory, as it is given none to read.
    let failed = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, no_info, 0) };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How the child has ended, if it has: then it is reaped by this.
///
/// # Errors
///
/// `ECHILD` if it is no child of this process, or was reaped before.
pub(crate) fn try_wait(pidfd: impl AsFd) -> io::Result<Option<ExitStatus>> {
    let id = pidfd.as_fd().as_raw_fd().cast_unsigned();
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        let flags = libc::WEXITED | libc::WNOHANG;
        // SAFETY: the call writes to `info`, which has room for what it writes.
        let failed = unsafe { libc::waitid(libc::P_PIDFD, id, info.as_mut_ptr(), flags) };
        match failed {
            0 => break,
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    // SAFETY: zeros are a value of this type, and so is what the kernel writes.
    let info = unsafe { info.assume_init() };
    // SAFETY: (1) of a child that has ended the kernel has written these fields, (2) otherwise they
    // are the zeros from above.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Ok(None);
    }
    /// Of a status as `wait(2)` reports it.
    const CORE_DUMPED: libc::c_int = 0x80;
    let raw = match info.si_code {
        libc::CLD_EXITED => status << 8,
        libc::CLD_DUMPED => status | CORE_DUMPED,
        _ => status,
    };
    Ok(Some(ExitStatus::from_raw(raw)))
}
