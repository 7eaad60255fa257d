//! One end of a connection: frames out in batches, frames in, timeouts on both.
//!
//! Sending appends to a buffer and wakes the writer, so that everything sent in one turn of the
//! executor leaves in one write. A peer that does not read fills the buffer; above
//! [`OUTBOX_BYTES_MAX`] this end stops reading (and, at the client, publishing) until it drains.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use futures_lite::io::{ReadHalf, WriteHalf, split};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::TcpStream;
use glommio::{Task, spawn_local};

use super::protocol::{Frame, Inbox};
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::measure::nanos;

/// The sending side, shared by the tasks of a connection.
#[derive(Default)]
pub(crate) struct Link {
    outbox: RefCell<Vec<u8>>,
    is_closed: Cell<bool>,
    writer: Cell<Option<Waker>>,
    waits_for_room: Cell<Option<Waker>>,
}

impl Link {
    /// Sets a connection up and starts its writer.
    pub(crate) fn start(
        stream: TcpStream,
        checker: &Rc<Checker>,
    ) -> glommio::Result<Connection, ()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let (reads, writes) = split(stream);
        let link = Rc::new(Link::default());
        let writer = spawn_local(Rc::clone(&link).write_out(writes, Rc::clone(checker)));
        let receiver = Receiver {
            stream: reads,
            inbox: Inbox::new(),
            checker: Rc::clone(checker),
        };
        Ok(Connection {
            link,
            receiver,
            writer,
        })
    }

    pub(crate) fn send(&self, frame: &Frame<'_>) {
        frame.encode(&mut self.outbox.borrow_mut());
        wake(&self.writer);
    }

    /// Ends the sending side once everything sent so far has left.
    pub(crate) fn close(&self) {
        self.is_closed.set(true);
        wake(&self.writer);
    }

    /// Waits until there is not too much to write. One task at a time.
    pub(crate) async fn room(&self) {
        poll_fn(|cx| {
            if self.outbox.borrow().len() <= OUTBOX_BYTES_MAX || self.is_closed.get() {
                return Poll::Ready(());
            }
            self.waits_for_room.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    async fn write_out(
        self: Rc<Self>,
        mut stream: WriteHalf<TcpStream>,
        checker: Rc<Checker>,
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        while self.next_batch(&mut batch).await {
            wake(&self.waits_for_room);
            let mut written = 0;
            while written < batch.len() {
                let began = Instant::now();
                match stream.write(&batch[written..]).await {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(bytes) => written += bytes,
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        judge_timeout(&checker, began, WRITE_TIMEOUT);
                    }
                    Err(error) => {
                        self.close();
                        wake(&self.waits_for_room);
                        return Err(error);
                    }
                }
            }
        }
        stream.close().await
    }

    /// Swaps what there is to write into `batch`. `false`: closed, and nothing is left.
    async fn next_batch(&self, batch: &mut Vec<u8>) -> bool {
        batch.clear();
        poll_fn(|cx| {
            let mut outbox = self.outbox.borrow_mut();
            if !outbox.is_empty() {
                std::mem::swap(&mut *outbox, batch);
                return Poll::Ready(true);
            }
            if self.is_closed.get() {
                return Poll::Ready(false);
            }
            self.writer.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// What a connection is made of.
pub(crate) struct Connection {
    pub(crate) link: Rc<Link>,
    pub(crate) receiver: Receiver,
    /// Ends when everything sent before [`Link::close`] has left.
    pub(crate) writer: Task<io::Result<()>>,
}

/// The receiving side.
pub(crate) struct Receiver {
    stream: ReadHalf<TcpStream>,
    inbox: Inbox,
    checker: Rc<Checker>,
}

impl Receiver {
    /// Hands every frame to `handle` until the peer closes, and waits for room in `link` in
    /// between.
    pub(crate) async fn receive(
        &mut self,
        link: &Link,
        mut handle: impl FnMut(Frame<'_>),
    ) -> io::Result<()> {
        loop {
            link.room().await;
            let began = Instant::now();
            match self.stream.read(self.inbox.space()).await {
                Ok(0) => return Ok(()),
                Ok(bytes) => self.inbox.received(bytes),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    // Silence is no failure: the other end may have nothing due for seconds.
                    judge_timeout(&self.checker, began, READ_TIMEOUT);
                }
                Err(error) => return Err(error),
            }
            while let Some(frame) = self.inbox.next().map_err(io::Error::other)? {
                handle(frame);
            }
        }
    }
}

/// Enters a timeout of a socket: it may not come before its time.
pub(crate) fn judge_timeout(checker: &Checker, began: Instant, timeout: Duration) {
    let early = nanos(timeout.saturating_sub(began.elapsed()));
    checker
        .station
        .ledger
        .check(Invariant::SocketTimeouts, early, || {
            format!("a timeout of {timeout:?} came {early} ns early")
        });
}

/// Enters the end of a connection, which no run asks to be anything but orderly.
pub(crate) fn judge_end(checker: &Checker, what: &str, ended: io::Result<()>) {
    checker
        .station
        .ledger
        .holds(Invariant::Deliveries, ended.is_ok(), || {
            format!("{what}: {ended:?}")
        });
}

fn wake(slot: &Cell<Option<Waker>>) {
    if let Some(waker) = slot.take() {
        waker.wake();
    }
}

/// Above this an end stops reading; a window of messages adds at most its own size to it.
const OUTBOX_BYTES_MAX: usize = 1 << 20;

const READ_TIMEOUT: Duration = Duration::from_millis(1_500);
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);
