//! What the process is fed with.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncBufRead, AsyncRead};

use super::unread::{Buffered, Unread, reads_by_buffer};
use crate::io::submit::Submitter;
use crate::memory::DmaBuffer;
use crate::reactor::OpHandle;
use crate::reactor::op::{CURRENT_POSITION, Read};
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
    unread: Unread,
    reading: Option<OpHandle<Read<io::Stdin>>>,
}

/// The standard input of the process.
///
/// # Panics
///
/// Panics outside an executor.
pub fn stdin() -> Stdin {
    Stdin {
        submitter: Submitter::current(),
        unread: Unread::default(),
        reading: None,
    }
}

impl Buffered for Stdin {
    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    fn is_at_end(&self) -> bool {
        false
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reading.is_none() {
            self.unread.range = (0, 0);
            let buffer = self.unread.buffer.take();
            let read = Read {
                fd: io::stdin(),
                buffer: buffer.unwrap_or_else(|| DmaBuffer::of_any_size(BUFFER_BYTES)),
                start: 0,
                position: CURRENT_POSITION,
                is_registered: false,
            };
            let reading = self.submitter.start_counted(read, Counted::BufferedRead)?;
            self.reading = Some(reading);
        }
        if let Some(reading) = &mut self.reading {
            let read = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            let (buffer, count) = read?;
            self.unread.buffer = Some(buffer);
            self.unread.range = (0, count?);
        }
        Poll::Ready(Ok(()))
    }
}

reads_by_buffer!(Stdin);

impl_debug! { Stdin, _it: ; .. }
