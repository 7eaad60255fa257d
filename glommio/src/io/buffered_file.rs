//! Files that are read and written through the page cache.

mod exact;

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use super::closing::Closing;
use super::long_read::{goes_on, to_allocate};
use super::methods::file_methods;
use super::open_file::OpenFile;
use super::open_options::OpenOptions;
use super::read_result::ReadResult;
use super::{Result, submit};
use crate::clock;
use crate::error::is_missing;
use crate::memory::DmaBuffer;
use crate::reactor::op::{Bytes, INLINE_BYTES, Read, Write};
use crate::reactor::{OpHandle, budget};
use crate::stats::Counted;
use crate::sys::file;

/// A file that is read and written at any position through the kernel's page cache.
///
/// A read of up to 1 MiB that the page cache can serve is done when the future is first polled; others wait for
/// the device without blocking the thread. A file that is dropped is closed in the background, and
/// errors of that are lost: [`close`](Self::close) tells them.
///
/// # Examples
///
/// ```
/// use glommio::io::BufferedFile;
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let file = BufferedFile::create(&path).await?;
/// assert_eq!(file.write_at(b"hello".to_vec(), 100).await?, 5);
/// file.fdatasync().await?;
/// file.close().await?;
///
/// let mut file = BufferedFile::open(&path).await?;
/// assert_eq!(&*file.read_at(100, 1000).await?, b"hello");
/// file.rename(path.with_extension("new")).await?;
/// let other = BufferedFile::open(path.with_extension("new")).await?;
/// assert!(file.is_same(&other));
/// file.remove().await?;
/// file.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct BufferedFile {
    file: OpenFile,
    /// The file has no reads that only look into the page cache.
    lacks_cached_reads: Cell<bool>,
}

/// What is left to read after a look into the page cache.
pub(super) enum Looked {
    /// Nothing: this many bytes are there, and no more are wanted, or the file ends.
    Done(usize),
    /// Bytes from here on, which the kernel has to get, or which it has not been asked for.
    From(usize),
}

impl BufferedFile {
    pub(super) fn of(file: OpenFile) -> Self {
        BufferedFile {
            file,
            lacks_cached_reads: Cell::new(false),
        }
    }

    /// As [`DmaFile::write_at`](crate::io::DmaFile::write_at), also of what is not aligned.
    ///
    /// The data is in the page cache then, where all others see it. [`fdatasync`](Self::fdatasync)
    /// brings it to the device.
    pub async fn write_at(&self, buf: Vec<u8>, pos: u64) -> Result<usize> {
        let started = budget::checked(self.start_write(Bytes::Vec(buf), 0, pos)).await;
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
        let write = Write {
            fd: self.file.hold(),
            bytes,
            start,
            position,
            is_registered: false,
        };
        self.file
            .submitter()
            .start_counted(write, Counted::BufferedWrite)
    }

    /// As [`DmaFile::read_at`](crate::io::DmaFile::read_at), without what lies around.
    pub async fn read_at(&self, pos: u64, size: usize) -> Result<ReadResult> {
        let read = async {
            let size = to_allocate(&self.file, pos, size).await?;
            let buffer = budget::checked(self.file.submitter().try_allocate(size)).await?;
            let (read, mut buffer) = self.read_into(buffer, pos, false).await;
            buffer.trim_to_size(read?);
            Ok(buffer)
        };
        let read = read.await;
        Ok(ReadResult::new(self.file.named(read, "Reading")?))
    }

    /// Fills `buffer` with what is at `position`, and how many bytes there were. They are fewer at
    /// the end of the file, or unless `is_exact` where the kernel has brought fewer and there is no
    /// page cache to tell why.
    async fn read_into(
        &self,
        mut buffer: DmaBuffer,
        position: u64,
        is_exact: bool,
    ) -> (io::Result<usize>, DmaBuffer) {
        poll_fn(|cx| budget::poll_leave_to_read(cx)).await;
        let submitter = self.file.submitter();
        let size = buffer.len();
        if size == 0 {
            budget::spend();
            return (Ok(0), buffer);
        }
        // The last one of all is where the file stands, to a look into the page cache.
        if let Err(error) = file::offset(position) {
            budget::spend();
            return (Err(error), buffer);
        }
        let mut read = 0;
        loop {
            match self.look(&mut buffer, read, position) {
                Looked::Done(all) => return (Ok(all), buffer),
                Looked::From(cached) => read = cached,
            }
            let rest = self.read_op(buffer, read, position + read as u64);
            let (back, count) = submitter.read_into(rest, Counted::BufferedRead).await;
            buffer = back;
            let count = match count {
                Ok(count) => count,
                Err(error) => return (Err(error), buffer),
            };
            read += count;
            // Before the end of the file a read may be cut short, which a look into the page cache
            // tells.
            let has_more = is_exact || !self.lacks_cached_reads.get() || goes_on(read, count, size);
            if count == 0 || read == size || !has_more {
                return (Ok(read), buffer);
            }
        }
    }

