//! From paths to inodes.

use super::inode::{Ino, Node};
use super::open_file::FileId;
use super::state::{Disk, ROOT, Result};

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Place {
    /// The directory that the last name is in.
    pub(super) directory: Ino,
    pub(super) last: Last,
    /// What is there, if something is.
    pub(super) ino: Option<Ino>,
    /// The path ends with a slash.
    pub(super) has_slash: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Last {
    Name(Vec<u8>),
    Dot,
    DotDot,
    Root,
}

impl Place {
    /// The name at the end, or `error` if that is `.`, `..` or the root.
    pub(super) fn name(&self, error: i32) -> Result<&[u8]> {
        match &self.last {
            Last::Name(name) => Ok(name),
            _ => Err(error),
        }
    }
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    Yes,
    /// Only if a slash follows.
    No,
    /// Not even then: of names that are made or removed.
    Never,
    /// Only if none follows: of files that are made when they are opened.
    UnlessSlash,
}

/// As in `limits.h`.
const MAX_NAME_BYTES: usize = 255;
pub(super) const MAX_PATH_BYTES: usize = 4096;

/// As in the kernel.
const MAX_LINKS: u32 = 40;

impl Disk {
    /// The inode at `path`.
    pub(super) fn lookup(&self, from: Option<FileId>, path: &[u8], follow: Follow) -> Result<Ino> {
        let place = self.place(from, path, follow)?;
        let ino = place.ino.ok_or(libc::ENOENT)?;
        match place.has_slash && !self.inode(ino).is_directory() {
            true => Err(libc::ENOTDIR),
            false => Ok(ino),
        }
    }

    /// Where `path` leads, from the directory `from` or from the root.
    pub(super) fn place(&self, from: Option<FileId>, path: &[u8], follow: Follow) -> Result<Place> {
        if path.is_empty() {
            return Err(libc::ENOENT);
        }
        // With the byte at the end.
        if path.len() >= MAX_PATH_BYTES {
            return Err(libc::ENAMETOOLONG);
        }
        let mut at = match from {
            Some(file) if path[0] != b'/' => self.open_file(file)?.ino,
            _ => ROOT,
        };
        let mut links = 0;
        let mut has_slash = path.ends_with(b"/");
        // What is left of the path, the next name at the end.
        let mut rest = names_of(path);
        let mut reached = Last::Root;
        loop {
            let directory = self.directory(at)?;
            let Some(name) = rest.pop() else {
                let (directory, ino) = (at, Some(at));
                return Ok(Place {
                    directory,
                    last: reached,
                    ino,
                    has_slash,
                });
            };
            if name.len() > MAX_NAME_BYTES {
                return Err(libc::ENAMETOOLONG);
            }
            let is_last = rest.is_empty();
            match &name[..] {
                b"." => {
                    reached = Last::Dot;
                    continue;
                }
                b".." => {
                    at = directory.parent;
                    reached = Last::DotDot;
                    continue;
                }
                _ => {}
            }
            let found = directory.get(&name);
            let target = found.and_then(|ino| match &self.inode(ino).node {
                Node::Symlink(target) => Some(target),
                _ => None,
            });
            let is_followed = match follow {
                _ if !is_last => true,
                Follow::Yes => true,
                Follow::No => has_slash,
                Follow::Never => false,
                Follow::UnlessSlash => !has_slash,
            };
            match (found, target) {
                (_, Some(target)) if is_followed => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(libc::ELOOP);
                    }
                    if target.starts_with(b"/") {
                        (at, reached) = (ROOT, Last::Root);
                    }
                    has_slash |= is_last && target.ends_with(b"/");
                    rest.extend(names_of(target));
                }
                (found, _) if is_last => {
                    let (directory, last) = (at, Last::Name(name));
                    return Ok(Place {
                        directory,
                        last,
                        ino: found,
                        has_slash,
                    });
                }
                (Some(ino), _) => at = ino,
                (None, _) => return Err(libc::ENOENT),
            }
        }
    }

    /// Whether `directory` is `above` or in it, at any depth.
    pub(super) fn is_within(&self, mut directory: Ino, above: Ino) -> bool {
        loop {
            if directory == above {
                return true;
            }
            match self.directory(directory) {
                Ok(found) if found.parent != directory => directory = found.parent,
                _ => return false,
            }
        }
    }
}

/// The names in a path, the first one at the end.
fn names_of(path: &[u8]) -> Vec<Vec<u8>> {
    let names = path.split(|byte| *byte == b'/').rev();
    names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect()
}
