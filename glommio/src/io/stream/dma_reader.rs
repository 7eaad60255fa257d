//! Reading a file from one position to another by direct I/O, ahead of the consumer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_io::AsyncRead;

use super::DEFAULT_BUFFER_BYTES;
use crate::io::Result;
use crate::io::dma_file::{DmaFile, MAX_READ_BYTES};
use crate::io::read_result::ReadResult;
use crate::io::shared_read::ScheduledSource;
use crate::reactor::budget;

/// More blocks are not read ahead. Without a bound the reader would go on to the end of the file.
const MAX_READ_AHEAD: usize = 1024;

/// What a [`DmaStreamReader`] reads, and how.
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `build`"]
pub struct DmaStreamReaderBuilder {
    file: Rc<DmaFile>,
    start: u64,
    end: u64,
    read_ahead: usize,
    buffer_bytes: usize,
}

impl DmaStreamReaderBuilder {
    /// Reads a file that others use, too.
    pub fn from_rc(file: Rc<DmaFile>) -> DmaStreamReaderBuilder {
        DmaStreamReaderBuilder {
            file,
            start: 0,
            end: u64::MAX,
            read_ahead: 4,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
        }
    }

    /// Reads `file`.
    pub fn new(file: DmaFile) -> DmaStreamReaderBuilder {
        Self::from_rc(Rc::new(file))
    }

    /// How many buffers are read before they are asked for, 1024 at most. Default: 4. With 0 each
    /// is read when it is asked for.
    pub fn with_read_ahead(mut self, buffers: usize) -> Self {
        self.read_ahead = buffers;
        self
    }

    /// Before which byte reading ends, if the file does not end sooner. Default: `u64::MAX`.
    pub fn with_end_pos(mut self, position: u64) -> Self {
        self.end = position;
        self
    }

    /// Where reading begins: at any byte. Default: 0.
    pub fn with_start_pos(mut self, position: u64) -> Self {
        self.start = position;
        self
    }

    /// How many bytes are read at once, rounded up to the alignment of the file. Default: 128 KiB.
    pub fn with_buffer_size(mut self, buffer_size: usize) -> Self {
        self.buffer_bytes = buffer_size;
        self
    }

    /// The reader, which begins to read ahead.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::AsyncReadExt;
    /// use glommio::io::{DmaFile, DmaStreamReaderBuilder};
    /// use std::rc::Rc;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// std::fs::write(&path, "0123456789")?;
    /// let file = Rc::new(DmaFile::open(&path).await?);
    /// let mut reader = DmaStreamReaderBuilder::from_rc(Rc::clone(&file)) // `new` takes the file itself
    ///     .with_start_pos(2)
    ///     .with_end_pos(6)
    ///     .with_buffer_size(4096)
    ///     .with_read_ahead(1)
    ///     .build();
    /// let mut text = String::new();
    /// reader.read_to_string(&mut text).await?;
    /// assert_eq!(text, "2345");
    /// reader.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn build(self) -> DmaStreamReader {
        let block_bytes = self
            .buffer_bytes
            .clamp(1, MAX_READ_BYTES)
            .next_multiple_of(self.file.alignment() as usize);
        let mut reader = DmaStreamReader {
            file: self.file,
            position: self.start,
            end: self.end,
            block_bytes,
            read_ahead: self.read_ahead.min(MAX_READ_AHEAD),
            blocks: VecDeque::new(),
            seems_to_end_at: u64::MAX,
            ends_in: None,
            has_told_error: false,
        };
        reader.seems_to_end_at = reader.file.file().size_now().unwrap_or(u64::MAX);
        if reader.read_ahead > 0 {
            reader.fetch(reader.read_ahead);
        }
        reader
    }
}

/// Reads a [`DmaFile`] from one position to another, and reads ahead of the consumer.
///
/// The file is cut into blocks of the buffer's size, several of which are in flight or ready at a
/// time. The end of the file is where a block was found to be short: bytes that are appended later
/// are not seen.
///
/// Dropping the reader gives up what it reads ahead.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncReadExt;
/// use glommio::io::{DmaFile, DmaStreamReaderBuilder};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, "first line\nsecond line\n")?;
/// let file = DmaFile::open(&path).await?;
/// let mut reader = DmaStreamReaderBuilder::new(file).build();
/// reader.skip(6);
/// let bytes = reader.get_buffer_aligned(4).await?; // without a copy
/// assert_eq!((&*bytes, reader.current_pos()), (&b"line"[..], 10));
/// # drop((bytes, std::future::poll_fn(|cx| reader.poll_get_buffer_aligned(cx, 1)).await?));
/// let mut text = String::new();
/// reader.read_to_string(&mut text).await?;
/// assert_eq!(text, "second line\n");
/// reader.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct DmaStreamReader {
    file: Rc<DmaFile>,
    position: u64,
    end: u64,
    block_bytes: usize,
    read_ahead: usize,
    /// Of numbers that follow each other.
    blocks: VecDeque<Block>,
    /// Nothing from there on is read ahead, though it may be asked for: the size that the file
    /// had.
    seems_to_end_at: u64,
    /// The number of the block that is short.
    ends_in: Option<u64>,
    has_told_error: bool,
}

