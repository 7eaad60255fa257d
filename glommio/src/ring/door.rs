//! The kernel's ring, or what takes its place.
//!
//! Which it is, is decided when it is made: on a thread that runs a [simulation](crate::simulated), each ring
//! is a simulated one; otherwise it is as [`Driver`] says. All methods are those of [`KernelRing`], which documents them.
//!
//! The kernel's stands in place and the others are boxed, so that its fields are where they would be without
//! the choice, which then costs a comparison. What is called for each poll of a task is inlined.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::time::Instant;

use super::choice::{Driver, is_to_fall_back};
use super::epoll::EpollRing;
use super::uring::{KernelRing, Mode};
use super::{Completion, Features, QueueFull, Submission, TimeoutCell, Wait};
use crate::error::GlommioError;
#[cfg(feature = "metrics")]
use crate::stats::{RingCounts, SharedCounts};
use crate::sys::fork_detect::Origin;

/// See the module.
pub(crate) enum Ring {
    Kernel(KernelRing),
    Epoll(Box<EpollRing>),
    #[cfg(feature = "simulation")]
    Simulated(Box<super::simulated::SimulatedRing>),
}

/// Calls the method of the same name.
macro_rules! of_each {
    ($ring:expr, $it:ident => $call:expr) => {
        match $ring {
            Ring::Kernel($it) => $call,
            Ring::Epoll($it) => $call,
            #[cfg(feature = "simulation")]
            Ring::Simulated($it) => $call,
        }
    };
}

/// Methods that each ring has.
macro_rules! methods_of_each {
    ($(fn $name:ident($($arg:ident: $T:ty),*) $(-> $Out:ty)?;)*) => {$(
        #[inline]
        pub(crate) fn $name(&self $(, $arg: $T)*) $(-> $Out)? {
            of_each!(self, it => it.$name($($arg),*))
        }
    )*};
}

impl Ring {
    methods_of_each! {
        fn origin() -> Origin;
        fn features() -> Features;
        fn push_memoryless(submission: &Submission<'_>) -> Result<(), QueueFull>;
        fn entries() -> usize;
        fn queued() -> usize;
        fn work_pending() -> bool;
        fn completions_posted() -> bool;
        fn needs_enter_to_reap() -> bool;
        fn has_deferred_work() -> bool;
        fn enter(wait: Wait) -> io::Result<()>;
        fn submit_only() -> io::Result<()>;
        fn assert_own();
        fn reap(reaped: &mut Vec<Completion>);
        fn push_timeout(cell: TimeoutCell, deadline: Instant, name: u64) -> Result<(), QueueFull>;
        fn push_timeout_move(cell: TimeoutCell, deadline: Instant, name: u64, user_data: u64) -> Result<(), QueueFull>;
        fn push_timeout_removal(name: u64, user_data: u64) -> Result<(), QueueFull>;
    }

    /// A ring of `depth` submissions for the calling thread, for one of `executors` that share the
    /// descriptors of the process.
    ///
    /// # Errors
    ///
    /// See [`KernelRing::new`] and [`EpollRing::new`].
    pub(crate) fn new(
        depth: usize,
        executors: usize,
        driver: Driver,
    ) -> Result<Ring, GlommioError<()>> {
        #[cfg(feature = "simulation")]
        if let Some(world) = crate::simulated::current() {
            let ring = super::simulated::SimulatedRing::new(depth, world)?;
            return Ok(Ring::Simulated(Box::new(ring)));
        }
        let driver = driver.or_of_environment();
        if driver != Driver::Epoll {
            match KernelRing::new(depth, executors) {
                Err(error) if driver == Driver::Auto && is_to_fall_back(&error) => {}
                made => return made.map(Ring::Kernel),
            }
        }
        Ok(Ring::Epoll(Box::new(EpollRing::new(depth)?)))
    }

    /// See [`SimulatedRing::lose_operations`](super::simulated::SimulatedRing::lose_operations).
    #[cfg(feature = "simulation")]
    pub(crate) fn lose_operations(&self) {
        if let Ring::Simulated(it) = self {
            it.lose_operations();
        }
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn counts(&self) -> &SharedCounts<RingCounts> {
        of_each!(self, it => it.counts())
    }

    #[inline]
    pub(crate) fn is_inherited(&self) -> bool {
        !self.origin().is_here()
    }

    /// Which it is: a simulated one is like io_uring.
    pub(crate) fn driver(&self) -> Driver {
        match self {
            Ring::Epoll(_) => Driver::Epoll,
            _ => Driver::IoUring,
        }
    }

    /// Of the kernel's.
    pub(crate) fn mode(&self) -> Option<Mode> {
        match self {
            Ring::Kernel(it) => Some(it.mode()),
            _ => None,
        }
    }

    /// # Safety
    ///
    /// See [`KernelRing::push`].
    #[inline]
    pub(crate) unsafe fn push(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        // SAFETY: the same promise.
        of_each!(self, it => unsafe { it.push(submission) })
    }

    /// # Safety
    ///
    /// See [`KernelRing::register`].
    pub(crate) unsafe fn register(&self, memory: NonNull<[u8]>) -> io::Result<()> {
        match self {
            // SAFETY: the same promise.
            Ring::Kernel(it) => unsafe { it.register(memory) },
            // They have no pages to look up.
            _ => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn enter_idle(&self, wait: Wait) -> io::Result<()> {
        match self {
            Ring::Kernel(it) => it.enter_idle(wait),
            _ => self.enter(wait),
        }
    }
}

#[cfg(test)]
impl std::os::fd::AsRawFd for Ring {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        match self {
            Ring::Kernel(it) => it.as_raw_fd(),
            _ => unreachable!("tests of descriptors are run on the kernel"),
        }
    }
}
