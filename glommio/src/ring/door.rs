//! A ring of the kernel, or of a [simulated](crate::simulated) one.
//!
//! With the feature `simulation`. Which of both it is, is decided when it is made: on a thread that
//! runs a simulation, each ring is a simulated one. All methods are those of [`KernelRing`], which
//! documents them.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::time::Instant;

use super::simulated::SimulatedRing;
use super::timespecs::TimeoutCell;
use super::{Completion, Features, KernelRing, Mode, QueueFull, Submission, Wait};
use crate::error::GlommioError;
use crate::simulated;
#[cfg(feature = "metrics")]
use crate::stats::{RingCounts, SharedCounts};
use crate::sys::origin::Origin;

/// See the module.
pub(crate) enum Ring {
    Kernel(KernelRing),
    Simulated(SimulatedRing),
}

/// Calls the method of the same name.
macro_rules! of_each {
    ($ring:expr, $it:ident => $call:expr) => {
        match $ring {
            Ring::Kernel($it) => $call,
            Ring::Simulated($it) => $call,
        }
    };
}

impl Ring {
    pub(crate) fn new(depth: usize, executors: usize) -> Result<Ring, GlommioError<()>> {
        match simulated::current() {
            Some(world) => Ok(Ring::Simulated(SimulatedRing::new(depth, world)?)),
            None => KernelRing::new(depth, executors).map(Ring::Kernel),
        }
    }

    /// See [`SimulatedRing::lose_power`].
    pub(crate) fn lose_power(&self) {
        if let Ring::Simulated(it) = self {
            it.lose_power();
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

    pub(crate) fn origin(&self) -> Origin {
        of_each!(self, it => it.origin())
    }

    pub(crate) fn mode(&self) -> Mode {
        of_each!(self, it => it.mode())
    }

    pub(crate) fn features(&self) -> Features {
        of_each!(self, it => it.features())
    }

    /// # Safety
    ///
    /// See [`KernelRing::push`].
    pub(crate) unsafe fn push(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        // SAFETY: the same promise.
        of_each!(self, it => unsafe { it.push(submission) })
    }

    pub(crate) fn push_memoryless(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        of_each!(self, it => it.push_memoryless(submission))
    }

    /// # Safety
    ///
    /// See [`KernelRing::register`].
    pub(crate) unsafe fn register(&self, memory: NonNull<[u8]>) -> io::Result<()> {
        match self {
            // SAFETY: the same promise.
            Ring::Kernel(it) => unsafe { it.register(memory) },
            // It has no pages to look up.
            Ring::Simulated(_) => Ok(()),
        }
    }

    pub(crate) fn entries(&self) -> usize {
        of_each!(self, it => it.entries())
    }

    pub(crate) fn queued(&self) -> usize {
        of_each!(self, it => it.queued())
    }

    #[inline]
    pub(crate) fn work_pending(&self) -> bool {
        of_each!(self, it => it.work_pending())
    }

    #[inline]
    pub(crate) fn completions_posted(&self) -> bool {
        of_each!(self, it => it.completions_posted())
    }

    #[inline]
    pub(crate) fn needs_enter_to_reap(&self) -> bool {
        of_each!(self, it => it.needs_enter_to_reap())
    }

    #[inline]
    pub(crate) fn has_deferred_work(&self) -> bool {
        of_each!(self, it => it.has_deferred_work())
    }

    pub(crate) fn enter(&self, wait: Wait) -> io::Result<()> {
        of_each!(self, it => it.enter(wait))
    }

    pub(crate) fn enter_idle(&self, wait: Wait) -> io::Result<()> {
        match self {
            Ring::Kernel(it) => it.enter_idle(wait),
            Ring::Simulated(it) => it.enter(wait),
        }
    }

    pub(crate) fn submit_only(&self) -> io::Result<()> {
        of_each!(self, it => it.submit_only())
    }

    #[inline]
    pub(crate) fn assert_own(&self) {
        if let Ring::Kernel(it) = self {
            it.assert_own();
        }
    }

    pub(crate) fn reap(&self, reaped: &mut Vec<Completion>) {
        of_each!(self, it => it.reap(reaped))
    }

    pub(crate) fn push_timeout(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
    ) -> Result<(), QueueFull> {
        match self {
            Ring::Kernel(it) => it.push_timeout(cell, deadline, name),
            Ring::Simulated(it) => it.push_timeout(name),
        }
    }

    pub(crate) fn push_timeout_move(
        &self,
        cell: TimeoutCell,
        deadline: Instant,
        name: u64,
        user_data: u64,
    ) -> Result<(), QueueFull> {
        match self {
            Ring::Kernel(it) => it.push_timeout_move(cell, deadline, name, user_data),
            Ring::Simulated(it) => it.push_timeout_move(name, user_data),
        }
    }

    pub(crate) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        of_each!(self, it => it.push_timeout_removal(name, user_data))
    }
}

#[cfg(test)]
impl std::os::fd::AsRawFd for Ring {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        match self {
            Ring::Kernel(it) => it.as_raw_fd(),
            Ring::Simulated(_) => unreachable!("tests of descriptors are run on the kernel"),
        }
    }
}
