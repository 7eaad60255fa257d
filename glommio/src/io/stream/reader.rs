//! Reading a file through the page cache.

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek};

use super::unread::{Buffered, Unread, reads_by_buffer};
use crate::io::Result;
use crate::io::buffered_file::{BufferedFile, Looked};
use crate::io::dma_file::MAX_READ_BYTES;
use crate::io::open_file::StatHandle;
use crate::reactor::op::Read;
use crate::reactor::{OpHandle, budget};

/// What a [`StreamReader`] reads, and how.
#[derive(Debug)]
#[must_use = "it does nothing before `build`"]
pub struct StreamReaderBuilder {
    file: BufferedFile,
    start: u64,
    end: u64,
    buffer_bytes: usize,
}

impl StreamReaderBuilder {
    /// Reads `file`.
    pub fn new(file: BufferedFile) -> StreamReaderBuilder {
        StreamReaderBuilder {
            file,
            start: 0,
            end: u64::MAX,
            buffer_bytes: 4096,
        }
    }

    /// Where reading begins. Default: 0.
    pub fn with_start_pos(mut self, start: u64) -> Self {
        self.start = start;
        self
    }

    /// Before which byte reading ends, if the file does not end sooner. Default: `u64::MAX`.
    pub fn with_end_pos(mut self, end: u64) -> Self {
        self.end = end;
        self
    }

    /// How many bytes are read at once. Default: 4096; 0 counts as 1.
    pub fn with_buffer_size(mut self, buffer_size: usize) -> Self {
        self.buffer_bytes = buffer_size;
        self
    }

    /// The reader.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::AsyncReadExt;
    /// use glommio::io::{BufferedFile, StreamReaderBuilder};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// std::fs::write(&path, "0123456789")?;
    /// let mut reader = StreamReaderBuilder::new(BufferedFile::open(&path).await?)
    ///     .with_start_pos(2)
    ///     .with_end_pos(6)
    ///     .with_buffer_size(4096)
    ///     .build();
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text).await?;
    /// assert_eq!(text, "2345");
    /// reader.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn build(self) -> StreamReader {
        StreamReader {
            file: self.file,
            next: self.start,
            end: self.end,
            buffer_bytes: self.buffer_bytes.clamp(1, MAX_READ_BYTES),
            unread: Unread::default(),
            reading: None,
            stat: None,
        }
    }
}

/// Reads a [`BufferedFile`] from one position to another, through a buffer.
///
/// At the end of the file it asks again each time, so a file that grows can be followed. An error
/// is told once; the next read tries again. A reader that is dropped closes its file in the
/// background.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncBufReadExt;
/// use glommio::io::{BufferedFile, StreamReaderBuilder};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, "one\ntwo\n")?;
/// let file = BufferedFile::open(&path).await?;
/// let mut reader = StreamReaderBuilder::new(file).build();
/// let mut line = String::new();
/// reader.read_line(&mut line).await?;
/// assert_eq!(line, "one\n");
/// reader.close().await?; // the rest is not read
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub struct StreamReader {
    file: BufferedFile,
    /// Where in the file the buffer ends.
    next: u64,
    end: u64,
    buffer_bytes: usize,
    unread: Unread,
    reading: Option<OpHandle<Read>>,
    /// Of a seek from the end.
    stat: Option<StatHandle>,
}

impl StreamReader {
    /// Closes the file.
    ///
    /// # Errors
    ///
    /// As [`BufferedFile::close`].
    ///
    /// # Cancel safety
    ///
    /// The file is closed when it is dropped.
    pub async fn close(self) -> Result<()> {
        let StreamReader { file, reading, .. } = self;
        drop(reading);
        file.close().await
    }

    /// Where the next byte that is read is in the file.
    fn position(&self) -> u64 {
        let (start, end) = self.unread.range;
        self.next - (end - start) as u64
    }

    /// Goes to `target`, within the buffer if it is there.
    fn go_to(&mut self, target: u64) {
        let (_, end) = self.unread.range;
        let first = self.next - end as u64;
        match target.checked_sub(first) {
            Some(offset) if offset <= end as u64 && self.unread.buffer.is_some() => {
                self.unread.range.0 = offset as usize;
            }
            _ => {
                // A read that is under way is for another place.
                self.reading = None;
                self.unread.range = (0, 0);
                self.next = target;
            }
        }
    }
}

/// The position `offset` bytes from `base`.
pub(super) fn relative(base: u64, offset: i64) -> io::Result<u64> {
    base.checked_add_signed(offset)
        .filter(|target| i64::try_from(*target).is_ok())
        .ok_or_else(invalid_seek)
}

pub(super) fn invalid_seek() -> io::Error {
    let message = "cannot seek to before the beginning of a file, or beyond what a file can have";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

impl Buffered for StreamReader {
    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    fn is_at_end(&self) -> bool {
        self.position() >= self.end
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (buffer, count) = match &mut self.reading {
            Some(reading) => {
                let read = ready!(Pin::new(reading).poll(cx));
                self.reading = None;
                let read = read.and_then(|(buffer, count)| Ok((buffer, count?)));
                self.file.file().named(read, "Reading")?
            }
            None => {
                ready!(budget::poll_leave_to_read(cx));
                let mut buffer = match self.unread.buffer.take() {
                    Some(buffer) => buffer,
                    None => self.file.file().submitter().allocate(self.buffer_bytes),
                };
                self.unread.range = (0, 0);
                match self.file.look(&mut buffer, 0, self.next) {
                    // What came from the page cache is enough; the rest may have to be waited for.
                    Looked::Done(count) => (buffer, count),
                    Looked::From(count) if count > 0 => (buffer, count),
                    Looked::From(_) => {
                        let reading = self.file.start_read(buffer, 0, self.next);
                        self.reading = Some(self.file.file().named(reading, "Reading")?);
                        return self.poll_fill(cx);
                    }
                }
            }
        };
        // What lies beyond the end that was asked for may have been read, too.
        let wanted = self.end.saturating_sub(self.next);
        let count = count.min(usize::try_from(wanted).unwrap_or(usize::MAX));
        self.unread.buffer = Some(buffer);
        self.unread.range = (0, count);
        self.next += count as u64;
        Poll::Ready(Ok(()))
    }
}

reads_by_buffer!(StreamReader);

impl AsyncSeek for StreamReader {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pos: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        budget::counted(cx, |cx| {
            let target = match pos {
                SeekFrom::Start(target) => {
                    relative(0, i64::try_from(target).map_err(|_| invalid_seek())?)
                }
                SeekFrom::Current(offset) => relative(this.position(), offset),
                SeekFrom::End(offset) => {
                    let file = this.file.file();
                    let size = ready!(file.poll_size(&mut this.stat, cx))?;
                    relative(size, offset)
                }
            };
            this.stat = None;
            let target = target?;
            this.go_to(target);
            Poll::Ready(Ok(target))
        })
    }
}

impl_debug! { StreamReader, it: file, position: it.position(), end; .. }
