//! What the process is fed with.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{fmt, io, mem};

use futures_io::{AsyncBufRead, AsyncRead};

use crate::io::submit::Submitter;
use crate::memory::DmaBuffer;
use crate::reactor::op::{CURRENT_POSITION, Read, Route};
use crate::reactor::{OpHandle, budget};
use crate::stats::Counted;

const BUFFER_BYTES: usize = 128;

/// The standard input of the process: a terminal, a pipe or a file.
///
/// Each value has a buffer of its own, of 128 bytes, with which what is in it is lost; use one. A
/// read that has begun when the value is dropped may take input with it. The descriptor is never
/// closed.
///
/// # Examples
///
/// ```no_run
/// use futures_lite::{AsyncBufReadExt, StreamExt};
///
/// # glommio::LocalExecutor::default().run(async {
/// let mut lines = glommio::io::stdin().lines();
/// while let Some(line) = lines.next().await {
///     println!("{}", line?.to_uppercase());
/// }
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub struct Stdin {
    submitter: Submitter,
    /// Away while it is read into.
    buffer: Option<DmaBuffer>,
    unread: (usize, usize),
    /// As in a [`StreamReader`](super::StreamReader).
    may_repeat: bool,
    reading: Option<OpHandle<Read<io::Stdin>>>,
}

/// The standard input of the process.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Examples
///
/// ```no_run
/// use futures_lite::AsyncReadExt;
///
/// # glommio::LocalExecutor::default().run(async {
/// let mut text = String::new();
/// glommio::io::stdin().read_to_string(&mut text).await?;
/// println!("{} bytes", text.len());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn stdin() -> Stdin {
    Stdin {
        submitter: Submitter::current(),
        buffer: None,
        unread: (0, 0),
        may_repeat: false,
        reading: None,
    }
}

impl Stdin {
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reading.is_none() {
            let read = Read {
                fd: io::stdin(),
                buffer: self
                    .buffer
                    .take()
                    .unwrap_or_else(|| DmaBuffer::of_any_size(BUFFER_BYTES)),
                start: 0,
                position: CURRENT_POSITION,
                route: Route::default(),
            };
            let reading = self.submitter.start_counted(read, Counted::BufferedRead)?;
            self.reading = Some(reading);
        }
        if let Some(reading) = &mut self.reading {
            let read = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            let (buffer, count) = read?;
            self.buffer = Some(buffer);
            self.unread = (0, count);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for Stdin {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        let is_repeated = mem::take(&mut this.may_repeat);
        if !is_repeated {
            ready!(budget::poll_leave(cx));
        }
        if this.unread.0 == this.unread.1 {
            this.unread = (0, 0);
            ready!(this.poll_fill(cx))?;
        }
        if !is_repeated {
            budget::spend();
            this.may_repeat = true;
        }
        let (start, end) = this.unread;
        let bytes = this.buffer.as_ref().map_or(&[][..], DmaBuffer::as_bytes);
        Poll::Ready(Ok(bytes.get(start..end).unwrap_or(&[])))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.get_mut();
        this.may_repeat = false;
        let (start, end) = this.unread;
        this.unread.0 = start.saturating_add(amt).min(end);
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut count = 0;
        if !into.is_empty() {
            let unread = ready!(self.as_mut().poll_fill_buf(cx))?;
            count = unread.len().min(into.len());
            into[..count].copy_from_slice(&unread[..count]);
            self.consume(count);
        }
        Poll::Ready(Ok(count))
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").finish_non_exhaustive()
    }
}
