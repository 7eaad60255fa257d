//! Open files.

use super::content::Content;
use super::inode::{Ino, Node, Stat};
use super::names::NameOperation;
use super::open_file::{FileId, Lock, OpenFile};
use super::path::{Follow, Last};
use super::state::{Disk, Result};

impl Disk {
    /// Opens the file at `path`, from the directory `from` or from the root, by the `flags` of
    /// `openat(2)`; one that is created has the permissions `mode`.
    ///
    /// # Errors
    ///
    /// As the system call has them.
    pub fn open(
        &mut self,
        from: Option<FileId>,
        path: &[u8],
        flags: i32,
        mode: u32,
    ) -> Result<FileId> {
        let has = |flag| flags & flag == flag;
        if has(libc::O_PATH) {
            return self.open_path(from, path, flags);
        }
        if has(libc::O_TMPFILE) {
            return self.open_temporary(from, path, flags, mode);
        }
        let creates = has(libc::O_CREAT);
        if creates && has(libc::O_DIRECTORY) {
            return Err(libc::EINVAL);
        }
        let follow = match creates {
            true if has(libc::O_NOFOLLOW) || has(libc::O_EXCL) => Follow::Never,
            true => Follow::UnlessSlash,
            false => end_of(flags),
        };
        let place = self.place(from, path, follow)?;
        if creates && place.has_slash && matches!(place.last, Last::Name(_)) {
            return Err(libc::EISDIR);
        }
        match place.ino {
            Some(_) if creates && has(libc::O_EXCL) => Err(libc::EEXIST),
            Some(ino) if place.has_slash && !self.inode(ino).is_directory() => Err(libc::ENOTDIR),
            Some(ino) => self.open_existing(ino, flags),
            None if !creates => Err(libc::ENOENT),
            None => {
                let Last::Name(name) = &place.last else {
                    return Err(libc::EISDIR);
                };
                self.check_alive(place.directory)?;
                self.may_fail(self.settings.errors.names)?;
                let ino = self.create(Node::File(Content::default()), mode);
                self.apply(NameOperation::of(place.directory, name, Some(ino)));
                self.open_inode(ino, flags)
            }
        }
    }

    /// Closes an open file: its lock is given up, and a file without a name is gone with the last.
    ///
    /// # Errors
    ///
    /// `EBADF` if it is not open.
    pub fn close(&mut self, file: FileId) -> Result<()> {
        let closed = self.open.remove(&file).ok_or(libc::EBADF)?;
        self.change(closed.ino, |inode| inode.opens -= 1);
        self.commit_excess();
        Ok(())
    }

    /// Closes all files, as the kernel does for a process that has ended.
    pub fn close_all(&mut self) {
        for file in self.open.keys().copied().collect::<Vec<_>>() {
            self.close(file).expect("it was open just now");
        }
    }

    /// The `flags` of the open file, as `F_GETFL` has them.
    ///
    /// # Errors
    ///
    /// `EBADF` if it is not open.
    pub fn flags(&self, file: FileId) -> Result<i32> {
        Ok(self.open_file(file)?.flags)
    }

    /// Changes `O_DIRECT` and `O_APPEND` to what they are in `flags`, as `F_SETFL` does.
    ///
    /// # Errors
    ///
    /// `EBADF` if it is not open, or by `O_PATH` only; `EINVAL` for direct I/O of a directory.
    pub fn set_flags(&mut self, file: FileId, flags: i32) -> Result<()> {
        const CHANGEABLE: i32 = libc::O_DIRECT | libc::O_APPEND;
        let ino = self.usable(file)?.ino;
        if flags & libc::O_DIRECT != 0 && self.inode(ino).is_directory() {
            return Err(libc::EINVAL);
        }
        let open = self.open.get_mut(&file).ok_or(libc::EBADF)?;
        open.flags = open.flags & !CHANGEABLE | flags & CHANGEABLE;
        Ok(())
    }

    /// Takes, changes or gives up the lock of an open file without waiting for others.
    ///
    /// # Errors
    ///
    /// `EWOULDBLOCK` if another one is in the way: then the lock that was held is lost, as in the
    /// kernel. `EBADF` if the file is not open, or by `O_PATH` only.
    pub fn lock(&mut self, file: FileId, lock: Option<Lock>) -> Result<()> {
        let open = self.usable(file)?;
        if open.lock == lock {
            return Ok(());
        }
        let ino = open.ino;
        let is_in_the_way = |other: Lock| lock == Some(Lock::Exclusive) || other == Lock::Exclusive;
        let mut others = self
            .open
            .iter()
            .filter(|(id, it)| **id != file && it.ino == ino);
        let is_refused = lock.is_some() && others.any(|(_, it)| it.lock.is_some_and(is_in_the_way));
        let open = self.open.get_mut(&file).ok_or(libc::EBADF)?;
        open.lock = lock.filter(|_| !is_refused);
        match is_refused {
            true => Err(libc::EWOULDBLOCK),
            false => Ok(()),
        }
    }

