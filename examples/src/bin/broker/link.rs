//! A connection that is read and written at once: frames that come in, and an outbox.

#![allow(dead_code, reason = "the load generator needs a part of it")]

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use futures_lite::{AsyncRead, AsyncWrite};
use glommio::net::TcpStream;

use crate::protocol::{LENGTH_BYTES, frame_length};

/// A stream that one future reads and another one writes.
///
/// The traits borrow the stream mutably; here nothing is borrowed during a wait.
#[derive(Debug)]
pub struct Duplex(RefCell<TcpStream>);

impl Duplex {
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
    pub async fn close(&self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_close(cx)).await
    }
}

/// Bytes that were received, cut into frames.
#[derive(Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    /// Receives some bytes. False at the end of the stream.
    pub async fn receive(&mut self, link: &Duplex) -> io::Result<bool> {
        if self.bytes.len() - self.end < READ_BYTES_MIN {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.bytes.len() - self.end < READ_BYTES_MIN {
                self.bytes.resize(self.end + READ_BYTES, 0);
            }
        }
        let free = &mut self.bytes[self.end..];
        let count = poll_fn(|cx| link.poll_read(cx, free)).await?;
        self.end += count;
        Ok(count > 0)
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
    pub fn len(&self) -> usize {
        self.waiting.borrow().len() + self.sending.borrow().len() - self.sent.get()
    }

    /// Sends some bytes; waits for them if there are none.
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
        poll_fn(|cx| match self.len() < bytes {
            true => Poll::Ready(()),
            false => wait(&self.reader, cx),
        })
        .await
    }

    /// Sends what there is.
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
