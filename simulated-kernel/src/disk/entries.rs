//! Names: making, removing and listing them.

use super::data::MAX_FILE_BYTES;
use super::inode::{Directory, FIRST_COOKIE, Ino, Node};
use super::names::{Change, Key, NameOperation};
use super::open_file::FileId;
use super::path::{Follow, Last, MAX_PATH_BYTES, Place};
use super::state::{Disk, Result};

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of its inode.
    pub ino: u64,
    /// Where the next name is: what `d_off` says.
    pub cookie: u64,
    /// `DT_REG` and the like.
    pub kind: u8,
    /// Without a zero byte at the end.
    pub name: Vec<u8>,
}

impl Entry {
    /// How many bytes it takes as a `struct linux_dirent64`.
    pub fn record_bytes(&self) -> usize {
        // What comes before the name, and the byte at its end.
        (19 + self.name.len() + 1).next_multiple_of(8)
    }
}

impl Disk {
    /// Makes a directory at `path`, with the permissions `mode`.
    ///
    /// # Errors
    ///
    /// As `mkdirat(2)` has them.
    pub fn make_directory(&mut self, from: Option<FileId>, path: &[u8], mode: u32) -> Result<()> {
        let place = self.place(from, path, Follow::Never)?;
        let name = place.name(libc::EEXIST)?;
        self.check_free(&place, true)?;
        self.may_fail(self.settings.errors.names)?;
        let ino = self.create(Node::Directory(Directory::new(place.directory)), mode);
        let mut operation = NameOperation::of(place.directory, name, Some(ino));
        operation.gives.push(Key::Place(ino));
        self.apply(operation);
        Ok(())
    }

    /// Makes a symbolic link to `target` at `path`.
    ///
    /// # Errors
    ///
    /// As `symlinkat(2)` has them.
    pub fn symlink(&mut self, target: &[u8], from: Option<FileId>, path: &[u8]) -> Result<()> {
        match target.len() {
            0 => return Err(libc::ENOENT),
            MAX_PATH_BYTES.. => return Err(libc::ENAMETOOLONG),
            _ => {}
        }
        self.make_node(Node::Symlink(target.to_vec()), 0o777, from, path)?;
        Ok(())
    }

    /// Makes the file of a Unix socket at `path`.
    ///
    /// # Errors
    ///
    /// As `mknodat(2)` has them.
    pub fn make_socket(&mut self, from: Option<FileId>, path: &[u8]) -> Result<Ino> {
        self.make_node(Node::Socket, 0o755, from, path)
    }

    fn make_node(
        &mut self,
        node: Node,
        mode: u32,
        from: Option<FileId>,
        path: &[u8],
    ) -> Result<Ino> {
        let place = self.place(from, path, Follow::Never)?;
        let name = place.name(libc::EEXIST)?;
        self.check_free(&place, false)?;
        self.may_fail(self.settings.errors.names)?;
        let ino = self.create(node, mode);
        self.apply(NameOperation::of(place.directory, name, Some(ino)));
        Ok(ino)
    }

    /// Where the symbolic link at `path` leads.
    ///
    /// # Errors
    ///
    /// As `readlinkat(2)` has them.
    pub fn read_link(&self, from: Option<FileId>, path: &[u8]) -> Result<Vec<u8>> {
        let ino = self.lookup(from, path, Follow::No)?;
        match &self.inode(ino).node {
            Node::Symlink(target) => Ok(target.clone()),
            _ => Err(libc::EINVAL),
        }
    }

    /// Gives the file at `path` the further name `to`; a symbolic link gets it itself.
    ///
    /// # Errors
    ///
    /// As `linkat(2)` has them.
    pub fn link(
        &mut self,
        from: Option<FileId>,
        path: &[u8],
        to_from: Option<FileId>,
        to: &[u8],
    ) -> Result<()> {
        let ino = self.lookup(from, path, Follow::No)?;
        self.link_inode(ino, to_from, to)
    }

    /// Gives the open file the further name `to`, as `linkat(2)` does with `AT_EMPTY_PATH`, or by
    /// its name in `/proc/self/fd`.
    ///
    /// # Errors
    ///
    /// As `linkat(2)` has them; `ENOENT` if it has no name any more, or was opened by `O_TMPFILE`
    /// with `O_EXCL`.
    pub fn link_open(&mut self, file: FileId, to_from: Option<FileId>, to: &[u8]) -> Result<()> {
        let ino = self.open_file(file)?.ino;
        self.link_inode(ino, to_from, to)
    }

    /// Removes the name `path` of a file.
    ///
    /// # Errors
    ///
    /// As `unlinkat(2)` has them.
    pub fn unlink(&mut self, from: Option<FileId>, path: &[u8]) -> Result<()> {
        let place = self.place(from, path, Follow::Never)?;
        let name = place.name(libc::EISDIR)?;
        let ino = place.ino.ok_or(libc::ENOENT)?;
        match (self.inode(ino).is_directory(), place.has_slash) {
            (true, _) => return Err(libc::EISDIR),
            (false, true) => return Err(libc::ENOTDIR),
            (false, false) => {}
        }
        let mut operation = NameOperation::of(place.directory, name, None);
        operation.needs.push(Key::Place(ino));
        self.may_fail(self.settings.errors.names)?;
        self.apply(operation);
        Ok(())
    }