    /// What is known of an open file.
    ///
    /// # Errors
    ///
    /// `EBADF` if it is not open.
    pub fn stat(&self, file: FileId) -> Result<Stat> {
        let ino = self.open_file(file)?.ino;
        Ok(self.inode(ino).stat(ino, self.settings.sector_bytes))
    }

    /// What is known of the file at `path`; of a symbolic link itself unless it `follows`.
    ///
    /// # Errors
    ///
    /// Those of paths, such as `ENOENT`.
    pub fn stat_at(&self, from: Option<FileId>, path: &[u8], follows: bool) -> Result<Stat> {
        let follow = if follows { Follow::Yes } else { Follow::No };
        let ino = self.lookup(from, path, follow)?;
        Ok(self.inode(ino).stat(ino, self.settings.sector_bytes))
    }

    /// Sets the permissions of the file at `path`.
    ///
    /// # Errors
    ///
    /// Those of paths, such as `ENOENT`.
    pub fn set_mode_at(&mut self, from: Option<FileId>, path: &[u8], mode: u32) -> Result<()> {
        let ino = self.lookup(from, path, Follow::Yes)?;
        let now = self.now;
        let inode = self.inode_mut(ino);
        inode.mode = mode & 0o7777;
        inode.changed = now;
        Ok(())
    }

    fn open_path(&mut self, from: Option<FileId>, path: &[u8], flags: i32) -> Result<FileId> {
        let flags = flags & (libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW);
        let ino = self.lookup(from, path, end_of(flags))?;
        if flags & libc::O_DIRECTORY != 0 && !self.inode(ino).is_directory() {
            return Err(libc::ENOTDIR);
        }
        self.open_inode(ino, flags)
    }

    fn open_temporary(
        &mut self,
        from: Option<FileId>,
        path: &[u8],
        flags: i32,
        mode: u32,
    ) -> Result<FileId> {
        if flags & libc::O_CREAT != 0 || flags & libc::O_ACCMODE == libc::O_RDONLY {
            return Err(libc::EINVAL);
        }
        let directory = self.lookup(from, path, end_of(flags))?;
        self.directory(directory)?;
        // As on an ext4.
        self.check_alive(directory).map_err(|_| libc::EPERM)?;
        let ino = self.create(Node::File(Content::default()), mode);
        self.inode_mut(ino).is_linkable = flags & libc::O_EXCL == 0;
        self.open_inode(ino, flags & !libc::O_TMPFILE)
    }

    fn open_existing(&mut self, ino: Ino, flags: i32) -> Result<FileId> {
        let is_written = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
        match self.inode(ino).node {
            Node::Directory(_) if flags & libc::O_CREAT != 0 || is_written => {
                return Err(libc::EISDIR);
            }
            Node::Directory(_) if flags & libc::O_DIRECT != 0 => return Err(libc::EINVAL),
            Node::Directory(_) => {}
            _ if flags & libc::O_DIRECTORY != 0 => return Err(libc::ENOTDIR),
            // It would have been followed.
            Node::Symlink(_) => return Err(libc::ELOOP),
            Node::Socket => return Err(libc::ENXIO),
            Node::File(_) => {}
        }
        if flags & libc::O_TRUNC != 0 {
            self.set_size_of(ino, 0);
        }
        self.open_inode(ino, flags)
    }

    fn open_inode(&mut self, ino: Ino, flags: i32) -> Result<FileId> {
        const OF_OPENING: i32 = libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC | libc::O_CLOEXEC;
        let file = FileId(self.next_file);
        self.next_file += 1;
        let inode = self.inode_mut(ino);
        let open = OpenFile {
            ino,
            flags: flags & !OF_OPENING,
            position: 0,
            lock: None,
            seen_failed_syncs: inode.failed_syncs,
        };
        inode.opens += 1;
        self.open.insert(file, open);
        Ok(file)
    }
}

/// Whether a symbolic link at the end of the path of a file is followed that is opened by `flags`.
fn end_of(flags: i32) -> Follow {
    match flags & libc::O_NOFOLLOW {
        0 => Follow::Yes,
        _ => Follow::No,
    }
}
