//! A submission as the kernel reads it: the `struct io_uring_sqe` of `linux/io_uring.h`.

#![allow(unsafe_code)]

#[cfg(feature = "simulation")]
use io_uring::opcode;
use io_uring::squeue;

use super::submission::Submission;

/// The 64 bytes of a submission queue entry. Which meaning the fields have for which operation is in
/// io_uring_enter(2).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Entry {
    pub(super) opcode: u8,
    flags: u8,
    priority: u16,
    pub(super) fd: i32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) operation_flags: u32,
    pub(super) user_data: u64,
    buffer: u16,
    personality: u16,
    pub(super) splice_fd: i32,
    address3: u64,
    padding: u64,
}

const _: () = assert!(size_of::<Entry>() == size_of::<squeue::Entry>());
const _: () = assert!(align_of::<Entry>() <= align_of::<squeue::Entry>());

/// `IORING_TIMEOUT_UPDATE`
#[cfg(feature = "simulation")]
const TIMEOUT_UPDATE: u32 = 1 << 1;

impl Entry {
    pub(super) fn of(submission: &Submission<'_>) -> Self {
        let entry: *const squeue::Entry = submission.entry();
        // SAFETY: both are 64 bytes of plain integers in the layout that the kernel defines, with no
        // stricter alignment here; all bits of them are set by the crate, which starts from zeros.
        unsafe { entry.cast::<Entry>().read() }
    }
}

#[cfg(feature = "simulation")]
impl Entry {
    /// A timeout known as `name`, without the memory that says when.
    pub(super) fn timeout(name: u64) -> Self {
        Entry {
            opcode: opcode::Timeout::CODE,
            user_data: name,
            ..Entry::ZERO
        }
    }

    /// Moves it.
    pub(super) fn timeout_move(name: u64, user_data: u64) -> Self {
        Entry {
            opcode: opcode::TimeoutRemove::CODE,
            address: name,
            operation_flags: TIMEOUT_UPDATE,
            user_data,
            ..Entry::ZERO
        }
    }

    const ZERO: Entry = Entry {
        opcode: 0,
        flags: 0,
        priority: 0,
        fd: -1,
        offset: 0,
        address: 0,
        length: 0,
        operation_flags: 0,
        user_data: 0,
        buffer: 0,
        personality: 0,
        splice_fd: 0,
        address3: 0,
        padding: 0,
    };

    /// The operation that this one is about.
    pub(super) fn target(&self) -> u64 {
        self.address
    }

    /// Of the removal of a timeout: whether it is moved instead.
    pub(super) fn moves_timeout(&self) -> bool {
        self.operation_flags & TIMEOUT_UPDATE != 0
    }
}
