//! One end of a connection: that of the example `broker`, with timeouts on both reads and writes, and frames of our own.
//!
//! Everything that is sent in one turn of the executor leaves in one write. A peer that does not read
//! fills the outbox; above [`OUTBOX_BYTES_MAX`] this end stops reading (and, at the client, publishing)
//! until it drains.

use examples::broker::frames::{Fields, frame, malformed};
use examples::broker::link::{Duplex, Inbox, Outbox};
use glommio::sync::CancellationToken;

use crate::workload::prelude::*;

/// A connection, shared by the tasks that use it.
pub(crate) struct Link {
    stream: Duplex,
    outbox: Outbox,
    closing: CancellationToken,
    checker: Rc<Checker>,
}

/// Ends when everything sent before [`Link::close`] has left.
pub(crate) type Writer = Task<io::Result<()>>;

impl Link {
    /// Sets a connection up and starts its writer.
    pub(crate) fn start(
        stream: TcpStream,
        checker: &Rc<Checker>,
    ) -> glommio::Result<(Rc<Self>, Writer), ()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let link = Rc::new(Link {
            stream: Duplex::new(stream),
            outbox: Outbox::default(),
            closing: CancellationToken::new(),
            checker: Rc::clone(checker),
        });
        let writer = spawn_local(Rc::clone(&link).write_out());
        Ok((link, writer))
    }

    pub(crate) fn send(&self, frame: &Frame<'_>) {
        self.outbox.push(|out| frame.encode(out));
    }

    /// Ends the sending side once everything sent so far has left.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Waits until there is not too much to write. One task at a time.
    pub(crate) async fn room(&self) {
        let room = self.outbox.fewer_than(OUTBOX_BYTES_MAX + 1);
        or(room, self.closing.cancelled()).await;
    }

    async fn write_out(self: Rc<Self>) -> io::Result<()> {
        loop {
            or(self.outbox.filled(), self.closing.cancelled()).await;
            if self.outbox.len() == 0 {
                return self.stream.close().await;
            }
            let began = clock::now();
            match self.outbox.send(&self.stream).await {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    judge_timeout(&self.checker, began, WRITE_TIMEOUT);
                }
                Err(error) => {
                    self.close();
                    return Err(error);
                }
                Ok(()) => {}
            }
        }
    }

    /// Hands every frame to `handle` until the peer closes, and waits for room in between.
    pub(crate) async fn receive(&self, mut handle: impl FnMut(Frame<'_>)) -> io::Result<()> {
        let mut inbox = Inbox::default();
        loop {
            self.room().await;
            let began = clock::now();
            match inbox.receive(&self.stream).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    // Silence is no failure: the other end may have nothing due for seconds.
                    judge_timeout(&self.checker, began, READ_TIMEOUT);
                }
                Err(error) => return Err(error),
            }
            while let Some(frame) = inbox.next_frame()? {
                handle(Frame::decode(frame)?);
            }
        }
    }
}

/// Enters a timeout of a socket: it may not come before its time.
pub(crate) fn judge_timeout(checker: &Checker, began: Instant, timeout: Duration) {
    let early = nanos(timeout.saturating_sub(clock::since(began)));
    checker.check(Invariant::SocketTimeouts, early, || {
        format!("a timeout of {timeout:?} came {early} ns early")
    });
}

/// Above this an end stops reading; a window of messages adds at most its own size to it.
const OUTBOX_BYTES_MAX: usize = 1 << 20;

const READ_TIMEOUT: Duration = Duration::from_millis(1_500);
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// What client and broker tell each other. A payload takes the rest of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    pub(super) id: u64,
    pub(super) attempt: u8,
    /// The allowance of what is published; by when of the run what is delivered is to be acked.
    pub(super) ns: u64,
    pub(super) payload: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Client: keep this message and deliver it until it is acked within its allowance.
    Publish,
    /// Broker: here it is, for the `attempt`th time.
    Deliver,
    /// Client: done with it.
    Ack,
    /// Client: still at it; the allowance begins anew.
    Extend,
    /// Broker: it was acked, after `attempt` deliveries,
    Settled,
    /// or is given up after them.
    Dead,
}

const KINDS: [Kind; 6] = {
    use Kind::*;
    [Publish, Deliver, Ack, Extend, Settled, Dead]
};

impl<'a> Frame<'a> {
    pub(super) fn new(kind: Kind, id: u64, attempt: u8) -> Self {
        Frame {
            kind,
            id,
            attempt,
            ns: 0,
            payload: &[],
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        frame(out, |out| {
            out.extend([self.kind as u8, self.attempt]);
            out.extend(self.id.to_le_bytes());
            out.extend(self.ns.to_le_bytes());
            out.extend_from_slice(self.payload);
        });
    }

    /// # Errors
    ///
    /// If it is what no peer of ours sends: bytes were lost, doubled or mixed up.
    fn decode(bytes: &'a [u8]) -> io::Result<Frame<'a>> {
        let mut fields = Fields(bytes);
        let kind = KINDS.get(usize::from(fields.byte()?));
        Ok(Frame {
            kind: *kind.ok_or_else(|| malformed("an unknown frame"))?,
            attempt: fields.byte()?,
            id: u64::from_le_bytes(fields.array()?),
            ns: u64::from_le_bytes(fields.array()?),
            payload: fields.rest(),
        })
    }
}
