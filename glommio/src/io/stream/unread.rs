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
    if !is_repeated {
        ready!(budget::poll_leave(cx));
    }
    if reader.unread().is_empty() && !reader.is_at_end() {
        if is_repeated {
            // The end was shown. What has come since, and is not at hand, is for the next call.
            if let Poll::Ready(filled) = budget::unlimited(|| reader.poll_fill(cx)) {
                filled?;
            }
        } else {
            ready!(reader.poll_fill(cx))?;
        }
    }
    let unread = reader.unread();
    if !is_repeated {
        budget::spend();
        unread.may_repeat = true;
    }
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
    let mut count = 0;
    if !into.is_empty() {
        let unread = ready!(poll_fill_buf(reader, cx))?;
        count = unread.len().min(into.len());
        into[..count].copy_from_slice(&unread[..count]);
        reader.unread().consume(count);
    }
    Poll::Ready(Ok(count))
}
