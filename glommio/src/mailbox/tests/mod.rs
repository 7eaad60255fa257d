//! The sleep protocol and the queue: as laws on one thread, and under loom.

#![allow(unsafe_code)]

#[cfg(loom)]
mod loom_queue;
#[cfg(loom)]
mod loom_sleep;
#[cfg(not(loom))]
mod protocol;
#[cfg(not(loom))]
mod queue;

use std::ptr::NonNull;

use super::{Link, Linked};
use crate::loom::UnsafeCell;

/// A wake that carries a value. Loom reports an access to the value that is not ordered after the
/// one before.
struct Note<T>(Box<Parts<T>>);

#[repr(C)]
struct Parts<T> {
    link: Link,
    value: UnsafeCell<T>,
}

// SAFETY: the link of a note that is in no queue is a number, and the value may be sent.
unsafe impl<T: Send> Send for Note<T> {}

impl<T> Note<T> {
    fn new(value: T) -> Self {
        Note(Box::new(Parts {
            link: Link::new(),
            value: UnsafeCell::new(value),
        }))
    }
}

impl<T: Copy> Note<T> {
    fn value(&self) -> T {
        // SAFETY: the note is whole, and only its holder has it.
        self.0.value.with(|value| unsafe { *value })
    }
}

// SAFETY: the link is the first part of a box, which is leaked until the link is given back.
unsafe impl<T: Send> Linked for Note<T> {
    fn into_link(self) -> NonNull<Link> {
        NonNull::from(Box::leak(self.0)).cast()
    }

    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: it came from the box that `into_link` leaked, of which it is the first part.
        Note(unsafe { Box::from_raw(link.cast().as_ptr()) })
    }
}
