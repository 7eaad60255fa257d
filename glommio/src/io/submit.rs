//! How files reach the reactor that they belong to.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::Instant;

use crate::executor::current as executor;
use crate::memory::DmaBuffer;
use crate::reactor::op::{Close, MAX_TRANSFER_BYTES, Op, Read};
use crate::reactor::{OpHandle, Reactor, budget, current, executor_is_gone};
use crate::stats::Counted;
use crate::sys::file::offset;
use crate::sys::fork_detect::Origin;

/// The reactor of the executor that a file was opened in, and the process that this is one of.
#[derive(Clone, Debug)]
pub(super) struct Submitter {
    reactor: Weak<Reactor>,
    origin: Origin,
}

impl Submitter {
    /// That of the executor on this thread.
    ///
    /// # Panics
    ///
    /// Panics if none is running.
    pub(super) fn current() -> Self {
        let reactor = current::expect();
        Submitter {
            reactor: Rc::downgrade(&reactor),
            origin: reactor.origin(),
        }
    }

    /// As [`current`](Self::current), for an operation that begins: it counts in the budget of the
    /// task.
    pub(super) async fn begin() -> Self {
        budget::consume().await;
        Self::current()
    }

    /// The process to which it belongs what is done through here: a child that is forked from it
    /// leaves that alone.
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// # Errors
    ///
    /// `NotConnected` if the executor was dropped.
    pub(super) fn reactor(&self) -> io::Result<Rc<Reactor>> {
        self.reactor.upgrade().ok_or_else(executor_is_gone)
    }

    pub(super) fn weak(&self) -> Weak<Reactor> {
        Weak::clone(&self.reactor)
    }

    /// Starts `op`.
    ///
    /// # Errors
    ///
    /// As [`reactor`](Self::reactor).
    pub(super) fn start<O: Op>(&self, op: O) -> io::Result<OpHandle<O>> {
        Ok(self.reactor()?.submit(op))
    }

    /// Does `read`, whose buffer comes back also if that fails. It is lost, and an empty one comes back, if
    /// the executor is dropped meanwhile.
    pub(super) async fn read_into(
        &self,
        read: Read,
        counted: Counted,
    ) -> (DmaBuffer, io::Result<usize>) {
        // As long as the executor is there, starting does not fail.
        let may_start = offset(read.position).and_then(|_| self.reactor());
        if let Err(error) = budget::checked(may_start).await {
            return (read.buffer, Err(error));
        }
        let ended = match self.start_counted(read, counted) {
            Ok(started) => started.await,
            Err(error) => Err(error),
        };
        ended.unwrap_or_else(|error| (DmaBuffer::of_any_size(0), Err(error)))
    }

    /// As [`start`](Self::start), for an operation that the statistics count.
    pub(super) fn start_counted<O: Op>(&self, op: O, counted: Counted) -> io::Result<OpHandle<O>> {
        let reactor = self.reactor()?;
        let queue = executor::queue_at(&reactor);
        Ok(reactor.submit_counted(op, counted, queue))
    }

    /// Counts what was done without the ring.
    pub(super) fn count(&self, counted: Counted, bytes: usize) {
        if let Some(reactor) = self.reactor.upgrade() {
            count(&reactor, counted, bytes, None);
        }
    }

    /// Whether the ring knows the memory of `buffer`, which is for direct I/O.
    pub(super) fn is_registered(&self, buffer: &DmaBuffer) -> bool {
        let reactor = self.reactor.upgrade();
        reactor.is_some_and(|reactor| reactor.is_registered(buffer))
    }

    /// A buffer of the executor, or of the ordinary allocator if that is gone.
    pub(super) fn allocate(&self, size: usize) -> DmaBuffer {
        match self.reactor.upgrade() {
            Some(reactor) => reactor.allocate_dma_buffer(size),
            None => DmaBuffer::of_any_size(size),
        }
    }

    /// As [`allocate`](Self::allocate), for a read that may be larger than there is memory.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn try_allocate(&self, size: usize) -> io::Result<DmaBuffer> {
        if size <= MAX_TRANSFER_BYTES {
            Ok(self.allocate(size))
        } else {
            DmaBuffer::try_of_any_size(size)
        }
    }

    /// Runs `f` on a thread for calls on files. Dropped before a thread has begun it, `f` does not run; later,
    /// it runs to its end.
    pub(super) async fn blocking<R: Send + 'static>(
        &self,
        f: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<R> {
        let call = self.reactor()?.files().ask(f);
        call.await?
    }

    /// Operations on a descriptor were given up, and it is closed when they are over. Where no
    /// executor runs they are over now, as far as the kernel lets go of them.
    pub(super) fn let_go(&self) {
        if !current::is_any()
            && let Some(reactor) = self.reactor.upgrade()
        {
            reactor.cancel_and_reap();
        }
    }
}

/// Counts what was done without the ring; `since` is when a read began that is to be timed.
pub(super) fn count(reactor: &Rc<Reactor>, counted: Counted, bytes: usize, since: Option<Instant>) {
    let queue = executor::queue_at(reactor);
    let mut io_counters = reactor.io_counters();
    io_counters.done_at_once(counted, bytes as u64, queue, since);
}

/// Closes `fd`, of the file at `path`, in the background, by the executor that runs on this thread:
/// any can. On the spot where none does: the one that opened it may never run again.
pub(super) fn close_later(fd: OwnedFd, path: Option<PathBuf>) {
    let close = Close::new(fd, path);
    match current::try_current() {
        // A forked process cannot use the ring of its parent.
        Some(reactor) if !reactor.is_inherited() => drop(reactor.submit(close)),
        _ => drop(close),
    }
}
