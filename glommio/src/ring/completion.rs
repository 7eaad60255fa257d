//! What the kernel says about one finished (or progressing) submission.

use std::io;

use io_uring::cqueue;

/// One completion queue entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The value that the submission carried.
    pub(crate) user_data: u64,
    pub(crate) outcome: Outcome,
}

/// What one completion says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The operation's result, or a negated errno.
    pub(crate) raw: i32,
    flags: u32,
}

impl Outcome {
    /// That of an operation that completes once.
    pub(crate) fn of(raw: i32) -> Self {
        Outcome { raw, flags: 0 }
    }

    /// The operation's result.
    pub(crate) fn result(self) -> io::Result<u32> {
        u32::try_from(self.raw).map_err(|_| io::Error::from_raw_os_error(-self.raw))
    }

    /// More completions of the same submission will follow. An operation that is to complete many
    /// times is over with the first that does not say so, be it a success.
    pub(crate) fn has_more(self) -> bool {
        cqueue::more(self.flags)
    }
}

impl Completion {
    /// One that no kernel has posted.
    pub(super) fn made(user_data: u64, raw: i32, has_more: bool) -> Self {
        /// `IORING_CQE_F_MORE`
        const MORE: u32 = 1 << 1;
        Completion {
            user_data,
            outcome: Outcome {
                raw,
                flags: if has_more { MORE } else { 0 },
            },
        }
    }
}

impl From<&cqueue::Entry> for Completion {
    fn from(entry: &cqueue::Entry) -> Self {
        Completion {
            user_data: entry.user_data(),
            outcome: Outcome {
                raw: entry.result(),
                flags: entry.flags(),
            },
        }
    }
}
