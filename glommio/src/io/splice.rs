//! Which files a socket can send.

use std::os::fd::RawFd;

use super::buffered_file::BufferedFile;
use super::dma_file::DmaFile;
use crate::sys::descriptor::Descriptor;
use crate::sys::splice::{Source, SpliceSource};

impl Source for BufferedFile {
    fn descriptor(&self) -> Descriptor {
        self.file().descriptor()
    }
}

impl SpliceSource for BufferedFile {
    fn splice_fd(&self) -> RawFd {
        self.file().fd()
    }

    fn splice_offset_alignment(&self) -> u64 {
        1
    }
}

impl Source for DmaFile {
    fn descriptor(&self) -> Descriptor {
        self.file().descriptor()
    }
}

impl SpliceSource for DmaFile {
    fn splice_fd(&self) -> RawFd {
        self.file().fd()
    }

    fn splice_offset_alignment(&self) -> u64 {
        if self.file().is_direct() {
            self.alignment()
        } else {
            1
        }
    }
}
