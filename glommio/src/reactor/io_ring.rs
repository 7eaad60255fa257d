//! The ring of one executor, and the I/O memory that it knows.
//!
//! The I/O memory is made known to the ring, so that direct I/O need not look up and pin its pages
//! each time. That is done at the first direct I/O from this memory: it takes the kernel as long as
//! the memory is large, and all of it is resident from then on.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;

use crate::error::GlommioError;
use crate::memory::{Arena, DmaBuffer};
use crate::ring::{Driver, Feature, Ring};

/// See the module.
pub(super) struct IoRing {
    ring: Ring,
    registration: Cell<Registration>,
    /// Behind the ring, and so dropped after it: the kernel may know this memory.
    memory: Arena,
}

/// Whether the ring knows the I/O memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Registration {
    #[default]
    Untried,
    Done,
    /// It is not tried again.
    Failed,
}

impl IoRing {
    /// # Errors
    ///
    /// See [`Ring::new`].
    pub(super) fn new(
        depth: usize,
        executors: usize,
        memory_bytes: usize,
        driver: Driver,
    ) -> Result<Self, GlommioError<()>> {
        Ok(IoRing {
            ring: Ring::new(depth, executors, driver)?,
            registration: Cell::default(),
            memory: Arena::new(memory_bytes),
        })
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// A buffer from the I/O memory, or from the ordinary allocator if that is full.
    pub(super) fn allocate(&self, size: usize) -> DmaBuffer {
        self.memory.allocate(size)
    }

    /// Whether the ring knows the memory of `buffer`, which is to be used for direct I/O. Makes it
    /// known if it is the first.
    pub(super) fn is_registered(&self, buffer: &DmaBuffer) -> bool {
        match self.registration.get() {
            Registration::Failed => false,
            Registration::Done => self.memory.owns(buffer),
            Registration::Untried => self.memory.owns(buffer) && self.register(),
        }
    }

    fn register(&self) -> bool {
        // Before the log, whose subscriber may do I/O and come back here.
        self.registration.set(Registration::Failed);
        if !self.ring.features().has(Feature::Registered) {
            return false;
        }
        match self.register_memory() {
            Ok(()) => {
                self.registration.set(Registration::Done);
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

    fn register_memory(&self) -> io::Result<()> {
        let Some(memory) = self.memory.extent() else {
            return Ok(());
        };
        // SAFETY: the memory stays mapped as long as the arena, a field behind the ring, which is
        // dropped after it.
        unsafe { self.ring.register(memory) }
    }
}

#[cfg(test)]
impl IoRing {
    pub(super) fn registration(&self) -> String {
        format!("{:?}", self.registration.get())
    }
}
