//! Makes the I/O memory known to the rings, so that direct I/O need not look up and pin its pages
//! each time. That is done at the first direct I/O from this memory: it takes the kernel as long as
//! the memory is large, and all of it is resident from then on.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;

use super::Reactor;
use crate::memory::DmaBuffer;
use crate::ring::{Feature, Ring};

/// Whether the rings know the I/O memory.
#[derive(Debug, Default)]
pub(super) struct Registration(Cell<State>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Untried,
    Done,
    /// It is not tried again.
    Failed,
}

impl Reactor {
    /// Whether the rings of this reactor know the memory of `buffer`, which is to be used for
    /// direct I/O. Makes it known if it is the first.
    pub(crate) fn is_registered(&self, buffer: &DmaBuffer) -> bool {
        match self.registration.0.get() {
            State::Failed => false,
            State::Done => self.io_memory.owns(buffer),
            State::Untried => self.io_memory.owns(buffer) && self.register(),
        }
    }

    fn register(&self) -> bool {
        // Before the log, whose subscriber may do I/O and come back here.
        self.registration.0.set(State::Failed);
        if !self.has(Feature::Registered) {
            return false;
        }
        let registered = self.register_with(&self.ring).and_then(|()| {
            let second = self
                .polled
                .get()
                .map_or(Ok(()), |it| self.register_with(it));
            // All or nothing: an operation may go through either.
            second.inspect_err(|_| self.ring.unregister())
        });
        match registered {
            Ok(()) => {
                self.registration.0.set(State::Done);
                true
            }
            Err(error) => {
                tracing::debug!(
                    "I/O memory is not registered, which makes direct I/O slower: {error}; where the limit of \
                     locked memory is the reason, `ulimit -l` shows and raises it"
                );
                false
            }
        }
    }

    /// Makes the memory known to `ring`, too, if the first ring knows it.
    pub(super) fn register_too(&self, ring: &Ring) -> io::Result<()> {
        match self.registration.0.get() {
            State::Done => self.register_with(ring),
            State::Untried | State::Failed => Ok(()),
        }
    }

    fn register_with(&self, ring: &Ring) -> io::Result<()> {
        let Some(memory) = self.io_memory.extent() else {
            return Ok(());
        };
        // SAFETY: the memory stays mapped as long as the arena, a field of the reactor behind both
        // rings, which is dropped after them.
        unsafe { ring.register(memory) }
    }
}
