//! Writing a file through the page cache.

use std::io::{self, SeekFrom};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncSeek, AsyncWrite};

use super::reader::{invalid_seek, relative};
use super::{DEFAULT_BUFFER_BYTES, is_closed};
use crate::error::GlommioError;
use crate::io::buffered_file::BufferedFile;
use crate::io::closing::Closing;
use crate::io::dma_file::MAX_READ_BYTES;
use crate::io::error::again_enhanced;
use crate::io::open_file::StatHandle;
use crate::reactor::op::{Bytes, Sync, Write};
use crate::reactor::{OpHandle, budget};

/// What a [`StreamWriter`] writes to, and how.
#[derive(Debug)]
#[must_use = "it does nothing before `build`"]
pub struct StreamWriterBuilder {
    file: BufferedFile,
    syncs_on_close: bool,
    buffer_bytes: usize,
}

impl StreamWriterBuilder {
    /// Writes to `file`, from its first byte on. A file opened for
    /// [appending](super::super::OpenOptions::append) puts the data elsewhere.
    pub fn new(file: BufferedFile) -> StreamWriterBuilder {
        StreamWriterBuilder {
            file,
            syncs_on_close: true,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
        }
    }

    /// Whether closing leaves out bringing the data to the device (`fdatasync`). Default: false.
    pub fn with_sync_on_close_disabled(mut self, flush_disabled: bool) -> Self {
        self.syncs_on_close = !flush_disabled;
        self
    }

    /// How many bytes are written at once. Default: 128 KiB; 0 counts as 1.
    pub fn with_buffer_size(mut self, buffer_size: usize) -> Self {
        self.buffer_bytes = buffer_size;
        self
    }

    /// The writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::AsyncWriteExt;
    /// use glommio::io::{BufferedFile, StreamWriterBuilder};
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let mut writer = StreamWriterBuilder::new(BufferedFile::create(&path).await?)
    ///     .with_buffer_size(4096)
    ///     .with_sync_on_close_disabled(true) // a crash of the machine may lose the data
    ///     .build();
    /// writer.write_all(&[7; 10_000]).await?;
    /// writer.close().await?;
    /// assert_eq!(std::fs::metadata(&path)?.len(), 10_000);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn build(self) -> StreamWriter {
        StreamWriter {
            file: Some(self.file),
            syncs_on_close: self.syncs_on_close,
            buffer_bytes: self.buffer_bytes.clamp(1, MAX_READ_BYTES),
            buffer: Vec::new(),
            spare: Vec::new(),
            next: 0,
            writing: None,
            error: None,
            stat: None,
            syncing: None,
            closing: None,
        }
    }
}

/// Writes a [`BufferedFile`], through a buffer.
///
/// Bytes are collected and written when there is a buffer full of them; one such write is under way
/// while the next buffer fills. An error of it shows up in a later operation, and in all after it.
///
/// [`close`](AsyncWrite::poll_close) writes what is left, brings the data to the device and closes
/// the file. A writer that is dropped without it loses what was not flushed.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncWriteExt;
/// use glommio::io::{BufferedFile, StreamWriterBuilder};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let file = BufferedFile::create(&path).await?;
/// let mut writer = StreamWriterBuilder::new(file).build();
/// writer.write_all(b"hello").await?;
/// writer.close().await?;
/// assert_eq!(std::fs::read(&path)?, b"hello");
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub struct StreamWriter {
    /// Until it is closed.
    file: Option<BufferedFile>,
    syncs_on_close: bool,
    buffer_bytes: usize,
    /// What was accepted and is not being written.
    buffer: Vec<u8>,
    /// The memory of the last write.
    spare: Vec<u8>,
    /// Where in the file the buffer begins.
    next: u64,
    writing: Option<Writing>,
    /// The first one. Everything fails from then on.
    error: Option<GlommioError<()>>,
    /// Of a seek from the end.
    stat: Option<StatHandle>,
    /// Of a close.
    syncing: Option<OpHandle<Sync>>,
    closing: Option<Closing>,
}

/// A buffer that is written.
struct Writing {
    position: u64,
    /// As much of it is written.
    written: usize,
    write: OpHandle<Write>,
}

impl StreamWriter {
    /// # Errors
    ///
    /// That of an earlier operation, or that the writer is closed.
    fn check(&self) -> io::Result<&BufferedFile> {
        match (&self.error, &self.file) {
            (Some(error), Some(_)) => Err(again_enhanced(error).into()),
            (_, None) => Err(is_closed()),
            (None, Some(file)) => Ok(file),
        }
    }

    fn fail(&mut self, error: io::Error, op: &'static str) -> io::Error {
        let error = match &self.file {
            Some(file) => file.file().error(error, op),
            None => error.into(),
        };
        let told = again_enhanced(&error);
        self.error = Some(error);
        told.into()
    }

