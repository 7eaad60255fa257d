//! Files that are read and written past the page cache.

mod clones;
mod exact;
mod reads;
mod whole;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::Path;
use std::rc::Rc;

use super::Result;
use super::limits::Limits;
use super::open_file::OpenFile;
use super::open_options::OpenOptions;
use super::shared_read::{FileReads, ReadSharing};
use super::submit::Submitter;
use crate::memory::DmaBuffer;
use crate::reactor::op::{Bytes, MAX_TRANSFER_BYTES, Write};
use crate::reactor::{OpHandle, budget};
use crate::stats::Counted;
use crate::sys::file;

/// A file that is read and written at any position by direct I/O (`O_DIRECT`): data moves between
/// the device and the program's memory, past the kernel's page cache.
///
/// Positions and lengths of writes and of [`read_at_aligned`](Self::read_at_aligned) are multiples
/// of [`alignment`](Self::alignment), and the memory comes from
/// [`alloc_dma_buffer`](Self::alloc_dma_buffer); else they fail with `EINVAL`.
/// [`read_at`](Self::read_at) takes any. Where the filesystem has no direct I/O, the page cache is
/// used after all, and nothing needs to be aligned.
///
/// A clone shares the descriptor, which is closed with the last clone; [`dup`](Self::dup) makes
/// another one. A file that is dropped is closed in the background, and errors of that are lost:
/// [`close`](Self::close) tells them.
///
/// # Examples
///
/// ```
/// use glommio::io::{CloseResult, DmaFile};
/// use std::rc::Rc;
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let file = DmaFile::create(&path).await?;
/// let block = file.alignment();
/// assert_eq!((file.align_up(block + 1), file.align_down(block + 1)), (2 * block, block));
/// let mut buffer = file.alloc_dma_buffer(4096);
/// buffer.as_bytes_mut().fill(7);
/// assert_eq!(file.write_at(buffer, 0).await?, 4096);
/// let shared = Rc::new(file.alloc_dma_buffer(4096));
/// assert_eq!(file.write_rc_at(shared.clone(), 4096).await?, 4096);
/// file.close().await?;
///
/// let file = DmaFile::open(&path).await?;
/// assert_eq!(*file.read_at(1000, 3).await?, [7; 3]);
/// let other = Rc::new(file.dup()?);
/// assert!(file.is_same(&other) && file.inode() == other.inode());
/// assert_eq!((file.dev_major(), file.dev_minor()), (other.dev_major(), other.dev_minor()));
/// file.close().await?;
/// assert_eq!(other.clone().close_rc().await?, CloseResult::Unreferenced);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct DmaFile {
    /// Before the file, which is closed after it: see `shared_read.rs`.
    reads: Option<Rc<FileReads>>,
    file: OpenFile,
}

/// What [`DmaFile::close_rc`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseResult {
    /// The file was closed.
    Closed,
    /// The reference was dropped; there are others.
    Unreferenced,
}

impl DmaFile {
    /// The file, of which there is no clone yet, switched to direct I/O if it has it.
    pub(super) fn of(mut file: OpenFile, op: &'static str) -> Result<Self> {
        if let Err(error) = file.make_direct() {
            return Err(file.error(error, op));
        }
        Ok(DmaFile { reads: None, file })
    }

    pub(super) fn of_open(file: OpenFile) -> Self {
        DmaFile { reads: None, file }
    }

    /// Lets reads of the file be served by others in the same range.
    pub(super) fn share_reads(&mut self) -> Result<()> {
        let reactor = self.file.submitter().reactor()?;
        let shared = self.file.shared();
        if shared.inode != 0 {
            let sharing = reactor.kept::<ReadSharing>();
            self.reads = Some(sharing.file((shared.device, shared.inode)));
        }
        Ok(())
    }

    /// The least multiple of [`alignment`](Self::alignment) that is no less than `v`.
    ///
    /// # Panics
    ///
    /// In debug builds, if there is none.
    pub fn align_up(&self, v: u64) -> u64 {
        let mask = self.alignment() - 1;
        (v + mask) & !mask
    }

    /// The greatest multiple of [`alignment`](Self::alignment) that is no more than `v`.
    pub fn align_down(&self, v: u64) -> u64 {
        v & !(self.alignment() - 1)
    }

    /// What positions and lengths are multiples of, in bytes: a power of two, at least 512.
    pub fn alignment(&self) -> u64 {
        self.limits().alignment
    }

    pub(super) fn limits(&self) -> Limits {
        self.file.shared().limits
    }

    /// A buffer for this file, from the I/O memory of the executor.
    pub fn alloc_dma_buffer(&self, size: usize) -> DmaBuffer {
        self.file.submitter().allocate(size)
    }

    /// Another descriptor of the same open file, with the same flags. Each of the two is closed by
    /// itself.
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives, such as `EMFILE`.
    pub fn dup(&self) -> Result<Self> {
        let copy = self
            .file
            .named(self.file.shared().duplicate(), "Duplicating")?;
        Ok(DmaFile {
            reads: self.reads.clone(),
            file: OpenFile::of_shared(copy, self.file.to_path()),
        })
    }