    /// Removes the empty directory at `path`.
    ///
    /// # Errors
    ///
    /// As `unlinkat(2)` has them with `AT_REMOVEDIR`.
    pub fn remove_directory(&mut self, from: Option<FileId>, path: &[u8]) -> Result<()> {
        let place = self.place(from, path, Follow::Never)?;
        let name = match &place.last {
            Last::Name(name) => name,
            Last::Dot => return Err(libc::EINVAL),
            Last::DotDot => return Err(libc::ENOTEMPTY),
            Last::Root => return Err(libc::EBUSY),
        };
        let ino = place.ino.ok_or(libc::ENOENT)?;
        if !self.directory(ino)?.names.is_empty() {
            return Err(libc::ENOTEMPTY);
        }
        let mut operation = NameOperation::of(place.directory, name, None);
        operation
            .needs
            .extend([Key::Place(ino), Key::Contents(ino)]);
        self.may_fail(self.settings.errors.names)?;
        self.apply(operation);
        Ok(())
    }

    /// Gives the file at `path` the name `to` in its place.
    ///
    /// # Errors
    ///
    /// As `renameat(2)` has them.
    pub fn rename(
        &mut self,
        from: Option<FileId>,
        path: &[u8],
        to_from: Option<FileId>,
        to: &[u8],
    ) -> Result<()> {
        let old = self.place(from, path, Follow::Never)?;
        let new = self.place(to_from, to, Follow::Never)?;
        let old_name = old.name(libc::EBUSY)?;
        let new_name = new.name(libc::EBUSY)?;
        let ino = old.ino.ok_or(libc::ENOENT)?;
        // Only directories have names with a slash at the end.
        if (old.has_slash || new.has_slash) && !self.inode(ino).is_directory() {
            return Err(libc::ENOTDIR);
        }
        self.check_rename(ino, &old, &new)?;
        if new.ino == Some(ino) {
            return Ok(());
        }
        let mut operation = NameOperation::of(old.directory, old_name, None);
        operation.changes.push(Change {
            directory: new.directory,
            name: new_name.to_vec(),
            after: Some(ino),
        });
        operation.gives.push(Key::Place(ino));
        operation.needs.push(Key::Place(ino));
        operation.needs.extend(self.places_above(new.directory));
        if let Some(target) = new.ino {
            operation.needs.push(Key::Place(target));
            if self.inode(target).is_directory() {
                operation.needs.push(Key::Contents(target));
            }
        }
        self.may_fail(self.settings.errors.names)?;
        self.apply(operation);
        Ok(())
    }

    /// The names in an open directory from where it stands on, `.` and `..` among them, as many as
    /// fit into `bytes` bytes as `getdents64(2)` writes them. At the end, none.
    ///
    /// # Errors
    ///
    /// `ENOTDIR` if it is none, `ENOENT` if it was removed, `EINVAL` if not one name fits, `EBADF` if
    /// it is not open.
    pub fn read_directory(&mut self, file: FileId, bytes: usize) -> Result<Vec<Entry>> {
        let open = self.usable(file)?;
        let (ino, position) = (open.ino, open.position);
        let directory = self.directory(ino)?;
        self.check_alive(ino)?;
        let dots = [
            (1, b".".to_vec(), ino),
            (2, b"..".to_vec(), directory.parent),
        ];
        let dots = dots.into_iter().filter(|(cookie, ..)| *cookie > position);
        let first = FIRST_COOKIE.max(position.saturating_add(1));
        let names = directory.order.range(first..);
        let names =
            names.filter_map(|(cookie, name)| Some((*cookie, name.clone(), directory.get(name)?)));
        let mut left = bytes;
        let mut entries = Vec::new();
        for (cookie, name, ino) in dots.chain(names) {
            let kind = (self.inode(ino).kind() >> 12) as u8;
            let entry = Entry {
                ino,
                cookie,
                kind,
                name,
            };
            let Some(rest) = left.checked_sub(entry.record_bytes()) else {
                if entries.is_empty() {
                    return Err(libc::EINVAL);
                }
                break;
            };
            left = rest;
            entries.push(entry);
        }
        if let Some(last) = entries.last()
            && let Some(open) = self.open.get_mut(&file)
        {
            open.position = last.cookie;
        }
        Ok(entries)
    }

    /// Has an open file stand at `position`: a byte, or of a directory a cookie, 0 for the first name.
    ///
    /// # Errors
    ///
    /// `EINVAL` beyond what files or directories may have; `EBADF` if it is not open, or by `O_PATH`
    /// only.
    pub fn set_position(&mut self, file: FileId, position: u64) -> Result<()> {
        let ino = self.usable(file)?.ino;
        let most = match self.inode(ino).is_directory() {
            true => i64::MAX.cast_unsigned(),
            false => MAX_FILE_BYTES,
        };
        if position > most {
            return Err(libc::EINVAL);
        }
        let open = self.open.get_mut(&file).ok_or(libc::EBADF)?;
        open.position = position;
        Ok(())
    }

