//! What is read off the machine and the process: time, memory, processors, the library's log.

pub(crate) mod lag;
pub(crate) mod memory;
pub(crate) mod noise;
pub(crate) mod process;
pub(crate) mod quiet;
pub(crate) mod resources;
pub(crate) mod ring_events;

use std::sync::{Mutex, MutexGuard};

pub(crate) use support::quantiles::nanos;

/// No code panics under a lock of the soak.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic happens under this lock")
}
