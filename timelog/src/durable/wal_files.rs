//! The names of the files of the write-ahead log, and those that are not written to.

use super::disk::File;

/// The file that becomes the next one: zeros, or a file that a checkpoint covers. A block that is
/// written to blocks of the device that were written before changes nothing but data, which
/// makes a sync much cheaper.
pub(super) const NEXT_NAME: &str = "wal.next";

#[derive(Debug, Default)]
pub(super) enum Next {
    /// There is none.
    #[default]
    Missing,
    Ready(File),
    /// It is about to get its name as a file of the log.
    Beginning,
}

pub(super) fn name(number: u64) -> String {
    format!("wal-{number:016x}")
}

pub(super) fn number_of(name_: &str) -> Option<u64> {
    let number = u64::from_str_radix(name_.strip_prefix("wal-")?, 16).ok()?;
    (name(number) == name_).then_some(number)
}

/// A file that is not written to any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub number: u64,
    /// The operation after its last one.
    pub end: u64,
}
