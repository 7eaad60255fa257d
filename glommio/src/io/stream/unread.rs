//! The buffer of a reader: what was read and not handed on yet.

use std::task::{Context, Poll, ready};
use std::{io, mem};

use crate::memory::DmaBuffer;
use crate::reactor::budget;

/// A buffer, and what in it is to be read.
#[derive(Default)]
pub(super) struct Unread {
    /// Away while it is read into.
    pub(super) buffer: Option<DmaBuffer>,
    /// From where to where in the buffer there are bytes to be read. Those before are still there.
    pub(super) range: (usize, usize),
    /// The bytes were shown just now. `fill_buf` of the traits asks twice, and panics if the second
    /// call is pending: so that is not refused.
    may_repeat: bool,
}

/// A reader with such a buffer.
pub(super) trait Buffered {
    fn unread(&mut self) -> &mut Unread;

    /// Whether no more is to be read, whatever there is.
    fn is_at_end(&self) -> bool;

    /// Fills the empty buffer.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl Unread {
    pub(super) fn is_empty(&self) -> bool {
        self.range.0 == self.range.1
    }

    pub(super) fn consume(&mut self, amt: usize) {
        self.may_repeat = false;
        let (start, end) = self.range;
        self.range.0 = start.saturating_add(amt).min(end);
    }
}

/// Shows what is in the buffer, which is filled if nothing is.
pub(super) fn poll_fill_buf<'a>(
    reader: &'a mut impl Buffered,
    cx: &mut Context<'_>,
) -> Poll<io::Result<&'a [u8]>> {
    let is_repeated = mem::take(&mut reader.unread().may_repeat);
    let mut fill = |cx: &mut Context<'_>| {
        if reader.unread().is_empty() && !reader.is_at_end() {
            reader.poll_fill(cx)
        } else {
            Poll::Ready(Ok(()))
        }
    };
    if !is_repeated {
        ready!(budget::counted(cx, fill))?;
    } else if let Poll::Ready(filled) = budget::unlimited(|| fill(cx)) {
        // The end was shown. What has come since, and is not at hand, is for the next call.
        filled?;
    }
    let unread = reader.unread();
    unread.may_repeat = !is_repeated;
    let (start, end) = unread.range;
    let bytes = unread.buffer.as_ref().map_or(&[][..], DmaBuffer::as_bytes);
    Poll::Ready(Ok(bytes.get(start..end).unwrap_or(&[])))
}

/// Copies what is in the buffer, which is filled if nothing is.
pub(super) fn poll_read(
    reader: &mut impl Buffered,
    cx: &mut Context<'_>,
    into: &mut [u8],
) -> Poll<io::Result<usize>> {
    if into.is_empty() {
        return budget::poll_consume(cx).map(|()| Ok(0));
    }
    let unread = ready!(poll_fill_buf(reader, cx))?;
    let count = unread.len().min(into.len());
    into[..count].copy_from_slice(&unread[..count]);
    reader.unread().consume(count);
    Poll::Ready(Ok(count))
}

/// The traits of readers, of a type that is [`Buffered`].
macro_rules! reads_by_buffer {
    ($reader:ty) => {
        impl AsyncBufRead for $reader {
            fn poll_fill_buf(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<&[u8]>> {
                $crate::io::stream::unread::poll_fill_buf(self.get_mut(), cx)
            }

            fn consume(self: Pin<&mut Self>, amt: usize) {
                self.get_mut().unread.consume(amt);
            }
        }

        impl AsyncRead for $reader {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                into: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                $crate::io::stream::unread::poll_read(self.get_mut(), cx, into)
            }
        }
    };
}
pub(super) use reads_by_buffer;
