//! One door to everything that loom wants to watch.
//!
//! Rooms that several threads enter take their atomics and cells from here. In an ordinary build
//! these are the ones of `std`, at no cost; under `--cfg loom` they are loom's, which runs a test
//! through every interleaving that the memory model allows and reports any access to a cell that is
//! not ordered with the one before. Loom's types work only inside `loom::model`, so a build with
//! `--cfg loom` runs its models and nothing else.

#[cfg(not(loom))]
pub(crate) use std::{cell::Cell, hint, sync};

#[cfg(loom)]
pub(crate) use ::loom::{
    cell::{Cell, UnsafeCell},
    hint, sync,
};

/// [`std::cell::UnsafeCell`] with the two accessors through which loom sees who looks and when.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// A cell that holds `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Lends the value for reading.
    #[inline(always)]
    pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Lends the value for writing.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
