//! Files that are written once and read from then on.

use std::cell::Ref;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_io::AsyncWrite;

use super::Result;
use super::bulk::{IoVec, MergedBufferLimit, ReadAmplificationLimit, ReadManyArgs, ReadManyResult};
use super::dma_file::DmaFile;
use super::open_options::OpenOptions;
use super::read_result::ReadResult;
use super::shared_read::ScheduledSource;
use super::stream::{DmaStreamReaderBuilder, DmaStreamWriter, Settings};

/// How an [`ImmutableFile`] is made, and how it is read as a stream.
#[derive(Debug)]
#[must_use = "it does nothing before one of the `build` functions"]
pub struct ImmutableFileBuilder<P>
where
    P: AsRef<Path>,
{
    path: P,
    concurrency: usize,
    syncs: bool,
    buffer_bytes: usize,
    pre_allocation: Option<u64>,
    extent_bytes: Option<usize>,
}

impl<P> ImmutableFileBuilder<P>
where
    P: AsRef<Path>,
{
    /// The file at `fname`.
    pub fn new(fname: P) -> Self {
        ImmutableFileBuilder {
            path: fname,
            concurrency: 10,
            syncs: true,
            buffer_bytes: 128 << 10,
            pre_allocation: None,
            extent_bytes: None,
        }
    }

    /// How much space is allocated before anything is written. What is not used stays allocated.
    /// Where that cannot be done, it is left out. Default: none.
    pub fn with_pre_allocation(mut self, bytes: Option<u64>) -> Self {
        self.pre_allocation = bytes;
        self
    }

    /// How many buffers are written, and read ahead by streams, at a time. Default: 10.
    pub fn with_sequential_concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// In extents of how many bytes the filesystem is asked to allocate the file. Where that cannot
    /// be done, it is left out. Default: what it likes.
    pub fn with_hint_extent_size(mut self, bytes: Option<usize>) -> Self {
        self.extent_bytes = bytes;
        self
    }

    /// Whether sealing leaves out bringing the data to the device (`fdatasync`). Default: false.
    pub fn with_sync_on_close_disabled(mut self, disabled: bool) -> Self {
        self.syncs = !disabled;
        self
    }

    /// How many bytes are written, and read by streams, at once. Default: 128 KiB.
    pub fn with_buffer_size(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Creates the file, which must not be there, to be written and sealed.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::dma_open`], such as `EEXIST`.
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not have created the file. Nothing stays open.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::AsyncWriteExt;
    /// use glommio::io::ImmutableFileBuilder;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let mut sink = ImmutableFileBuilder::new(&path)
    ///     .with_buffer_size(64 << 10)
    ///     .with_sequential_concurrency(4)
    ///     .with_pre_allocation(Some(1 << 20))
    ///     .with_hint_extent_size(None)
    ///     .with_sync_on_close_disabled(true) // the file can be made anew
    ///     .build_sink()
    ///     .await?;
    /// sink.write_all(&[7; 5000]).await?;
    /// sink.seal().await?.close().await?;
    ///
    /// let file = ImmutableFileBuilder::new(&path).build_existing().await?;
    /// assert_eq!(*file.read_at(4990, 100).await?, [7; 10]);
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn build_sink(self) -> Result<ImmutableFilePreSealSink> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.dma_open(self.path.as_ref()).await?;
        // Both are hints.
        if let Some(size) = self.pre_allocation
            && let Err(error) = file.pre_allocate(size, true).await
        {
            tracing::debug!("allocating space in advance was left out: {error}");
        }
        if let Some(size) = self.extent_bytes
            && let Err(error) = file.hint_extent_size(size).await
        {
            tracing::debug!("the hint at the size of extents was left out: {error}");
        }
        let streams = self.streams();
        let settings = Settings {
            write_behind: self.concurrency,
            syncs_on_close: self.syncs,
            buffer_bytes: self.buffer_bytes,
        };
        Ok(ImmutableFilePreSealSink {
            writer: DmaStreamWriter::new(file, settings),
            streams,
        })
    }

    /// Opens the file, which must be there, for reading.
    ///
    /// # Errors
    ///
    /// As [`OpenOptions::dma_open`].
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// Nothing stays open when it is dropped.
    pub async fn build_existing(self) -> Result<ImmutableFile> {
        let file = DmaFile::open(self.path.as_ref()).await?;
        ImmutableFile::of(file, self.streams()).await
    }

    fn streams(&self) -> Streams {
        Streams {
            buffer_bytes: self.buffer_bytes,
            read_ahead: self.concurrency,
        }
    }
}

/// What streams of the file are preset with.
#[derive(Clone, Copy, Debug)]
struct Streams {
    buffer_bytes: usize,
    read_ahead: usize,
}

/// A file that is being written, to become an [`ImmutableFile`].
///
/// As [`DmaStreamWriter`], which it is underneath. Closing it closes the file for good; then it
/// cannot be sealed any more.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncWriteExt;
/// use glommio::io::ImmutableFileBuilder;
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let mut sink = ImmutableFileBuilder::new(&path).build_sink().await?;
/// sink.write_all(&[7; 5000]).await?;
/// assert_eq!(sink.current_pos(), 5000);
/// sink.flush_aligned().await?; // whole blocks only
/// sink.sync_aligned().await?; // and brings them to the device
/// assert_eq!(sink.sync().await?, 5000);
/// assert_eq!(sink.current_flushed_pos(), 5000);
/// let file = sink.seal().await?;
/// assert_eq!(file.file_size(), 5000);
/// file.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ImmutableFilePreSealSink {
    writer: DmaStreamWriter,
    streams: Streams,
}

impl ImmutableFilePreSealSink {
    /// Writes what was accepted, brings it to the device unless the builder was told not to, and
    /// makes the file one to be read.
    ///
    /// # Errors
    ///
    /// As [`DmaStreamWriter::sync`]; the file is closed then, and not complete. After `close`, an
    /// error of kind `Other`.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, the file is closed, and may lack what was not flushed before; it has
    /// nothing behind what was written.
    pub async fn seal(self) -> Result<ImmutableFile> {
        let file = self.writer.into_file().await?;
        ImmutableFile::of(file, self.streams).await
    }

    /// As [`DmaStreamWriter::sync`].
    pub async fn sync(&self) -> Result<u64> {
        self.writer.sync().await
    }

    /// As [`DmaStreamWriter::current_flushed_pos`].
    pub fn current_flushed_pos(&self) -> u64 {
        self.writer.current_flushed_pos()
    }

    /// As [`DmaStreamWriter::flush_aligned`].
    pub async fn flush_aligned(&self) -> Result<u64> {
        self.writer.flush_aligned().await
    }

    /// As [`DmaStreamWriter::current_pos`].
    pub fn current_pos(&self) -> u64 {
        self.writer.current_pos()
    }

    /// As [`DmaStreamWriter::sync_aligned`].
    pub async fn sync_aligned(&self) -> Result<u64> {
        self.writer.sync_aligned().await
    }
}

impl AsyncWrite for ImmutableFilePreSealSink {
    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_close(cx)
    }

    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        new: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sink = self.get_mut();
        Pin::new(&mut sink.writer).poll_write(cx, new)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }
}

/// A file that does not change any more, to be read by direct I/O.
///
/// Reads of it are shared: one that lies within another that is under way, or whose data is still
/// in use, takes part in that one, also if the two come from different opens of the file in this
/// executor. Nothing is kept beyond that; it is no cache.
///
/// Clones, streams and bulk reads share one descriptor. If the file does change, its readers get
/// old or new bytes, and no others.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncReadExt, StreamExt, stream};
/// use glommio::io::{ImmutableFileBuilder, MergedBufferLimit, ReadAmplificationLimit};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, [7; 10_000])?;
/// let file = ImmutableFileBuilder::new(&path).build_existing().await?;
/// assert_eq!(file.file_size(), 10_000);
/// let whole = file.read_at(0, 10_000).await?;
/// // In memory still, as `whole` is.
/// let part = file.read_at(5000, 100).await?;
/// assert_eq!(glommio::executor().io_stats().all_rings().file_deduped_reads().0, 1);
/// # drop((whole, part));
///
/// let ranges = stream::iter([(0, 100), (200, 100), (9000, 100)]);
/// let (merging, gaps) = (MergedBufferLimit::NoMerging, ReadAmplificationLimit::NoAmplification);
/// let mut reads = file.read_many(ranges, merging, gaps);
/// assert_eq!(reads.try_fold(0, |bytes, (_, data)| Ok(bytes + data.len())).await?, 300);
/// # drop(reads);
/// let mut reader = file.stream_reader().with_start_pos(9_990).build();
/// let mut end = Vec::new();
/// assert_eq!(reader.read_to_end(&mut end).await?, 10);
/// reader.close().await?;
///
/// file.rename(path.with_extension("old")).await?;
/// let other = ImmutableFileBuilder::new(path.with_extension("old")).build_existing().await?;
/// assert!(file.is_same(&other));
/// other.close().await?;
/// file.remove().await?;
/// file.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct ImmutableFile {
    file: Rc<DmaFile>,
    size: u64,
    streams: Streams,
}

impl ImmutableFile {
    async fn of(mut file: DmaFile, streams: Streams) -> Result<Self> {
        let size = file.file_size().await?;
        file.share_reads()?;
        Ok(ImmutableFile {
            file: Rc::new(file),
            size,
            streams,
        })
    }

    /// As [`DmaFile::path`].
    pub fn path(&self) -> Option<Ref<'_, Path>> {
        self.file.path()
    }

    /// The size of the file in bytes when it was sealed or opened.
    pub fn file_size(&self) -> u64 {
        self.size
    }

    /// Whether both are the same file on disk, by whichever paths they were opened.
    pub fn is_same(&self, other: &ImmutableFile) -> bool {
        self.file.is_same(&other.file)
    }

    /// As [`DmaFile::read_at`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. A read that others take part in goes on.
    pub async fn read_at(&self, pos: u64, size: usize) -> Result<ReadResult> {
        self.file.read_at(pos, size).await
    }

    /// As [`DmaFile::read_many`].
    ///
    /// # Cancel safety
    ///
    /// A `next` that is dropped loses nothing. With the stream, the reads that it has begun are given
    /// up, and their memory is freed when the kernel is done with it.
    pub fn read_many<V, S>(
        &self,
        iovs: S,
        buffer_limit: MergedBufferLimit,
        read_amp_limit: ReadAmplificationLimit,
    ) -> ReadManyResult<V, impl Stream<Item = (ScheduledSource, ReadManyArgs<V>)> + Unpin + use<V, S>>
    where
        V: IoVec + Unpin,
        S: Stream<Item = V> + Unpin,
    {
        self.file.read_many(iovs, buffer_limit, read_amp_limit)
    }

    /// As [`DmaFile::rename`].
    pub async fn rename<P: AsRef<Path>>(&self, new_path: P) -> Result<()> {
        self.file.rename(new_path).await
    }

    /// As [`DmaFile::remove`].
    pub async fn remove(&self) -> Result<()> {
        self.file.remove().await
    }

    /// Closes the file if there is no other clone, stream, builder or bulk read of it; else it
    /// stays open for those.
    ///
    /// # Errors
    ///
    /// As [`DmaFile::close`].
    ///
    /// # Cancel safety
    ///
    /// As [`DmaFile::close`].
    pub async fn close(self) -> Result<()> {
        self.file.close_rc().await.map(drop)
    }

    /// A stream of the file, from its beginning to its end unless it is told otherwise.
    pub fn stream_reader(&self) -> DmaStreamReaderBuilder {
        DmaStreamReaderBuilder::from_rc(Rc::clone(&self.file))
            .with_buffer_size(self.streams.buffer_bytes)
            .with_read_ahead(self.streams.read_ahead)
            .with_end_pos(self.size)
    }
}
