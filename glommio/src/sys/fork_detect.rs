//! Tells a process from the children that it forks, without a system call.
//!
//! The number of the process lies in a page that the kernel gives to every child as zeros
//! (`MADV_WIPEONFORK`, Linux 4.14), however the child is forked: it is not a matter of handlers
//! that a raw `clone(2)` does not call. Where the kernel does not know of it, as gVisor does not, such a
//! handler it is: of the C library's `fork`. Numbers are unique among a process and its ancestors, which
//! is all that can ever be compared.

#![allow(unsafe_code)]

use std::io;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
#[cfg(any(feature = "metrics", feature = "debugging"))]
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous};

/// The process in which something was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Zero in a child that has not asked for its number yet.
    current: &'static AtomicU64,
    number: u64,
}

impl Origin {
    /// This process.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, for the first that asks.
    pub(crate) fn here() -> io::Result<Origin> {
        /// The last number given out, as of the last fork.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let current = current()?;
        let mut number = current.load(Ordering::Relaxed);
        if number == 0 {
            let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            number = match current.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => next,
                Err(other) => other,
            };
        }
        Ok(Origin { current, number })
    }

    /// Another one than that of each ancestor and each child; never zero.
    pub(crate) fn number(self) -> u64 {
        self.number
    }

    /// Whether this is the process, and not one that was forked since. A plain load.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.current.load(Ordering::Relaxed) == self.number
    }

    /// For what belongs to an executor of the process.
    ///
    /// # Panics
    ///
    /// Panics in a child of the process.
    #[inline]
    pub(crate) fn assert_here(self) {
        assert!(
            self.is_here(),
            "this LocalExecutor belongs to the process that this one was forked from: make a new one here"
        );
    }
}

/// A value that each process has for itself, made when it is first asked for. A forked child begins
/// with a new one, whatever threads of its parent did with theirs when they were left behind.
#[cfg(any(feature = "metrics", feature = "debugging"))]
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<Owned<T>>);

#[cfg(any(feature = "metrics", feature = "debugging"))]
struct Owned<T> {
    /// The [number](Origin::number) of the process.
    process: u64,
    value: T,
}

#[cfg(any(feature = "metrics", feature = "debugging"))]
impl<T: Default + Send + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// That of this process. It is never freed, as that of the parent is not.
    ///
    /// # Errors
    ///
    /// As [`Origin::here`].
    pub(crate) fn get(&self) -> io::Result<&'static T> {
        let process = Origin::here()?.number();
        let current = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked after it was written, which acquiring shows.
        if let Some(owned) = unsafe { current.as_ref() }
            && owned.process == process
        {
            return Ok(&owned.value);
        }
        let value = T::default();
        let made = Box::into_raw(Box::new(Owned { process, value }));
        let swapped = (self.0).compare_exchange(current, made, Ordering::AcqRel, Ordering::Acquire);
        let owned = match swapped {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: it was made above, and nothing has seen it.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: leaked, as above. What another thread was quicker with is of this process, too,
        // since no other writes to this memory.
        Ok(unsafe { &(*owned).value })
    }
}

static CURRENT: OnceLock<&'static AtomicU64> = OnceLock::new();

/// The word that is wiped.
fn current() -> io::Result<&'static AtomicU64> {
    if let Some(current) = CURRENT.get() {
        return Ok(current);
    }
    const LENGTH: NonZeroUsize = NonZeroUsize::new(size_of::<AtomicU64>()).expect("it is eight");
    // SAFETY: no address is asked for, so the mapping replaces no other.
    let page = unsafe {
        mmap_anonymous(
            None,
            LENGTH,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_PRIVATE,
        )
    }?;
    // SAFETY: the page was just mapped and is not known elsewhere, and it keeps its contents here.
    let marked = unsafe { madvise(page, LENGTH.get(), MmapAdvise::MADV_WIPEONFORK) };
    if marked.is_err() {
        wipe_on_fork()?;
    }
    // SAFETY: (1) the page is readable, writable, aligned, and never unmapped: if another thread
    // was quicker, it is leaked. (2) It is only ever used as this atomic, zeros are a value of
    // it, and a child in which the kernel wipes it has no other thread yet.
    let current = unsafe { page.cast::<AtomicU64>().as_ref() };
    Ok(CURRENT.get_or_init(|| current))
}

/// Has the C library's `fork` do what the kernel does not.
fn wipe_on_fork() -> io::Result<()> {
    extern "C" fn wipe() {
        if let Some(current) = CURRENT.get() {
            current.store(0, Ordering::Relaxed);
        }
    }
    // SAFETY: in the child, `wipe` stores a number that it finds by two loads.
    match unsafe { libc::pthread_atfork(None, None, Some(wipe)) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_the_same_to_all_of_its_threads() {
        let origin = Origin::here().expect("a page is free");
        let other = std::thread::spawn(|| Origin::here().expect("a page is free"))
            .join()
            .expect("it ends well");
        assert_eq!(origin.number, other.number);
        assert!(origin.is_here() && other.is_here());
    }

    #[test]
    #[cfg(feature = "metrics")]
    fn a_value_of_the_process_is_made_once() {
        static VALUE: PerProcess<AtomicU64> = PerProcess::new();
        let get = || VALUE.get().expect("a page is free");
        let threads: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(move || get().fetch_add(1, Ordering::Relaxed)))
            .collect();
        for thread in threads {
            thread.join().expect("it ends well");
        }
        assert_eq!(get().load(Ordering::Relaxed), 8);
    }
}
