//! Child processes by descriptor: opened, signalled and waited for.
//!
//! A pidfd refers to one process for good. A number may be that of another process as soon as the
//! child is reaped, and other code may do that (`waitpid(-1)`, an ignored `SIGCHLD`).
//!
//! Sandboxes and kernels before 5.4 have no pidfds. There a thread waits for each child, and the child is known
//! by its number.

#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::{io, thread};

use crate::error::is_missing;

/// A child that was not waited for by this. Its descriptor is readable, or hung up, once it has ended.
#[derive(Debug)]
pub(crate) struct ChildFd {
    descriptor: OwnedFd,
    pid: libc::pid_t,
    is_pidfd: bool,
}

impl ChildFd {
    /// That of the child `pid`, with close-on-exec set.
    ///
    /// # Errors
    ///
    /// What `pidfd_open(2)` gives, for instance `EMFILE`; where it is missing or forbidden, what a pipe or a
    /// thread gives.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        let pid = pid.cast_signed();
        // SAFETY: the call takes two numbers and touches no memory.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let is_pidfd = fd >= 0;
        let descriptor = if is_pidfd {
            let fd = libc::c_int::try_from(fd).expect("the kernel numbers descriptors by `int`s");
            // SAFETY: the kernel has just opened it, and nothing else knows it.
            unsafe { OwnedFd::from_raw_fd(fd) }
        } else {
            match io::Error::last_os_error() {
                error if is_missing(&error) => await_in_thread(pid)?,
                error => return Err(error),
            }
        };
        Ok(ChildFd {
            descriptor,
            pid,
            is_pidfd,
        })
    }

    /// Sends `signal` to the process.
    ///
    /// # Errors
    ///
    /// What `pidfd_send_signal(2)` gives: `ESRCH` if the process was reaped, `EPERM` if it has changed
    /// its user.
    pub(crate) fn send_signal(&self, signal: libc::c_int) -> io::Result<()> {
        let no_info = std::ptr::null::<libc::siginfo_t>();
        if self.is_pidfd {
            let pidfd = self.as_raw_fd();
            // SAFETY: the call reads no memory, as it is given none to read.
            let failed =
                unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, signal, no_info, 0) };
            match succeeded(failed == 0) {
                // `EPERM` may be a filter's; if not, `kill` says it again.
                Err(error) if is_missing(&error) => {}
                result => return result,
            }
        }
        // One that other code has reaped has no number any more.
        if self
            .wait(libc::WEXITED | libc::WNOHANG | libc::WNOWAIT)
            .is_err()
        {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // SAFETY: the call takes two numbers and touches no memory.
        succeeded(unsafe { libc::kill(self.pid, signal) } == 0)
    }

    /// How the child has ended, if it has: then it is reaped by this.
    ///
    /// # Errors
    ///
    /// `ECHILD` if it is no child of this process, or was reaped before.
    pub(crate) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        let info = self.wait(libc::WEXITED | libc::WNOHANG)?;
        // SAFETY: (1) of a child that has ended the kernel has written these fields, (2) otherwise they
        // are zeros.
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

    fn wait(&self, flags: libc::c_int) -> io::Result<libc::siginfo_t> {
        let by_number = || wait(libc::P_PID, self.pid, flags);
        if !self.is_pidfd {
            return by_number();
        }
        match wait(libc::P_PIDFD, self.as_raw_fd(), flags) {
            // Linux 5.3.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => by_number(),
            waited => waited,
        }
    }
}

impl AsRawFd for ChildFd {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }
}

/// A pipe that is hung up once the child has ended.
fn await_in_thread(pid: libc::pid_t) -> io::Result<OwnedFd> {
    /// It calls the kernel and nothing else.
    const STACK_BYTES: usize = 64 << 10;
    let (reader, writer) = io::pipe()?;
    let wait_for_end = move || {
        // Reaps nothing. An error is that there is no such child any more.
        let _ = wait(libc::P_PID, pid, libc::WEXITED | libc::WNOWAIT);
        drop(writer);
    };
    let thread = thread::Builder::new().name("glommio-child".into());
    thread.stack_size(STACK_BYTES).spawn(wait_for_end)?;
    Ok(reader.into())
}

fn wait(kind: libc::idtype_t, id: libc::c_int, flags: libc::c_int) -> io::Result<libc::siginfo_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    loop {
        // SAFETY: the call writes to `info`, which has room for what it writes.
        let failed = unsafe { libc::waitid(kind, id.cast_unsigned(), info.as_mut_ptr(), flags) };
        match succeeded(failed == 0) {
            // SAFETY: zeros are a value of this type, and so is what the kernel writes.
            Ok(()) => return Ok(unsafe { info.assume_init() }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn succeeded(is_success: bool) -> io::Result<()> {
    match is_success {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}