#[derive(Debug)]
struct Block {
    number: u64,
    read: ScheduledSource,
}

impl DmaStreamReader {
    /// Gives up what is read ahead and closes the file, if this is its last reference.
    ///
    /// # Errors
    ///
    /// That of a block that was read ahead and not asked for, or what closing gives.
    ///
    /// # Cancel safety
    ///
    /// The file is closed when it is dropped.
    pub async fn close(mut self) -> Result<()> {
        let found = poll_fn(|cx| Poll::Ready(self.untold_error(cx))).await;
        self.blocks.clear();
        self.file.close_rc().await?;
        found
    }

    /// The error of a block that has failed by now.
    fn untold_error(&self, cx: &Context<'_>) -> Result<()> {
        if self.has_told_error {
            return Ok(());
        }
        let ended = self
            .blocks
            .iter()
            .map(|it| self.file.poll_scheduled(&it.read, cx));
        ended
            .filter_map(|ended| match ended {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            })
            .collect()
    }

    /// Goes `bytes` bytes further, up to the end that the builder was told. May go beyond the end
    /// of the file, where nothing is read.
    pub fn skip(&mut self, bytes: u64) {
        let target = self.position.saturating_add(bytes).min(self.end);
        self.position = self.position.max(target);
        self.forget_passed();
        if self.read_ahead > 0 && self.position < self.end {
            self.fetch(self.read_ahead);
        }
    }

    /// Which byte of the file is the next.
    pub fn current_pos(&self) -> u64 {
        self.position
    }

    /// As [`get_buffer_aligned`](Self::get_buffer_aligned), for use in poll functions.
    pub fn poll_get_buffer_aligned(
        &mut self,
        cx: &Context<'_>,
        len: u64,
    ) -> Poll<Result<ReadResult>> {
        ready!(budget::poll_leave(cx));
        let len = len.min(self.end.saturating_sub(self.position));
        self.forget_passed();
        let block = self.block_of(self.position);
        if len == 0 || self.ends_in.is_some_and(|last| block > last) {
            budget::spend();
            return Poll::Ready(Ok(ReadResult::default()));
        }
        self.fetch(self.read_ahead.max(1));
        let current = &self.blocks[0];
        debug_assert_eq!(current.number, block);
        let ended = ready!(self.file.poll_scheduled(&current.read, cx));
        budget::spend();
        if let Err(error) = ended {
            self.has_told_error = true;
            return Poll::Ready(Err(error));
        }
        let read = &current.read.0;
        // Another one's read may serve this one: it begins earlier, or ends later.
        let start = self.start_of(block);
        let skipped = (start - read.position()) as usize;
        let valid = read
            .bytes()
            .len()
            .saturating_sub(skipped)
            .min(self.block_bytes);
        if valid < self.block_bytes {
            self.ends_in = Some(block);
            self.blocks.truncate(1);
        }
        let current = &self.blocks[0].read.0;
        let offset = (self.position - start) as usize;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let result = ReadResult::of_shared(
            current,
            skipped + offset,
            len.min(valid.saturating_sub(offset)),
        );
        self.position += result.len() as u64;
        Poll::Ready(Ok(result))
    }

    /// The next bytes, up to `len` of them, without a copy: no more than the block has that they
    /// are in. None at the end. Neither position nor `len` needs to be aligned.
    ///
    /// # Errors
    ///
    /// Those of reading the block, when all before it was taken; and again if it is asked again.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn get_buffer_aligned(&mut self, len: u64) -> Result<ReadResult> {
        poll_fn(|cx| self.poll_get_buffer_aligned(cx, len)).await
    }

    fn block_of(&self, position: u64) -> u64 {
        position / self.block_bytes as u64
    }

    /// Where a block begins that holds a position.
    fn start_of(&self, block: u64) -> u64 {
        block * self.block_bytes as u64
    }

    fn forget_passed(&mut self) {
        let current = self.block_of(self.position);
        while self.blocks.front().is_some_and(|it| it.number < current) {
            self.blocks.pop_front();
        }
    }

    /// Has `count` blocks read, from the current one on.
    fn fetch(&mut self, count: usize) {
        let current = self.block_of(self.position);
        while self.blocks.len() < count {
            let number = match self.blocks.back() {
                Some(last) => last.number + 1,
                None => current,
            };
            let Some(start) = number.checked_mul(self.block_bytes as u64) else {
                return;
            };
            let is_ahead = number > current && start >= self.seems_to_end_at;
            let is_beyond = start >= self.end || self.ends_in.is_some_and(|last| number > last);
            if is_ahead || is_beyond {
                return;
            }
            let read = self.file.schedule_read(start, self.block_bytes);
            self.blocks.push_back(Block { number, read });
        }
    }
}

impl AsyncRead for DmaStreamReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let reader = self.get_mut();
        let next = ready!(reader.poll_get_buffer_aligned(cx, to.len() as u64))?;
        let count = next.len();
        to[..count].copy_from_slice(&next);
        Poll::Ready(Ok(count))
    }
}
