//! What can be asked about a file.

use crate::sys::file::Statx;

/// How large a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Bytes from the beginning to the end of the file.
    pub file_size: u64,
    /// Bytes that are allocated for it: fewer than its size if there are holes in it, more if
    /// space was allocated in advance.
    pub allocated_file_size: u64,
    /// The preferred size of reads and writes in bytes.
    pub fs_cluster_size: u32,
}

impl Stat {
    pub(super) fn of(statx: &Statx) -> Self {
        Stat {
            file_size: statx.size(),
            allocated_file_size: statx.allocated_bytes(),
            fs_cluster_size: statx.block_bytes(),
        }
    }
}