    /// Writes `buf` at `pos`, and returns how many bytes were written. That may be fewer than there
    /// are, if the device is full or the file may not grow, and a gigabyte at most; the rest is for
    /// the caller to write or give up. [`write_all_at`](Self::write_all_at) writes it.
    ///
    /// On a file opened with [`append`](OpenOptions::append) the kernel ignores `pos`.
    ///
    /// # Errors
    ///
    /// What `write(2)` gives: `EINVAL` for what is not aligned, `ENOSPC`, `EFBIG`, `EIO`. The
    /// buffer is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the executor has handed it to the kernel, nothing is written. Later, it may
    /// or may not be, until [`close`](Self::close) returns. The buffer is kept until the kernel is
    /// done with it.
    pub async fn write_at(&self, buf: DmaBuffer, pos: u64) -> Result<usize> {
        self.write(Bytes::Dma(buf), pos).await
    }

    /// As [`write_at`](Self::write_at), of a buffer that others may read meanwhile, or write to
    /// other places.
    pub async fn write_rc_at(&self, buf: Rc<DmaBuffer>, pos: u64) -> Result<usize> {
        self.write(Bytes::Shared(buf), pos).await
    }

    async fn write(&self, bytes: Bytes, position: u64) -> Result<usize> {
        let started = budget::checked(self.start_write(bytes, 0, position)).await;
        let written = async { started?.await?.count };
        let written = written.await;
        self.file.named(written, "Writing")
    }

    /// Starts to write what `bytes` has from `start` on.
    pub(super) fn start_write(
        &self,
        bytes: Bytes,
        start: usize,
        position: u64,
    ) -> io::Result<OpHandle<Write>> {
        file::offset(position)?;
        let is_registered = bytes.as_dma().is_some_and(|buffer| {
            let len = buffer.len().saturating_sub(start);
            self.file.is_registered(buffer, len)
        });
        let write = Write {
            fd: self.file.hold(),
            bytes,
            start,
            position,
            is_registered,
        };
        self.file.submitter().start_counted(write, Counted::Write)
    }

    /// Closes the file, once the operations on it whose futures were dropped are over.
    ///
    /// # Errors
    ///
    /// `CanNotBeClosed` if there is a clone, which stays open, or a lock on it. Else what
    /// `close(2)` gives, which may be an error of an earlier write; the file is closed all the
    /// same.
    ///
    /// # Cancel safety
    ///
    /// The file is closed when it is dropped.
    pub async fn close(self) -> Result<()> {
        let DmaFile { reads, file } = self;
        drop(reads);
        file.close().await
    }

    /// Closes the file if this is the last reference to it, else drops the reference.
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close).
    ///
    /// # Cancel safety
    ///
    /// As [`close`](Self::close).
    pub async fn close_rc(self: Rc<DmaFile>) -> Result<CloseResult> {
        match Rc::into_inner(self) {
            Some(file) => file.close().await.map(|()| CloseResult::Closed),
            None => {
                budget::consume().await;
                Ok(CloseResult::Unreferenced)
            }
        }
    }

    /// The number of the file in its filesystem.
    pub fn inode(&self) -> u64 {
        self.file.shared().inode
    }

    /// The first half of the number of the device that the file is on.
    pub fn dev_major(&self) -> u32 {
        self.file.shared().device.0
    }

    /// The second half of the number of the device that the file is on.
    pub fn dev_minor(&self) -> u32 {
        self.file.shared().device.1
    }

    pub(super) fn file(&self) -> &OpenFile {
        &self.file
    }

    pub(super) fn submitter(&self) -> &Submitter {
        self.file.submitter()
    }
}

/// No buffer of a stream is longer.
pub(super) const MAX_READ_BYTES: usize = MAX_TRANSFER_BYTES;

/// The aligned range around `size` bytes at `position`, or as much of it as there can be memory
/// for.
pub(super) fn widen(position: u64, size: usize, alignment: u64) -> (u64, usize) {
    const MOST: usize = isize::MAX as usize;
    let start = position & !(alignment - 1);
    let lead = (position - start) as usize;
    let len = lead.saturating_add(size).min(MOST);
    (start, len.next_multiple_of(alignment as usize))
}

impl OpenOptions {
    /// Opens the file for direct I/O.
    ///
    /// On filesystems without direct I/O (tmpfs, some overlays) it is opened without: reads and
    /// writes go through the page cache then, and need no alignment. Elsewhere than on tmpfs, a
    /// line in the log at the level `warn` says so.
    ///
    /// # Errors
    ///
    /// `EINVAL` for options that contradict each other, else what `open(2)` gives, with the
    /// operation `"Opening"` or, where a file may be created, `"Creating"`. `InvalidInput` for
    /// a path with a NUL byte.
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not have created or truncated the file. Nothing stays
    /// open.
    pub async fn dma_open<P: AsRef<Path>>(&self, path: P) -> Result<DmaFile> {
        let file = self.open(path.as_ref(), libc::O_DIRECT).await?;
        DmaFile::of(file, self.op())
    }
}

impl AsRawFd for DmaFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.fd()
    }
}

impl AsFd for DmaFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.shared().as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_widened_to_the_alignment_and_no_further() {
        assert_eq!(widen(0, 1, 512), (0, 512));
        assert_eq!(widen(511, 1, 512), (0, 512));
        assert_eq!(widen(511, 2, 512), (0, 1024));
        assert_eq!(widen(512, 512, 512), (512, 512));
        assert_eq!(widen(5000, 5000, 4096), (4096, 8192));
        assert_eq!(widen(5000, 0, 4096), (4096, 4096));
        assert_eq!(widen(8192, 0, 4096), (8192, 0));
        let last = u64::MAX - 511;
        assert_eq!(widen(u64::MAX, 1, 512), (last, 512));
        assert_eq!(widen(1, usize::MAX, 512), (0, 1 << 63));
        assert_eq!(widen(1, 3 << 30, 512), (0, (3 << 30) + 512));
    }
}
