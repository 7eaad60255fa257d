//! Files, directories and symbolic links, without their names.

use std::collections::BTreeMap;
use std::time::Duration;

use super::content::{Content, PAGE_BYTES};

/// The number of an inode. None is used twice.
pub(super) type Ino = u64;

#[derive(Debug)]
pub(super) struct Inode {
    pub(super) node: Node,
    /// The permissions.
    pub(super) mode: u32,
    /// How many names it has now.
    pub(super) names: u32,
    /// How many open files there are of it.
    pub(super) opens: u32,
    /// How many names it has on the medium, or may get there by what is not synced.
    pub(super) held: u32,
    /// Opened without a name, and may get one.
    pub(super) is_linkable: bool,
    /// How many syncs of it have failed: each open file hears of the last one once.
    pub(super) failed_syncs: u64,
    pub(super) born: Duration,
    pub(super) modified: Duration,
    pub(super) changed: Duration,
}

#[derive(Debug)]
pub(super) enum Node {
    File(Content),
    Directory(Directory),
    Symlink(Vec<u8>),
    Socket,
}

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) parent: Ino,
    pub(super) names: BTreeMap<Vec<u8>, Named>,
    /// The names in the order in which they are listed.
    pub(super) order: BTreeMap<u64, Vec<u8>>,
    /// What is on the medium.
    pub(super) durable: BTreeMap<Vec<u8>, Ino>,
    /// How many of the names are of directories.
    pub(super) directories: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) ino: Ino,
    /// Where in the order it is.
    pub(super) cookie: u64,
}

/// What is known of a file (`statx(2)`). Times are since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The number of the inode.
    pub ino: u64,
    /// The kind (`S_IFREG`, ...) and the permissions.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
    /// In bytes.
    pub size: u64,
    /// In units of 512 bytes.
    pub blocks: u64,
    /// `st_blksize`
    pub block_bytes: u32,
    /// What positions and lengths of direct I/O are multiples of; 0 if it is not possible.
    pub direct_offset_alignment: u32,
    /// What the memory of direct I/O is aligned to.
    pub direct_memory_alignment: u32,
    /// As `changed`: reads are not noted.
    pub accessed: Duration,
    /// When its content changed last.
    pub modified: Duration,
    /// When anything of it changed last.
    pub changed: Duration,
    /// When it was made.
    pub born: Duration,
}

impl Inode {
    pub(super) fn new(node: Node, mode: u32, now: Duration) -> Self {
        Inode {
            node,
            mode: mode & 0o7777,
            names: 0,
            opens: 0,
            held: 0,
            is_linkable: false,
            failed_syncs: 0,
            born: now,
            modified: now,
            changed: now,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.node, Node::Directory(_))
    }

    /// The kind, as in the mode.
    pub(super) fn kind(&self) -> u32 {
        match self.node {
            Node::File(_) => libc::S_IFREG,
            Node::Directory(_) => libc::S_IFDIR,
            Node::Symlink(_) => libc::S_IFLNK,
            Node::Socket => libc::S_IFSOCK,
        }
    }

    /// Whether nothing refers to it any more.
    pub(super) fn is_unused(&self) -> bool {
        self.names == 0 && self.opens == 0 && self.held == 0
    }

    /// How many pages it takes, if it is there at all as far as a program sees.
    pub(super) fn used_pages(&self) -> u64 {
        match &self.node {
            Node::File(content) if self.names > 0 || self.opens > 0 => content.used_pages(),
            _ => 0,
        }
    }

    /// How many pages it keeps in memory only because it may be there again after a power cut.
    pub(super) fn retained_pages(&self) -> u64 {
        match &self.node {
            Node::File(content) if self.names == 0 && self.opens == 0 => content.used_pages(),
            _ => 0,
        }
    }

    pub(super) fn stat(&self, ino: Ino, sector_bytes: u32) -> Stat {
        let (size, blocks, links) = match &self.node {
            Node::File(content) => {
                let blocks = content.used_pages() * (PAGE_BYTES / 512);
                (content.size(), blocks, self.names)
            }
            Node::Directory(directory) => {
                // One name in its parent, one in itself, and one in each directory in it.
                let links = if self.names == 0 {
                    0
                } else {
                    2 + directory.directories
                };
                (PAGE_BYTES, PAGE_BYTES / 512, links)
            }
            Node::Symlink(target) => (target.len() as u64, 0, self.names),
            Node::Socket => (0, 0, self.names),
        };
        let is_file = matches!(self.node, Node::File(_));
        Stat {
            ino,
            mode: self.kind() | self.mode,
            links,
            size,
            blocks,
            block_bytes: PAGE_BYTES as u32,
            direct_offset_alignment: if is_file { sector_bytes } else { 0 },
            direct_memory_alignment: if is_file { DIRECT_MEMORY_ALIGNMENT } else { 0 },
            accessed: self.modified,
            modified: self.modified,
            changed: self.changed,
            born: self.born,
        }
    }
}

/// As NVMe disks have it.
pub(super) const DIRECT_MEMORY_ALIGNMENT: u32 = 4;

impl Directory {
    pub(super) fn new(parent: Ino) -> Self {
        Directory {
            parent,
            names: BTreeMap::new(),
            order: BTreeMap::new(),
            durable: BTreeMap::new(),
            directories: 0,
        }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Ino> {
        self.names.get(name).map(|named| named.ino)
    }

    /// Has `name` stand for `ino`; listed in an order that depends on `seed` and says nothing.
    pub(super) fn set(&mut self, name: &[u8], ino: Ino, seed: u64) {
        if let Some(named) = self.names.get_mut(name) {
            named.ino = ino;
            return;
        }
        let mut cookie = (hash(name, seed) >> 2).max(FIRST_COOKIE);
        while self.order.contains_key(&cookie) {
            cookie += 1;
        }
        self.order.insert(cookie, name.to_vec());
        self.names.insert(name.to_vec(), Named { ino, cookie });
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some(named) = self.names.remove(name) {
            self.order.remove(&named.cookie);
        }
    }
}

/// Before it are `.` and `..`.
pub(super) const FIRST_COOKIE: u64 = 3;

/// FNV-1a, with the bits mixed in the end so that names of one letter are not in order.
fn hash(name: &[u8], seed: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325 ^ seed, step);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
