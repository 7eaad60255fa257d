//! What a submission asks for, as each ring reads it. A new operation is a new variant, and does not compile until
//! each of them has an answer.
//!
//! Timeouts are not among them: a ring takes these by [methods of their own](super::Ring::push_timeout).

use std::os::fd::RawFd;

/// See the module. The memory that it points to is as [`Ring::push`](super::Ring::push) promises. Paths are relative
/// to the working directory, or to `directory` if there is one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    #[cfg_attr(
        not(any(feature = "bench", test)),
        expect(dead_code, reason = "for benches")
    )]
    Nop,
    Poll {
        fd: RawFd,
        events: u32,
        is_multi: bool,
    },
    Accept {
        listener: RawFd,
    },
    Connect {
        socket: RawFd,
        address: *const libc::sockaddr,
        length: libc::socklen_t,
    },
    Cancel {
        target: u64,
    },
    Read(Transfer),
    Write(Transfer),
    /// From a file to a pipe.
    Splice {
        from: RawFd,
        position: u64,
        to: RawFd,
        length: u32,
    },
    Sync {
        fd: RawFd,
        data_only: bool,
    },
    Allocate {
        fd: RawFd,
        mode: libc::c_int,
        offset: u64,
        length: u64,
    },
    Truncate {
        fd: RawFd,
        size: u64,
    },
    Open {
        directory: RawFd,
        path: Path,
        flags: libc::c_int,
        mode: libc::mode_t,
    },
    Close {
        fd: RawFd,
    },
    Statx {
        directory: RawFd,
        path: Path,
        flags: libc::c_int,
        statx: *mut libc::statx,
    },
    Rename {
        from: Path,
        to: Path,
    },
    Unlink {
        path: Path,
        flags: libc::c_int,
    },
    MakeDirectory {
        path: Path,
        mode: libc::mode_t,
    },
    Symlink {
        target: Path,
        link: Path,
    },
    Link {
        /// Of `from`.
        directory: RawFd,
        from: Path,
        to: Path,
        flags: libc::c_int,
    },
}

/// With a zero byte at its end.
pub(super) type Path = *const libc::c_char;

#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) fd: RawFd,
    /// Of a write, to be read only.
    pub(super) memory: *mut u8,
    pub(super) length: u32,
    /// None: where the file stands.
    pub(super) position: Option<u64>,
    pub(super) is_registered: bool,
}

impl Operation {
    /// Whether the kernel reads or writes memory of ours on behalf of it.
    pub(super) fn points_to_memory(&self) -> bool {
        !matches!(
            self,
            Operation::Nop
                | Operation::Poll { .. }
                | Operation::Accept { .. }
                | Operation::Cancel { .. }
                | Operation::Splice { .. }
                | Operation::Sync { .. }
                | Operation::Allocate { .. }
                | Operation::Truncate { .. }
                | Operation::Close { .. }
        )
    }
}
