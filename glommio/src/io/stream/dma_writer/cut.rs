//! Cutting a file to its size, whatever becomes of those who were to.

#![forbid(unsafe_code)]

use std::path::PathBuf;

use crate::io::dma_file::DmaFile;
use crate::panic;
use crate::sys::descriptor::Descriptor;
use crate::sys::file;
use crate::sys::fork_detect::Origin;

/// The zeros behind the data of a file, which filled its last buffer. Dropped, it cuts them off, in
/// a system call on the spot; but not in a forked child, whose parent writes the file.
pub(super) struct Padding {
    /// A share, which keeps the file open. `None` once they are cut off.
    fd: Option<Descriptor>,
    /// Where the data ends.
    start: u64,
    path: Option<PathBuf>,
    origin: Origin,
}

impl Padding {
    pub(super) fn new(file: &DmaFile, start: u64) -> Self {
        Padding {
            fd: Some(file.file().descriptor()),
            start,
            path: file.file().to_path(),
            origin: file.submitter().origin(),
        }
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// They were cut off.
    pub(super) fn was_cut(mut self) {
        self.fd = None;
    }
}

impl Drop for Padding {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        if self.origin.is_here()
            && let Err(error) = file::truncate(&fd, self.start)
        {
            panic::log(|| {
                tracing::error!(
                    "cutting off what filled the last buffer failed: {error}; path {:?}, after byte {}",
                    self.path,
                    self.start
                );
            });
        }
    }
}
