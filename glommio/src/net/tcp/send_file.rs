//! Sending a file.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;

use super::TcpStream;
use crate::net::{Result, RxBuf};
use crate::reactor::op::FillPipe;
use crate::reactor::{budget, current, executor_is_gone};
use crate::sys::file;
use crate::sys::splice::{Nonblocking, Pipe, SpliceSource};

/// What is on its way at once.
const PIPE_BYTES: usize = 256 << 10;

impl<B: RxBuf> TcpStream<B> {
    /// Sends `count` bytes of `file` from byte `start` on, and returns how many were sent: fewer if
    /// the file ends before.
    ///
    /// The data goes from the file to the connection through a pipe, within the kernel. That saves
    /// copies, but each 256 KiB need a thread that waits for the device in place of this one: a worker
    /// of the kernel, or with epoll one of the executor's. Reading and writing is often as fast;
    /// measure it.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if `start` is not a multiple of the file's
    /// [alignment](SpliceSource::splice_offset_alignment); `EMFILE` if there are no two descriptors
    /// for a pipe; else what `splice(2)` and `send(2)` give, and `TimedOut` after the
    /// [time](Self::set_write_timeout) that a write may wait. How much was sent is not known then.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, a part was sent, and it is not known how much.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::AsyncReadExt;
    /// use glommio::LocalExecutor;
    /// use glommio::io::BufferedFile;
    /// use glommio::net::{TcpListener, TcpStream};
    ///
    /// # LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// std::fs::write(&path, "some content")?;
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let mut client = TcpStream::connect(listener.local_addr()?).await?;
    /// let mut server = listener.accept().await?;
    ///
    /// let file = BufferedFile::open(&path).await?;
    /// assert_eq!(server.send_file(&file, 5, 100).await?, 7);
    /// drop(server);
    /// let mut received = String::new();
    /// client.read_to_string(&mut received).await?;
    /// assert_eq!(received, "content");
    /// # file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn send_file<F: SpliceSource>(
        &mut self,
        file: &F,
        start: u64,
        count: usize,
    ) -> Result<usize> {
        budget::consume().await;
        let alignment = file.splice_offset_alignment();
        if !start.is_multiple_of(alignment) {
            let message = format!("the offset of direct I/O must be a multiple of {alignment}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message).into());
        }
        if count == 0 {
            return Ok(0);
        }
        Ok(self.send_aligned(file, start, count, alignment).await?)
    }

    async fn send_aligned<F: SpliceSource>(
        &mut self,
        file: &F,
        offset: u64,
        len: usize,
        alignment: u64,
    ) -> io::Result<usize> {
        let pipe = Pipe::new(PIPE_BYTES)?;
        let _nonblocking = Nonblocking::set(self.as_fd())?;
        // A power of two, as pipes are; and no device has blocks of that size.
        let most = pipe
            .capacity
            .next_multiple_of(alignment as usize)
            .min(1 << 30);
        let mut sent = 0;
        while sent < len {
            let wanted = (len - sent).min(most).next_multiple_of(alignment as usize);
            let position = offset.saturating_add(sent as u64);
            file::offset(position)?;
            let fill = FillPipe {
                file: file.descriptor().into(),
                position,
                pipe: pipe.writer.clone(),
                bytes: wanted as u32,
            };
            let reactor = current::try_current().ok_or_else(executor_is_gone)?;
            let filling = reactor.submit(fill);
            drop(reactor);
            let filled = filling.await?;
            // Direct I/O brings whole blocks; what is not asked for goes with the pipe.
            let mut left = filled.min(len - sent);
            while left > 0 {
                let has_more = sent + left < len;
                let moved = poll_fn(|cx| self.poll_drain(cx, &pipe, left, has_more)).await?;
                left -= moved;
                sent += moved;
            }
            // The file ends there.
            if filled == 0 || !(filled as u64).is_multiple_of(alignment) {
                break;
            }
        }
        Ok(sent)
    }
}
