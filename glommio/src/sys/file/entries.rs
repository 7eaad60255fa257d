//! The names in a directory, as the kernel says them.
//!
//! They come many at a time and lie one behind the other in one piece of memory, which is used
//! again: as long as nothing asks for a copy of a name, no memory is allocated for it.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use crate::sys::door::door;

/// Some two thousand names. Below what allocators map and unmap anew each time.
const BLOCK_BYTES: usize = 64 << 10;

/// `struct linux_dirent64`: where its fields begin.
mod layout {
    pub(super) const INODE: usize = 0;
    pub(super) const ENTRY_BYTES: usize = 16;
    pub(super) const KIND: usize = 18;
    pub(super) const NAME: usize = 19;
}

/// Opens the directory `fd` anew: where it stands is not shared with `fd`. May wait.
pub(crate) fn open_anew(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    door!(file(fd).open(OsStr::new("."), flags.bits()));
    match openat(fd, ".", flags, Mode::empty()) {
        // A directory that may be read and not searched has no `.` to be found, but what is open
        // has a name. Where there is no /proc, the error is the one from before.
        Err(denied @ Errno::EACCES) => {
            let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
            match open(name.as_str(), flags, Mode::empty()) {
                Err(Errno::ENOENT) => Err(denied.into()),
                opened => Ok(opened?),
            }
        }
        opened => Ok(opened?),
    }
}

/// A block of entries.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    /// Where the next one begins.
    at: usize,
}

/// A name and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) inode: u64,
    /// `DT_REG` and the like.
    pub(crate) kind: u8,
}

impl Entries {
    /// Reads those that follow where `directory` stands, in place of what was here. Whether there
    /// may be more after them. May wait.
    pub(crate) fn read(&mut self, directory: BorrowedFd<'_>) -> io::Result<bool> {
        self.at = 0;
        self.bytes.clear();
        self.bytes.reserve_exact(BLOCK_BYTES);
        // Some filesystems give a page at a time, and only an empty answer is the end.
        while self.bytes.len() < BLOCK_BYTES / 2 {
            match self.read_once(directory) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                // Told when it is met again: what came before it is not lost.
                Err(_) if !self.bytes.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn read_once(&mut self, directory: BorrowedFd<'_>) -> io::Result<usize> {
        door!(file(directory).read_entries(&mut self.bytes));
        let free = self.bytes.spare_capacity_mut();
        // SAFETY: the kernel writes no more than `free.len()` bytes to `free`, which is borrowed
        // for the call.
        let count = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_raw_fd(),
                free.as_mut_ptr(),
                free.len(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has initialized so many bytes behind the last, within the capacity.
        unsafe { self.bytes.set_len(self.bytes.len() + count) };
        Ok(count)
    }

    /// The next name but for `.` and `..`.
    pub(crate) fn next(&mut self) -> Option<Entry<'_>> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let bytes = usize::from(u16::from_ne_bytes(array(rest, layout::ENTRY_BYTES)?));
            // Never of no length, with which this would not end.
            let entry = rest.get(..bytes).filter(|entry| !entry.is_empty())?;
            let inode = u64::from_ne_bytes(array(entry, layout::INODE)?);
            let kind = *entry.get(layout::KIND)?;
            let name_end = entry[layout::NAME..].iter().position(|byte| *byte == 0)?;
            let name = layout::NAME..layout::NAME + name_end;
            let begin = self.at;
            self.at += bytes;
            if !matches!(&entry[name.clone()], b"." | b"..") {
                let name = &self.bytes[begin + name.start..begin + name.end];
                return Some(Entry { name, inode, kind });
            }
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::{self, File};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn names_come_in_blocks_until_there_are_no_more() {
        let folder = tempfile::tempdir().unwrap();
        // A name of each length, and more of them than a block has room for.
        let names: BTreeSet<_> = (1..=255)
            .flat_map(|len| ['a', 'b', 'c'].map(|letter| String::from(letter).repeat(len)))
            .collect();
        for name in &names {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let opened = File::open(folder.path()).unwrap();
        let directory = open_anew(opened.as_fd()).unwrap();
        let (mut entries, mut found, mut blocks) = (Entries::default(), BTreeSet::new(), 0);
        assert_eq!(entries.next(), None);
        let mut has_more = true;
        while has_more {
            has_more = entries.read(directory.as_fd()).unwrap();
            blocks += 1;
            while let Some(entry) = entries.next() {
                assert!(matches!(entry.kind, libc::DT_REG | libc::DT_UNKNOWN));
                let name = String::from_utf8(entry.name.to_vec()).unwrap();
                assert!(found.insert(name), "twice");
            }
        }
        assert!(blocks > 1);
        assert!(found == names);
        assert!(!entries.read(directory.as_fd()).unwrap());
        assert_eq!(entries.next(), None);
    }

    #[test]
    fn what_is_cut_short_is_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("some name"), "").unwrap();
        let opened = File::open(folder.path()).unwrap();
        let directory = open_anew(opened.as_fd()).unwrap();
        let mut all = Entries::default();
        assert!(!all.read(directory.as_fd()).unwrap());
        for len in 0..all.bytes.len() {
            let mut cut = Entries {
                bytes: all.bytes[..len].to_vec(),
                at: 0,
            };
            while let Some(entry) = cut.next() {
                assert_eq!(entry.name, b"some name");
            }
        }
        let mut zeros = Entries {
            bytes: vec![0; 100],
            at: 0,
        };
        assert_eq!(zeros.next(), None);
    }

    #[test]
    fn errors_are_told() {
        let file = tempfile::tempfile().unwrap();
        let error = Entries::default().read(file.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
        assert!(open_anew(file.as_fd()).is_err());
    }
}