    /// Starts to read into `buffer`, from its byte `start` on.
    pub(super) fn start_read(
        &self,
        buffer: DmaBuffer,
        start: usize,
        position: u64,
    ) -> io::Result<OpHandle<Read>> {
        let read = self.read_op(buffer, start, position);
        self.file
            .submitter()
            .start_counted(read, Counted::BufferedRead)
    }

    fn read_op(&self, buffer: DmaBuffer, start: usize, position: u64) -> Read {
        Read {
            fd: self.file.hold(),
            buffer,
            start,
            position,
            is_registered: false,
        }
    }

    /// Fills `buffer`, which is for the bytes at `position`, from its byte `start` on with what the
    /// page cache has, as long as the task may go on without yielding. To be called with the leave
    /// of the budget, from which a success is taken.
    pub(super) fn look(&self, buffer: &mut DmaBuffer, start: usize, position: u64) -> Looked {
        let Ok(reactor) = self.file.submitter().reactor() else {
            return Looked::From(start);
        };
        let is_long = buffer.len() - start > INLINE_BYTES;
        if is_long || self.lacks_cached_reads.get() || reactor.need_preempt() {
            return Looked::From(start);
        }
        let since = reactor.io_counters().is_timed().then(clock::real);
        let fd = self.file.fd();
        let mut read = start;
        let looked = loop {
            let rest = &mut buffer.as_bytes_mut()[read..];
            match file::read_cached(fd, rest, position + read as u64) {
                Ok(0) => break Looked::Done(read),
                Ok(count) if count == rest.len() => break Looked::Done(read + count),
                // There may be a gap in the cache, or the end of the file.
                Ok(count) => read += count,
                Err(error) => {
                    let lacks = [Some(libc::EOPNOTSUPP), Some(libc::ESPIPE)];
                    if is_missing(&error) || lacks.contains(&error.raw_os_error()) {
                        self.lacks_cached_reads.set(true);
                    }
                    break Looked::From(read);
                }
            }
        };
        let brought = match looked {
            Looked::Done(all) => Some(all - start),
            Looked::From(at) => (at > start).then(|| at - start),
        };
        if let Some(bytes) = brought {
            budget::spend_read(bytes);
            submit::count(&reactor, Counted::BufferedRead, bytes, since);
        }
        looked
    }

    file_methods!(BufferedFile, buffered_open);

    /// As [`DmaFile::rename`](super::DmaFile::rename).
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen; the path that is remembered is the old one.
    pub async fn rename<P: AsRef<Path>>(&mut self, new_path: P) -> Result<()> {
        self.file.rename(new_path.as_ref()).await
    }

    /// Closes the file, once the operations on it whose futures were dropped are over.
    ///
    /// # Errors
    ///
    /// What `close(2)` gives, which may be an error of an earlier write; the file is closed all the
    /// same.
    ///
    /// # Cancel safety
    ///
    /// The file is closed when it is dropped.
    pub async fn close(self) -> Result<()> {
        self.file.close().await
    }

    /// Starts to close it.
    pub(super) fn start_close(self) -> Closing {
        self.file.start_close()
    }

    pub(super) fn file(&self) -> &OpenFile {
        &self.file
    }
}

impl OpenOptions {
    /// Opens the file for I/O through the page cache.
    ///
    /// # Errors
    ///
    /// As [`dma_open`](Self::dma_open).
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// As [`dma_open`](Self::dma_open).
    pub async fn buffered_open<P: AsRef<Path>>(&self, path: P) -> Result<BufferedFile> {
        Ok(BufferedFile::of(self.open(path.as_ref(), 0).await?))
    }
}

impl AsRawFd for BufferedFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.fd()
    }
}

impl AsFd for BufferedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.shared().as_fd()
    }
}

/// A file that is open already: of any kind that can be read or written at a position.
///
/// # Panics
///
/// Panics outside an executor.
impl FromRawFd for BufferedFile {
    #[allow(unsafe_code, reason = "the trait is unsafe to implement")]
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller promises that the descriptor is open and has no other owner.
        BufferedFile::of(OpenFile::of_unknown(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}
