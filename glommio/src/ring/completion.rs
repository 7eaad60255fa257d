//! What the kernel says about one finished (or progressing) submission.

use std::io;

use io_uring::cqueue;

/// One completion queue entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The value that the submission carried.
    pub(crate) user_data: u64,
    /// The operation's result, or a negated errno.
    pub(crate) result: i32,
    flags: u32,
}

impl Completion {
    /// More completions of the same submission will follow.
    pub(crate) fn has_more(&self) -> bool {
        cqueue::more(self.flags)
    }
}

/// Splits a raw completion result into value and error.
pub(crate) fn result_of(raw: i32) -> io::Result<u32> {
    u32::try_from(raw).map_err(|_| io::Error::from_raw_os_error(-raw))
}

impl From<&cqueue::Entry> for Completion {
    fn from(entry: &cqueue::Entry) -> Self {
        Completion {
            user_data: entry.user_data(),
            result: entry.result(),
            flags: entry.flags(),
        }
    }
}
