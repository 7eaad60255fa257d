//! How files reach the reactor that they belong to.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::time::Instant;

use crate::executor::current as executor;
use crate::memory::DmaBuffer;
use crate::reactor::op::{Close, MAX_TRANSFER_BYTES, Op};
use crate::reactor::{OpHandle, Reactor, current, executor_is_gone};
use crate::ring::Feature;
use crate::stats::Counted;

/// The reactor of the executor that a file was opened in.
#[derive(Clone, Debug)]
pub(super) struct Submitter(Weak<Reactor>);

impl Submitter {
    /// That of the executor on this thread.
    ///
    /// # Panics
    ///
    /// Panics if none is running.
    pub(super) fn current() -> Self {
        Submitter(current::current())
    }

    /// # Errors
    ///
    /// `NotConnected` if the executor was dropped.
    pub(super) fn reactor(&self) -> io::Result<Rc<Reactor>> {
        self.0.upgrade().ok_or_else(executor_is_gone)
    }

    /// Starts `op`.
    ///
    /// # Errors
    ///
    /// As [`reactor`](Self::reactor).
    pub(super) fn start<O: Op>(&self, op: O) -> io::Result<OpHandle<O>> {
        Ok(self.reactor()?.submit(op))
    }

    /// As [`start`](Self::start), for an operation that the statistics count.
    pub(super) fn start_counted<O: Op>(&self, op: O, counted: Counted) -> io::Result<OpHandle<O>> {
        let reactor = self.reactor()?;
        let queue = executor::queue_at(&reactor);
        Ok(reactor.submit_counted(op, counted, queue))
    }

    /// Counts what was done without the ring.
    pub(super) fn count(&self, counted: Counted, bytes: usize) {
        if let Some(reactor) = self.0.upgrade() {
            count(&reactor, counted, bytes, None);
        }
    }

    /// Whether the ring knows the memory of `buffer`, which is for direct I/O.
    pub(super) fn is_registered(&self, buffer: &DmaBuffer) -> bool {
        let reactor = self.0.upgrade();
        reactor.is_some_and(|reactor| reactor.is_registered(buffer))
    }

    pub(super) fn has(&self, feature: Feature) -> bool {
        self.0.upgrade().is_some_and(|reactor| reactor.has(feature))
    }

    /// A buffer of the executor, or of the ordinary allocator if that is gone.
    pub(super) fn allocate(&self, size: usize) -> DmaBuffer {
        match self.0.upgrade() {
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
        match size <= MAX_TRANSFER_BYTES {
            true => Ok(self.allocate(size)),
            false => DmaBuffer::try_of_any_size(size),
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

    /// Closes `fd` in the background, or on the spot where the executor will not come to it.
    pub(super) fn close_later(&self, fd: OwnedFd) {
        close_through(self.0.upgrade(), fd);
    }
}

/// Counts what was done without the ring; `since` is when a read began that is to be timed.
pub(super) fn count(reactor: &Rc<Reactor>, counted: Counted, bytes: usize, since: Option<Instant>) {
    let queue = executor::queue_at(reactor);
    reactor.count(counted, bytes as u64, queue, since);
}

/// As [`Submitter::close_later`], by the executor of this thread.
pub(super) fn close_later_here(fd: OwnedFd) {
    close_through(current::try_current(), fd);
}

fn close_through(reactor: Option<Rc<Reactor>>, fd: OwnedFd) {
    match reactor {
        // A forked process cannot use the ring of its parent.
        Some(reactor) if !reactor.is_inherited() => drop(reactor.submit(Close { fd })),
        _ => drop(fd),
    }
}
