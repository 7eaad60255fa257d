//! The rings of one executor, and the I/O memory that they know.
//!
//! The first ring takes everything; the second one, direct I/O on devices that are polled for
//! completions. It does not exist before there is something for it.
//!
//! The I/O memory is made known to the rings, so that direct I/O need not look up and pin its pages
//! each time. That is done at the first direct I/O from this memory: it takes the kernel as long as
//! the memory is large, and all of it is resident from then on.

#![allow(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::io;

use crate::error::GlommioError;
use crate::memory::{Arena, DmaBuffer};
use crate::ring::{Driver, Feature, Ring};
use crate::sys::block_device::PolledQueue;

/// See the module.
pub(super) struct Rings {
    main: Ring,
    /// `None` inside if the kernel does not give one, which is not asked again.
    polled: OnceCell<Option<Ring>>,
    registration: Cell<Registration>,
    /// Behind the rings, and so dropped after them: the kernel may know this memory.
    memory: Arena,
}

/// Whether the rings know the I/O memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Registration {
    #[default]
    Untried,
    Done,
    /// It is not tried again.
    Failed,
}

impl Rings {
    /// # Errors
    ///
    /// See [`Ring::new`].
    pub(super) fn new(
        depth: usize,
        executors: usize,
        memory_bytes: usize,
        driver: Driver,
    ) -> Result<Self, GlommioError<()>> {
        Ok(Rings {
            main: Ring::new(depth, executors, driver)?,
            polled: OnceCell::new(),
            registration: Cell::default(),
            memory: Arena::new(memory_bytes),
        })
    }

    #[inline]
    pub(super) fn main(&self) -> &Ring {
        &self.main
    }

    /// The second ring, if something has asked for it and the kernel gave it.
    #[inline]
    pub(super) fn polled(&self) -> Option<&Ring> {
        self.polled.get()?.as_ref()
    }

    /// A buffer from the I/O memory, or from the ordinary allocator if that is full.
    pub(super) fn allocate(&self, size: usize) -> DmaBuffer {
        self.memory.allocate(size)
    }

    /// Whether an operation on this device goes to the second ring, which is made now if it was not
    /// yet.
    pub(super) fn polls_for(&self, queue: &PolledQueue) -> bool {
        if !queue.is_usable() || !self.main.features().has(Feature::Polled) {
            return false;
        }
        if let Some(ring) = self.polled.get() {
            return ring.is_some();
        }
        let made = self.make_polled();
        if let Err(error) = &made {
            tracing::debug!("no ring for polled I/O, which goes the ordinary way: {error}");
        }
        // Set after the log, whose subscriber may do I/O and be first.
        let _first = self.polled.set(made.ok());
        self.polled().is_some()
    }

    fn make_polled(&self) -> io::Result<Ring> {
        let ring = Ring::polling(self.main.entries(), self.main.features())?;
        if self.registration.get() == Registration::Done {
            self.register_with(&ring)?;
        }
        tracing::debug!(entries = ring.entries(), "a ring for polled I/O is set up");
        Ok(ring)
    }

    /// Whether the rings know the memory of `buffer`, which is to be used for direct I/O. Makes it
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
        if !self.main.features().has(Feature::Registered) {
            return false;
        }
        let registered = self.register_with(&self.main).and_then(|()| {
            let second = self.polled().map_or(Ok(()), |it| self.register_with(it));
            // All or nothing: an operation may go through either.
            second.inspect_err(|_| self.main.unregister())
        });
        match registered {
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

    fn register_with(&self, ring: &Ring) -> io::Result<()> {
        let Some(memory) = self.memory.extent() else {
            return Ok(());
        };
        // SAFETY: the memory stays mapped as long as the arena, a field behind both rings, which is
        // dropped after them.
        unsafe { ring.register(memory) }
    }
}

#[cfg(test)]
impl Rings {
    pub(super) fn memory(&self) -> &Arena {
        &self.memory
    }

    pub(super) fn registration(&self) -> String {
        format!("{:?}", self.registration.get())
    }
}
