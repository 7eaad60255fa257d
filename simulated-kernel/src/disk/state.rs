//! What there is on the disk, and what its operations have in common.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;

use super::content::{Content, Loss, PAGE_BYTES};
use super::inode::{Directory, Ino, Inode, Node};
use super::names::Names;
use super::open_file::{FileId, OpenFile};
use super::settings::{DiskSettings, Operation};
pub use crate::Result;

/// The disk of a node and the file system on it. It stays when the node's power is cut.
#[derive(Debug)]
pub struct Disk {
    pub(super) settings: DiskSettings,
    pub(super) rng: Rng,
    /// Of the order of names in directories, which stays the same over power cuts.
    pub(super) order_seed: u64,
    /// The time of the changes from now on, since the epoch.
    pub(super) now: Duration,
    pub(super) inodes: BTreeMap<Ino, Inode>,
    next_ino: Ino,
    pub(super) open: BTreeMap<FileId, OpenFile>,
    pub(super) next_file: u64,
    /// What was done to names and is not synced.
    pub(super) names: Names,
    pub(super) used_pages: u64,
    /// Of files that were removed, which the medium has not heard of.
    pub(super) retained_pages: u64,
}

pub(super) const ROOT: Ino = 2;

impl Disk {
    /// An empty disk: there is a root directory, and nothing in it.
    ///
    /// # Panics
    ///
    /// Panics if the size of a sector is none.
    pub fn new(seed: u64, settings: DiskSettings) -> Self {
        assert_sector(&settings);
        let mut rng = Rng::with_seed(seed);
        let mut root = Inode::new(Node::Directory(Directory::new(ROOT)), 0o755, Duration::ZERO);
        root.names = 1;
        root.held = 1;
        Disk {
            settings,
            order_seed: rng.u64(..),
            rng,
            now: Duration::ZERO,
            inodes: BTreeMap::from([(ROOT, root)]),
            next_ino: ROOT + 1,
            open: BTreeMap::new(),
            next_file: 0,
            names: Names::default(),
            used_pages: 0,
            retained_pages: 0,
        }
    }

    /// How the disk behaves.
    pub fn settings(&self) -> &DiskSettings {
        &self.settings
    }

    /// Changes how the disk behaves from now on.
    ///
    /// # Panics
    ///
    /// Panics if the size of a sector is none.
    pub fn set_settings(&mut self, settings: DiskSettings) {
        assert_sector(&settings);
        self.settings = settings;
    }

    /// Sets the time that files which change from now on have, since the epoch.
    pub fn set_now(&mut self, now: Duration) {
        self.now = now;
    }

    /// How long an operation takes that moves so many bytes. A new answer each time.
    pub fn duration_of(&mut self, operation: Operation, bytes: u64) -> Duration {
        self.settings
            .latency
            .duration_of(operation, bytes, &mut self.rng)
    }

    /// What a power cut does to what is not synced.
    pub(super) fn loss(&self) -> Loss {
        match (self.settings.lost_unsynced, self.settings.torn_writes) {
            (false, _) => Loss::Nothing,
            (true, false) => Loss::Writes,
            (true, true) => Loss::Sectors(self.settings.sector_bytes),
        }
    }

    /// The length of the sectors at whose boundaries writes are torn, if they are.
    pub fn torn_at(&self) -> Option<u32> {
        match self.loss() {
            Loss::Sectors(bytes) => Some(bytes),
            Loss::Nothing | Loss::Writes => None,
        }
    }

    /// `EIO` with this probability.
    pub(super) fn may_fail(&mut self, rate: f64) -> Result<()> {
        match self.happens(rate) {
            true => Err(libc::EIO),
            false => Ok(()),
        }
    }

    /// Whether something of this probability happens now.
    pub(super) fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    pub(super) fn inode(&self, ino: Ino) -> &Inode {
        self.inodes.get(&ino).expect("what is referred to is kept")
    }

    pub(super) fn inode_mut(&mut self, ino: Ino) -> &mut Inode {
        self.inodes
            .get_mut(&ino)
            .expect("what is referred to is kept")
    }

    pub(super) fn directory(&self, ino: Ino) -> Result<&Directory> {
        match &self.inode(ino).node {
            Node::Directory(directory) => Ok(directory),
            _ => Err(libc::ENOTDIR),
        }
    }

    pub(super) fn directory_mut(&mut self, ino: Ino) -> Result<&mut Directory> {
        match &mut self.inode_mut(ino).node {
            Node::Directory(directory) => Ok(directory),
            _ => Err(libc::ENOTDIR),
        }
    }

    pub(super) fn content(&self, ino: Ino) -> Result<&Content> {
        match &self.inode(ino).node {
            Node::File(content) => Ok(content),
            Node::Directory(_) => Err(libc::EISDIR),
            Node::Symlink(_) | Node::Socket => Err(libc::EINVAL),
        }
    }

    pub(super) fn content_mut(&mut self, ino: Ino) -> Result<&mut Content> {
        match &mut self.inode_mut(ino).node {
            Node::File(content) => Ok(content),
            Node::Directory(_) => Err(libc::EISDIR),
            Node::Symlink(_) | Node::Socket => Err(libc::EINVAL),
        }
    }

    pub(super) fn open_file(&self, file: FileId) -> Result<&OpenFile> {
        self.open.get(&file).ok_or(libc::EBADF)
    }

    /// The open file, unless it is one by `O_PATH`, with which nothing can be done.
    pub(super) fn usable(&self, file: FileId) -> Result<&OpenFile> {
        let open = self.open_file(file)?;
        match open.is_path() {
            true => Err(libc::EBADF),
            false => Ok(open),
        }
    }

    /// Whether there can be names in the directory: it may have been removed while it was open.
    pub(super) fn check_alive(&self, directory: Ino) -> Result<()> {
        match self.inode(directory).names {
            0 => Err(libc::ENOENT),
            _ => Ok(()),
        }
    }

    pub(super) fn create(&mut self, node: Node, mode: u32) -> Ino {
        let ino = self.next_ino;
        self.next_ino += 1;
        self.inodes.insert(ino, Inode::new(node, mode, self.now));
        ino
    }

    /// Changes an inode, and what is known of the space that it takes.
    pub(super) fn change<T>(&mut self, ino: Ino, change: impl FnOnce(&mut Inode) -> T) -> T {
        let inode = self
            .inodes
            .get_mut(&ino)
            .expect("what is referred to is kept");
        let (used, retained) = (inode.used_pages(), inode.retained_pages());
        let result = change(inode);
        self.used_pages = self.used_pages - used + inode.used_pages();
        self.retained_pages -= retained;
        if inode.is_unused() {
            self.inodes.remove(&ino);
        } else {
            self.retained_pages += inode.retained_pages();
        }
        result
    }

    /// How many pages are free.
    pub(super) fn free_pages(&self) -> u64 {
        let full_at = self
            .settings
            .full_at
            .map_or(u64::MAX, |bytes| bytes / PAGE_BYTES);
        full_at.saturating_sub(self.used_pages)
    }
}

fn assert_sector(settings: &DiskSettings) {
    assert!(
        matches!(settings.sector_bytes, 512 | 1024 | 2048 | 4096),
        "a sector has 512, 1024, 2048 or 4096 bytes, not {}",
        settings.sector_bytes
    );
}