    /// Starts to write the buffer. Nothing else is being written.
    fn start(&mut self) -> io::Result<()> {
        self.check()?;
        let bytes = Bytes::Vec(mem::replace(&mut self.buffer, mem::take(&mut self.spare)));
        let position = self.next;
        let len = bytes.as_slice().len();
        self.next += len as u64;
        self.write(bytes, 0, position)
    }

    fn write(&mut self, bytes: Bytes, written: usize, position: u64) -> io::Result<()> {
        let file = self.check()?;
        match file.start_write(bytes, written, position + written as u64) {
            Ok(write) => {
                self.writing = Some(Writing {
                    position,
                    written,
                    write,
                });
                Ok(())
            }
            Err(error) => Err(self.fail(error, "Writing")),
        }
    }

    /// Waits until nothing is being written.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(writing) = &mut self.writing {
            let ended = ready!(Pin::new(&mut writing.write).poll(cx));
            let (position, written) = (writing.position, writing.written);
            self.writing = None;
            let ended = ended.and_then(|it| Ok((it.count?, it.bytes)));
            let (count, bytes) = match ended {
                Ok((0, _)) => {
                    let error = io::Error::new(
                        io::ErrorKind::WriteZero,
                        "the file took no more bytes: the device may be full",
                    );
                    return Poll::Ready(Err(self.fail(error, "Writing")));
                }
                Ok(ended) => ended,
                Err(error) => return Poll::Ready(Err(self.fail(error, "Writing"))),
            };
            let written = written + count;
            if written < bytes.as_slice().len() {
                self.write(bytes, written, position)?;
            } else if let Bytes::Vec(mut memory) = bytes {
                memory.clear();
                self.spare = memory;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until all that was accepted is written.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_written(cx))?;
            if self.buffer.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.start()?;
        }
    }

    /// Writes, syncs and closes. After an error the rest is left out.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            self.check()?;
            ready!(self.poll_flushed(cx))?;
            if self.syncs_on_close {
                if self.syncing.is_none() {
                    let syncing = self.check()?.file().start_sync(true);
                    self.syncing = Some(syncing.map_err(|error| self.fail(error, "Syncing"))?);
                }
                if let Some(syncing) = &mut self.syncing {
                    let synced = ready!(Pin::new(syncing).poll(cx));
                    self.syncing = None;
                    synced.map_err(|error| self.fail(error, "Syncing"))?;
                }
            }
            let Some(file) = self.file.take() else {
                return Poll::Ready(Err(is_closed()));
            };
            self.closing = Some(file.start_close());
        }
        let Some(closing) = &mut self.closing else {
            return Poll::Ready(Ok(()));
        };
        let closed = ready!(closing.poll(cx));
        self.closing = None;
        Poll::Ready(closed.map_err(io::Error::from))
    }
}

impl AsyncWrite for StreamWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        budget::counted(cx, |cx| {
            this.check()?;
            // One that was begun and given up: it starts anew with what comes now.
            this.syncing = None;
            if buf.is_empty() {
                return Poll::Ready(Ok(0));
            }
            if this.buffer.len() == this.buffer_bytes {
                ready!(this.poll_written(cx))?;
                this.start()?;
            }
            if this.buffer.capacity() == 0 {
                this.buffer.reserve_exact(this.buffer_bytes);
            }
            let count = buf.len().min(this.buffer_bytes - this.buffer.len());
            this.buffer.extend_from_slice(&buf[..count]);
            if this.buffer.len() == this.buffer_bytes && this.writing.is_none() {
                this.start()?;
            }
            Poll::Ready(Ok(count))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        budget::counted(cx, |cx| {
            this.check()?;
            ready!(this.poll_flushed(cx))?;
            Poll::Ready(Ok(()))
        })
    }

    /// A second close is `Ok`.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.file.is_none() && this.closing.is_none() {
            return budget::poll_consume(cx).map(Ok);
        }
        let closed = ready!(this.poll_closed(cx));
        if closed.is_err() {
            // Closed in the background: nothing can be done with it any more.
            this.writing = None;
            this.file = None;
        }
        Poll::Ready(closed)
    }
}

impl AsyncSeek for StreamWriter {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pos: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        budget::counted(cx, |cx| {
            this.check()?;
            ready!(this.poll_flushed(cx))?;
            let target = match pos {
                SeekFrom::Start(target) => {
                    relative(0, i64::try_from(target).map_err(|_| invalid_seek())?)
                }
                SeekFrom::Current(offset) => relative(this.next, offset),
                SeekFrom::End(offset) => {
                    let Some(file) = &this.file else {
                        return Poll::Ready(Err(is_closed()));
                    };
                    let size = ready!(file.file().poll_size(&mut this.stat, cx))?;
                    relative(size, offset)
                }
            };
            this.stat = None;
            this.next = target?;
            Poll::Ready(Ok(this.next))
        })
    }
}

impl_debug! { StreamWriter, it: file, next, buffered_bytes: it.buffer.len(); .. }