    fn link_inode(&mut self, ino: Ino, to_from: Option<FileId>, to: &[u8]) -> Result<()> {
        let place = self.place(to_from, to, Follow::Never)?;
        let name = place.name(libc::EEXIST)?;
        self.check_free(&place, false)?;
        let inode = self.inode(ino);
        if inode.is_directory() {
            return Err(libc::EPERM);
        }
        if inode.names == 0 && !inode.is_linkable {
            return Err(libc::ENOENT);
        }
        let mut operation = NameOperation::of(place.directory, name, Some(ino));
        operation.gives.push(Key::Place(ino));
        operation.needs.extend(self.places_above(place.directory));
        self.may_fail(self.settings.errors.names)?;
        self.apply(operation);
        Ok(())
    }

    /// Whether something can be made at `place`.
    fn check_free(&self, place: &Place, is_directory: bool) -> Result<()> {
        if place.ino.is_some() {
            return Err(libc::EEXIST);
        }
        if place.has_slash && !is_directory {
            return Err(libc::ENOENT);
        }
        self.check_alive(place.directory)
    }

    /// Whether what is at `old` can be at `new`.
    fn check_rename(&self, ino: Ino, old: &Place, new: &Place) -> Result<()> {
        let is_directory = self.inode(ino).is_directory();
        if is_directory && self.is_within(new.directory, ino) {
            return Err(libc::EINVAL);
        }
        let Some(target) = new.ino else {
            return self.check_alive(new.directory);
        };
        let target_is_directory = self.inode(target).is_directory();
        if target_is_directory && self.is_within(old.directory, target) {
            return Err(libc::ENOTEMPTY);
        }
        if target == ino {
            return Ok(());
        }
        match (is_directory, self.directory(target)) {
            (true, Err(_)) => Err(libc::ENOTDIR),
            (false, Ok(_)) => Err(libc::EISDIR),
            (true, Ok(target)) if !target.names.is_empty() => Err(libc::ENOTEMPTY),
            _ => Ok(()),
        }
    }

    /// What must not be lost lest `directory` be where nothing leads to.
    fn places_above(&self, directory: Ino) -> Vec<Key> {
        let mut places = vec![Key::Place(directory)];
        let mut at = directory;
        while let Ok(found) = self.directory(at)
            && found.parent != at
        {
            at = found.parent;
            places.push(Key::Place(at));
        }
        places
    }

    /// Does the operation, which the medium hears of later.
    pub(super) fn apply(&mut self, operation: NameOperation) {
        let now = self.now;
        for ino in operation.changes.iter().filter_map(|change| change.after) {
            self.change(ino, |inode| {
                inode.names += 1;
                inode.held += 1;
                inode.is_linkable = false;
                inode.changed = now;
            });
        }
        let mut removed = Vec::new();
        for change in &operation.changes {
            removed.extend(self.set_name(change));
        }
        for ino in removed {
            self.change(ino, |inode| {
                inode.names -= 1;
                inode.changed = now;
            });
        }
        self.names.push(operation);
        self.commit_excess();
    }

    /// Has the medium hear of what there is too much of.
    pub(super) fn commit_excess(&mut self) {
        let excess = self.names.take_excess(self.retained_pages);
        self.commit(excess);
    }

    /// The medium has heard of the operations.
    pub(super) fn commit(&mut self, operations: Vec<NameOperation>) {
        for change in operations
            .into_iter()
            .flat_map(|operation| operation.changes)
        {
            let Ok(directory) = self.directory_mut(change.directory) else {
                continue;
            };
            let before = match change.after {
                Some(ino) => directory.durable.insert(change.name, ino),
                None => directory.durable.remove(&change.name),
            };
            if let Some(before) = before {
                self.change(before, |inode| inode.held -= 1);
            }
        }
    }

    /// Changes what a name stands for, and returns what it stood for.
    fn set_name(&mut self, change: &Change) -> Option<Ino> {
        let (now, seed) = (self.now, self.order_seed);
        let is_directory = |ino: Option<Ino>| ino.is_some_and(|ino| self.inode(ino).is_directory());
        let before = self.directory(change.directory).ok()?.get(&change.name);
        let (was_directory, is_directory) = (is_directory(before), is_directory(change.after));
        let inode = self.inode_mut(change.directory);
        (inode.modified, inode.changed) = (now, now);
        let directory = self.directory_mut(change.directory).ok()?;
        directory.directories += u32::from(is_directory);
        directory.directories -= u32::from(was_directory);
        match change.after {
            Some(ino) => directory.set(&change.name, ino, seed),
            None => directory.remove(&change.name),
        }
        if is_directory && let Some(ino) = change.after {
            self.directory_mut(ino).ok()?.parent = change.directory;
        }
        before
    }
}
