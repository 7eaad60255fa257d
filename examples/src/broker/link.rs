//! A connection that is read and written at once: frames that come in, and an outbox.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use futures_lite::{AsyncRead, AsyncWrite};
use glommio::net::TcpStream;

use super::frames::{LENGTH_BYTES, frame_length};

/// A stream that one future reads and another one writes.
///
/// The traits borrow the stream mutably; here nothing is borrowed during a wait.
#[derive(Debug)]
pub struct Duplex(RefCell<TcpStream>);

impl Duplex {
    /// For both.
    pub fn new(stream: TcpStream) -> Duplex {
        Duplex(RefCell::new(stream))
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, buffer)
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)
    }

    /// Sends the end.
    ///
    /// # Errors
    ///
    /// Those of the stream.
    pub async fn close(&self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_close(cx)).await
    }
}

/// Bytes that were received, cut into frames.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Receives some bytes. False at the end of the stream.
    ///
    /// # Errors
    ///
    /// Those of the stream; what has come stays.
    pub async fn receive(&mut self, link: &Duplex) -> io::Result<bool> {
        let space = self.space();
        let count = poll_fn(|cx| link.poll_read(cx, space)).await?;
        self.end += count;
        Ok(count > 0)
    }

    /// Where the next bytes go.
    fn space(&mut self) -> &mut [u8] {
        if self.bytes.len() - self.end < READ_BYTES_MIN {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.bytes.len() - self.end < READ_BYTES_MIN {
                self.bytes.resize(self.end + READ_BYTES, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// The bytes that have come and were not taken.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Takes `count` of the unread bytes.
    pub fn take(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// The next frame, without its length, if all of it has come.
    ///
    /// # Errors
    ///
    /// If it is too long.
    pub fn next_frame(&mut self) -> io::Result<Option<&[u8]>> {
        let rest = self.unread();
        match frame_length(rest)? {
            Some(length) if rest.len() >= LENGTH_BYTES + length => {
                let first = self.start + LENGTH_BYTES;
                self.start = first + length;
                Ok(Some(&self.bytes[first..self.start]))
            }
            _ => Ok(None),
        }
    }
}

/// Bytes to be sent. Tasks append, and never wait; one task sends.
///
/// What was appended between two sends goes out in one system call. How many bytes have been sent
/// is kept here and not in a future, so that the sending future can be dropped and another one goes
/// on.
#[derive(Default)]
pub struct Outbox {
    waiting: RefCell<Vec<u8>>,
    sending: RefCell<Vec<u8>>,
    sent: Cell<usize>,
    sender: Cell<Option<Waker>>,
    /// Waits for the outbox to become shorter.
    reader: Cell<Option<Waker>>,
}

impl Outbox {
    /// Appends by `fill`, and wakes the sender.
    pub fn push(&self, fill: impl FnOnce(&mut Vec<u8>)) {
        fill(&mut self.waiting.borrow_mut());
        wake(&self.sender);
    }

    /// How many bytes have not been sent.
    #[expect(clippy::len_without_is_empty, reason = "it is no collection")]
    pub fn len(&self) -> usize {
        self.waiting.borrow().len() + self.sending.borrow().len() - self.sent.get()
    }

    /// Sends some bytes; waits for them if there are none.
    ///
    /// # Errors
    ///
    /// Those of the stream; what was not sent stays.
    pub async fn send(&self, link: &Duplex) -> io::Result<()> {
        poll_fn(|cx| self.poll_send(link, cx)).await
    }

    fn poll_send(&self, link: &Duplex, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut sending = self.sending.borrow_mut();
        if self.sent.get() == sending.len() {
            self.sent.set(0);
            sending.clear();
            std::mem::swap(&mut *sending, &mut *self.waiting.borrow_mut());
            if sending.is_empty() {
                return wait(&self.sender, cx);
            }
        }
        let count = ready!(link.poll_write(cx, &sending[self.sent.get()..]))?;
        self.sent.set(self.sent.get() + count);
        wake(&self.reader);
        Poll::Ready(Ok(()))
    }

    /// Waits until there are fewer than `bytes` to be sent. One task waits at a time.
    pub async fn fewer_than(&self, bytes: usize) {
        poll_fn(|cx| {
            if self.len() < bytes {
                Poll::Ready(())
            } else {
                wait(&self.reader, cx)
            }
        })
        .await
    }

    /// Sends what there is.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn flush(&self, link: &Duplex) -> io::Result<()> {
        while self.len() > 0 {
            self.send(link).await?;
        }
        Ok(())
    }
}

fn wait<T>(task: &Cell<Option<Waker>>, cx: &Context<'_>) -> Poll<T> {
    task.set(Some(cx.waker().clone()));
    Poll::Pending
}

fn wake(task: &Cell<Option<Waker>>) {
    if let Some(task) = task.take() {
        task.wake();
    }
}

const READ_BYTES: usize = 64 << 10;
const READ_BYTES_MIN: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::super::frames::frame;
    use super::*;

    fn payloads() -> Vec<Vec<u8>> {
        let lengths = [0, 1, 7, 300, 2];
        lengths.map(|length| vec![length as u8; length]).into()
    }

    fn encoded() -> Vec<u8> {
        let mut bytes = Vec::new();
        for payload in payloads() {
            frame(&mut bytes, |out| out.extend_from_slice(&payload));
        }
        bytes
    }

    fn receive(inbox: &mut Inbox, bytes: &[u8]) {
        inbox.space()[..bytes.len()].copy_from_slice(bytes);
        inbox.end += bytes.len();
    }

    /// Whatever pieces the bytes come in, the same frames come out.
    #[test]
    fn frames_survive_any_cut() {
        let bytes = encoded();
        for piece in 1..=bytes.len() {
            let mut inbox = Inbox::default();
            let mut found = Vec::new();
            for chunk in bytes.chunks(piece) {
                receive(&mut inbox, chunk);
                while let Some(frame) = inbox.next_frame().expect("it is what was encoded") {
                    found.push(frame.to_vec());
                }
            }
            assert_eq!(found, payloads(), "in pieces of {piece}");
            assert!(inbox.unread().is_empty());
        }
    }
}
