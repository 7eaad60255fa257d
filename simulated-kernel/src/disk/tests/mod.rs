//! The simulated disk against the file system of this machine, against a simple model, and what a
//! power cut may do.

mod conformance;
mod power;
mod random;
mod real;
mod system;
mod units;

use std::collections::BTreeMap;
use std::time::Duration;

use super::content::PAGE_BYTES;
use super::entries::Entry;
use super::*;

/// A disk that takes no time.
fn disk(seed: u64, set: impl FnOnce(&mut DiskSettings)) -> Disk {
    let mut settings = DiskSettings {
        latency: no_latency(),
        ..DiskSettings::default()
    };
    set(&mut settings);
    Disk::new(seed, settings)
}

/// One that loses what it may.
fn forgetful(seed: u64) -> Disk {
    disk(seed, |settings| {
        settings.lost_unsynced = true;
        settings.torn_writes = true;
    })
}

const READ: i32 = libc::O_RDONLY;
const READ_WRITE: i32 = libc::O_RDWR;
const CREATE: i32 = libc::O_RDWR | libc::O_CREAT;

/// All of a file.
fn content(disk: &mut Disk, path: &[u8]) -> Result<Vec<u8>> {
    let file = disk.open(None, path, READ, 0)?;
    let size = disk.stat(file)?.size;
    let mut bytes = vec![0; size as usize];
    let read = disk.read(file, Some(0), &mut bytes)?;
    assert_eq!(read, bytes.len());
    disk.close(file)?;
    Ok(bytes)
}

/// A synced file, whose name is synced too.
fn durable(disk: &mut Disk, path: &[u8], bytes: &[u8]) {
    let file = disk.open(None, path, CREATE, 0o600).unwrap();
    assert_eq!(disk.write(file, Some(0), bytes), Ok(bytes.len()));
    disk.sync(file).unwrap();
    disk.close(file).unwrap();
    sync_root(disk);
}

/// No operation takes any time.
fn no_latency() -> Latency {
    let none = Duration::ZERO..=Duration::ZERO;
    Latency {
        read: none.clone(),
        write: none.clone(),
        sync: none.clone(),
        metadata: none.clone(),
        bytes_per_second: None,
        stalls: 0.0,
        stall: none,
    }
}

impl Disk {
    /// Begins a sync and ends it.
    fn sync(&mut self, file: FileId) -> Result<()> {
        let pending = self.begin_sync(file)?;
        self.end_sync(pending)
    }

    /// How many of the `len` bytes at `offset` of the file are in the page cache, from the first on.
    fn cached_bytes(&self, file: FileId, offset: u64, len: usize) -> Result<usize> {
        let ino = self.open_file(file)?.ino;
        Ok(self.content(ino)?.cached_bytes(offset, len))
    }
}

/// How many bytes files take.
fn used_bytes(disk: &Disk) -> u64 {
    disk.used_pages * PAGE_BYTES
}

fn sync_root(disk: &mut Disk) {
    let root = disk.open(None, b"/", READ | libc::O_DIRECTORY, 0).unwrap();
    disk.sync(root).unwrap();
    disk.close(root).unwrap();
}
