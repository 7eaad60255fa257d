//! A submission as the kernel reads it: the `struct io_uring_sqe` of `linux/io_uring.h`.

#![allow(unsafe_code)]

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
    user_data: u64,
    buffer: u16,
    personality: u16,
    pub(super) splice_fd: i32,
    address3: u64,
    padding: u64,
}

const _: () = assert!(size_of::<Entry>() == size_of::<squeue::Entry>());
const _: () = assert!(align_of::<Entry>() <= align_of::<squeue::Entry>());

impl Entry {
    pub(super) fn of(submission: &Submission<'_>) -> Self {
        let entry: *const squeue::Entry = submission.entry();
        // SAFETY: both are 64 bytes of plain integers in the layout that the kernel defines, with no
        // stricter alignment here; all bits of them are set by the crate, which starts from zeros.
        unsafe { entry.cast::<Entry>().read() }
    }
}
