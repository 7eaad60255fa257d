//! The file system and the disk of a simulated node.
//!
//! A pure state machine: it does no I/O, knows no clock, and everything that is up to chance comes
//! from its seed. Operations are those of the kernel, errors are its error numbers; a conformance
//! suite holds both against each other. The owner, which plays the kernel, has the descriptors: an
//! open file description is a [`FileId`] here, closed once when the last descriptor is.
//!
//! # What survives a power cut
//!
//! What POSIX and the page cache of Linux promise, and no more, as far as
//! [`DiskSettings::lost_unsynced`] has it:
//!
//! - The content of a file, and its size, that there was when a `fsync` or `fdatasync` of it began
//!   that succeeded; and what was written with `O_DSYNC`. Direct I/O goes to the cache of the device,
//!   and is no exception.
//! - Each sector ([`DiskSettings::sector_bytes`]) of what was written later, or not: in any order,
//!   and each as a whole. A file that was extended has any size in between, with zeros where data is
//!   missing. A truncation is lost along with all that came after it in its range, or kept.
//! - Names whose directory was synced since; a sync of the file itself does nothing for them. Those
//!   of later operations in any order, but each operation as a whole: a renamed file has the one
//!   name or the other one.
//! - After a `fsync` that failed, what it was to write counts as clean: a later one does not write it.
//!   It can be read until a power cut, and is lost then.
//!
//! Permissions and times are never lost, nor is preallocated space.
//!
//! # What there is not
//!
//! Users: everything is permitted. Times of access, which are those of the last change. Devices and
//! pipes, extended attributes, memory maps, limits of the number of links. Where filesystems differ,
//! it is an ext4, but for one thing: direct reads that are not aligned fail in holes, too.
//!
//! # Cost
//!
//! Reads and writes cost a search for each page of 4096 bytes; the first write to a page after a
//! sync copies it. A sync costs as much as there is to be synced. A sync of a directory, as many
//! steps as there are unsynced operations on names. Those are 4096 at most, and the files that were removed
//! by them have 64 MiB at most: what is more gets to the medium.

#![forbid(unsafe_code)]

mod content;
mod data;
mod entries;
mod inode;
mod names;
mod open;
mod open_file;
mod path;
mod power;
mod ranges;
mod settings;
mod state;
mod sync;
#[cfg(test)]
mod tests;

pub use inode::Stat;
pub use open_file::{FileId, Lock};
pub use settings::{DiskSettings, ErrorRates, Latency, Operation};
pub use state::{Disk, Result};
pub use sync::PendingSync;
