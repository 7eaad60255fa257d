//! Reads, those that share what they read included.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use super::{DmaFile, widen};
use crate::io::Result;
use crate::io::long_read::{goes_on, to_allocate};
use crate::io::read_result::ReadResult;
use crate::io::shared_read::{ScheduledSource, SharedRead};
use crate::memory::DmaBuffer;
use crate::reactor::op::Read;
use crate::reactor::{OpHandle, budget};
use crate::stats::Counted;
use crate::sys::file;

impl DmaFile {
    /// Reads up to `size` bytes at `pos`, both of which are aligned. Fewer at the end of the file,
    /// and none after it; more than a gigabyte is read piece by piece.
    ///
    /// # Errors
    ///
    /// What `read(2)` gives: `EINVAL` for what is not aligned, `EIO`. `ENOMEM` for more than there
    /// is memory.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. The memory is kept until the kernel is done with it.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::io::DmaFile;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// std::fs::write(&path, [7; 10_000])?;
    /// let file = DmaFile::open(&path).await?;
    /// assert_eq!(*file.read_at_aligned(4096, 4096).await?, [7; 4096]);
    /// // The file ends there.
    /// assert_eq!(*file.read_at_aligned(8192, 4096).await?, [7; 10_000 - 8192]);
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn read_at_aligned(&self, pos: u64, size: usize) -> Result<ReadResult> {
        let needed = self.to_allocate(pos, size).await?;
        let size = size.min(needed.next_multiple_of(self.alignment() as usize));
        if self.reads.is_some() {
            return self.read_shared(pos, size, 0, size).await;
        }
        self.read_alone(pos, size).await
    }

    /// Reads up to `size` bytes at `pos`, whatever they are: what is read around them, to be
    /// aligned, is left out. Fewer at the end of the file, and none after it; more than a gigabyte
    /// is read piece by piece. [`read_exact_at`](Self::read_exact_at) takes fewer for an error.
    ///
    /// # Errors
    ///
    /// What `read(2)` gives, such as `EIO`. `ENOMEM` for more than there is memory.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. The memory is kept until the kernel is done with it.
    pub async fn read_at(&self, pos: u64, size: usize) -> Result<ReadResult> {
        let size = self.to_allocate(pos, size).await?;
        if size == 0 {
            budget::consume().await;
            return Ok(ReadResult::default());
        }
        let (start, len) = widen(pos, size, self.alignment());
        let lead = (pos - start) as usize;
        if self.reads.is_some() {
            return self.read_shared(start, len, lead, size).await;
        }
        Ok(self.read_alone(start, len).await?.clip(lead, size))
    }

    async fn read_alone(&self, position: u64, len: usize) -> Result<ReadResult> {
        let read = self.fill(position, len, |read, count| goes_on(read, count, len));
        let (mut buffer, count) = self.file.named(read.await, "Reading")?;
        buffer.trim_to_size(count);
        Ok(ReadResult::new(buffer))
    }

    /// As [`read_into`](Self::read_into), into new memory of `len` bytes.
    pub(super) async fn fill(
        &self,
        position: u64,
        len: usize,
        goes_on: impl Fn(usize, usize) -> bool,
    ) -> io::Result<(DmaBuffer, usize)> {
        budget::checked(file::offset(position)).await?;
        let buffer = budget::checked(self.file.submitter().try_allocate(len)).await?;
        let (read, buffer) = self.read_into(buffer, position, goes_on).await;
        Ok((buffer, read?))
    }

    /// Reads into `buffer`, and how many bytes there were. `goes_on` says from what was read so far and
    /// what was read last whether a read that has not filled it goes on.
    pub(super) async fn read_into(
        &self,
        mut buffer: DmaBuffer,
        pos: u64,
        goes_on: impl Fn(usize, usize) -> bool,
    ) -> (io::Result<usize>, DmaBuffer) {
        let submitter = self.file.submitter();
        let len = buffer.len();
        let mut read = 0;
        loop {
            let op = self.read_op(buffer, read, pos);
            let (back, count) = submitter.read_into(op, Counted::Read).await;
            buffer = back;
            let count = match count {
                Ok(count) => count,
                Err(error) => return (Err(error), buffer),
            };
            read += count;
            if read >= len || !goes_on(read, count) {
                return (Ok(read), buffer);
            }
        }
    }

    /// See [`to_allocate`].
    pub(super) async fn to_allocate(&self, position: u64, size: usize) -> Result<usize> {
        let needed = to_allocate(&self.file, position, size).await;
        self.file.named(budget::checked(needed).await, "Reading")
    }

    /// As much as there is of the `size` bytes from `lead` on of the `len` bytes at `position`.
    async fn read_shared(
        &self,
        position: u64,
        len: usize,
        lead: usize,
        size: usize,
    ) -> Result<ReadResult> {
        let source = self.schedule_read(position, len);
        poll_fn(|cx| budget::counted(cx, |cx| self.poll_scheduled(&source, cx))).await?;
        // It may be a longer one, which begins earlier.
        let offset = (position - source.0.position()) as usize;
        Ok(ReadResult::of_shared(&source.0, offset + lead, size))
    }

    /// Starts a read of `len` bytes at `position`, both aligned, or takes part in one that brings
    /// them. One that cannot be started has failed.
    pub(in crate::io) fn schedule_read(&self, position: u64, len: usize) -> ScheduledSource {
        let submitter = self.file.submitter();
        let new = || {
            let buffer = submitter.try_allocate(len)?;
            Ok(self.read_op(buffer, 0, position))
        };
        let scheduled = file::offset(position).and_then(|_| match &self.reads {
            Some(reads) => reads.read(submitter, position, len, new),
            None => SharedRead::start(submitter, new()?),
        });
        ScheduledSource(
            scheduled.unwrap_or_else(|error| SharedRead::failed(submitter, position, error)),
        )
    }

    /// Waits for the end of a read of this file.
    pub(in crate::io) fn poll_scheduled(
        &self,
        source: &ScheduledSource,
        cx: &Context<'_>,
    ) -> Poll<Result<()>> {
        let go_on = |buffer, read| self.start_read(buffer, read, source.0.position());
        source
            .0
            .poll(cx, go_on)
            .map(|read| self.file.named(read, "Reading"))
    }

    /// Starts to read into `buffer`, which is for the bytes at `position`, from its byte `start`
    /// on.
    fn start_read(
        &self,
        buffer: DmaBuffer,
        start: usize,
        position: u64,
    ) -> io::Result<OpHandle<Read>> {
        let read = self.read_op(buffer, start, position);
        self.file.submitter().start_counted(read, Counted::Read)
    }

    pub(super) fn read_op(&self, buffer: DmaBuffer, start: usize, position: u64) -> Read {
        Read {
            fd: self.file.hold(),
            is_registered: self.file.is_registered(&buffer, buffer.len() - start),
            buffer,
            start,
            position: position + start as u64,
        }
    }
}
