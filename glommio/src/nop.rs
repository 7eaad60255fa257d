//! A trip through the ring that does nothing, to measure what a trip costs.

use std::io;
use std::rc::Weak;

use crate::reactor::{Op, Reactor, current, executor_is_gone};
use crate::ring::{Outcome, Submission};

/// Submits operations that do nothing to the ring of the executor it was made in.
#[derive(Debug)]
pub struct NopSubmitter {
    reactor: Weak<Reactor>,
}

impl NopSubmitter {
    /// A submitter of the running executor.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn new() -> Self {
        NopSubmitter {
            reactor: current::current(),
        }
    }

    /// Submits a no-op and waits for its completion.
    ///
    /// # Errors
    ///
    /// What the kernel gives, or `NotConnected` if the executor is gone.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn run_nop(&self) -> io::Result<()> {
        let reactor = self.reactor.upgrade().ok_or_else(executor_is_gone)?;
        let nop = reactor.submit(Nop);
        drop(reactor);
        nop.await
    }
}

/// Does nothing: a trip through the ring.
struct Nop;

impl Op for Nop {
    type Output = ();

    const WAITS_FOR_DEVICE: bool = false;

    fn submission(&mut self) -> Submission<'_> {
        Submission::nop()
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Default for NopSubmitter {
    fn default() -> Self {
        Self::new()
    }
}
