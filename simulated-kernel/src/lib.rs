//! Sockets, files and disks that behave as those of Linux, decided by a seed.
//!
//! Two state machines take the place of the kernel in the simulations of [glommio](https://crates.io/crates/glommio):
//!
//! - [`network`]: nodes, links that lose and delay packets, and the sockets of TCP, UDP and Unix.
//! - [`disk`]: a file system on a disk that may lose at a power cut what was not synced, and fail.
//!
//! Neither does I/O, has a thread or reads a clock. The owner says what time it is, makes calls that return at once,
//! as those of a kernel do that may not block, and gives descriptors their numbers. The same calls with
//! the same seed give the same results. Errors are the error numbers of Linux, and tests hold both against the kernel.
//!
//! ```
//! use simulated_kernel::disk::{Disk, DiskSettings};
//!
//! let mut disk = Disk::new(7, DiskSettings::default());
//! let file = disk.open(None, b"log", libc::O_RDWR | libc::O_CREAT, 0o600).unwrap();
//! assert_eq!(disk.write(file, Some(0), b"record"), Ok(6));
//! assert_eq!(disk.open(None, b"none", libc::O_RDONLY, 0), Err(libc::ENOENT));
//! ```

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use(run_test)]
extern crate glommio_macros;

pub mod disk;
mod ids;
pub mod network;

pub use ids::{NodeId, Result, Time};
