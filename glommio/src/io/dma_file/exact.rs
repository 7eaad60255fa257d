//! Reads and writes of all that was asked for, and reads into memory of the caller.

use std::io;

use super::{DmaFile, widen};
use crate::io::Result;
use crate::io::long_read::{goes_on, to_allocate};
use crate::io::read_result::ReadResult;
use crate::memory::DmaBuffer;
use crate::reactor::budget;
use crate::reactor::op::Bytes;

impl DmaFile {
    /// Reads exactly `size` bytes at `pos`, whatever they are.
    ///
    /// # Errors
    ///
    /// Kind `UnexpectedEof` if the file ends before. Else as [`read_at`](Self::read_at).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. The memory is kept until the kernel is done with it.
    pub async fn read_exact_at(&self, pos: u64, size: usize) -> Result<ReadResult> {
        if size == 0 {
            budget::consume().await;
            return Ok(ReadResult::default());
        }
        let read = self.read_exact(pos, size).await;
        self.file.named(read, "Reading")
    }

    async fn read_exact(&self, pos: u64, size: usize) -> io::Result<ReadResult> {
        if to_allocate(&self.file, pos, size).await? < size {
            return budget::checked(Err(io::ErrorKind::UnexpectedEof.into())).await;
        }
        let (start, len) = widen(pos, size, self.alignment());
        let lead = (pos - start) as usize;
        let unit = self.unit();
        // What is no whole block ends with the file, and what follows it could not be asked for.
        let goes_on = |read: usize, count| {
            count > 0 && read < lead.saturating_add(size) && read.is_multiple_of(unit)
        };
        let (mut buffer, read) = self.fill(start, len, goes_on).await?;
        buffer.trim_to_size(read);
        let whole = ReadResult::new(buffer).clip(lead, size);
        if whole.len() == size {
            Ok(whole)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Reads up to `buf.len()` bytes at `pos` straight into `buf`, past the page cache and without
    /// a copy, and returns how many there were, with the buffer as long as it was. Fewer at the end
    /// of the file, and none after it. What lies behind them in the buffer stays.
    ///
    /// For callers with memory of their own, such as a cache of pages. `pos` and the length are
    /// multiples of [`alignment`](Self::alignment).
    ///
    /// # Errors
    ///
    /// What `read(2)` gives: `EINVAL` for what is not aligned, `EIO`. The buffer comes back all the
    /// same, and what is in it is not specified; but if the executor of the file is dropped
    /// meanwhile it is lost, and the buffer that comes back is empty.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, the buffer is freed as soon as the kernel is done with it.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::io::DmaFile;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let file = DmaFile::create(&path).await?;
    /// let mut buffer = file.alloc_dma_buffer(8192);
    /// buffer.as_bytes_mut().fill(7);
    /// file.write_all_at(buffer, 0).await?;
    /// file.close().await?;
    ///
    /// let file = DmaFile::open(&path).await?;
    /// assert_eq!(*file.read_exact_at(900, 100).await?, [7; 100]);
    /// assert!(file.read_exact_at(8100, 100).await.is_err());
    /// let mut frame = file.alloc_dma_buffer(4096);
    /// for page in 0..2 {
    ///     let (read, back) = file.read_at_into(frame, page * 4096).await;
    ///     frame = back;
    ///     assert_eq!(frame.as_bytes()[..read?].iter().map(|byte| *byte).max(), Some(7));
    /// }
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn read_at_into(&self, buf: DmaBuffer, pos: u64) -> (Result<usize>, DmaBuffer) {
        let len = buf.len();
        let goes_on = |read, count| goes_on(read, count, len);
        let (read, buffer) = self.read_into(buf, pos, goes_on).await;
        (self.file.named(read, "Reading"), buffer)
    }

    /// Writes all of `buf` at `pos`: what the kernel has left is written with a further call.
    ///
    /// Not for files opened with [`append`](crate::io::OpenOptions::append), where the kernel ignores `pos`: a
    /// part may be written twice.
    ///
    /// # Errors
    ///
    /// What `write(2)` gives: `EINVAL` for what is not aligned, `ENOSPC`, `EFBIG`, `EIO`; kind
    /// `WriteZero` if it writes nothing more. A part may have been written. The buffer is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the executor has handed it to the kernel, nothing is written. Later, any part
    /// may or may not be, until [`close`](Self::close) returns. The buffer is kept until the kernel is done with it.
    pub async fn write_all_at(&self, buf: DmaBuffer, pos: u64) -> Result<()> {
        let written = self.write_all(Bytes::Dma(buf), pos).await;
        self.file.named(written, "Writing")
    }

    async fn write_all(&self, mut bytes: Bytes, pos: u64) -> io::Result<()> {
        let (len, unit) = (bytes.as_slice().len(), self.unit());
        let mut done = 0;
        if len == 0 {
            budget::consume().await;
        }
        while done < len {
            let position = pos.saturating_add(done as u64);
            let started = budget::checked(self.start_write(bytes, done, position)).await;
            let written = started?.await?;
            bytes = written.bytes;
            let end = done + written.count?;
            // What follows has to begin with a block: the rest of one is written again.
            let next = if end == len { len } else { end - end % unit };
            if next == done {
                return Err(io::ErrorKind::WriteZero.into());
            }
            done = next;
        }
        Ok(())
    }

    /// What positions within a transfer are multiples of.
    fn unit(&self) -> usize {
        if self.file.is_direct() {
            self.alignment() as usize
        } else {
            1
        }
    }
}
