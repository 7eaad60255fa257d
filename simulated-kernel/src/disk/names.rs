//! What was done to names and is not synced.
//!
//! An operation is lost or kept as a whole, such as a rename, which changes two names. It is lost
//! along with one that it follows from: an earlier one on the same name; where a file gets a further
//! name or another one, what made that directory, or the move of one above it; where it loses a
//! name, how it got the others. Apart from that, what becomes of one says nothing of any other, as
//! POSIX has it: filesystems with a journal keep more.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::inode::Ino;

/// What was done and is not synced, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// With their numbers.
    pending: Vec<(u64, NameOperation)>,
    next: u64,
}

/// One operation on one or two names.
#[derive(Clone, Debug)]
pub(super) struct NameOperation {
    pub(super) changes: Vec<Change>,
    /// What must not be lost before this, besides what was done to the same names.
    pub(super) needs: Vec<Key>,
    /// What is lost along with this, besides what is done to the same names.
    pub(super) gives: Vec<Key>,
}

/// What a name stands for from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) directory: Ino,
    pub(super) name: Vec<u8>,
    pub(super) after: Option<Ino>,
}

/// What operations have in common that depend on each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Name(Ino, Vec<u8>),
    /// Where a file is, or that it has this one name more.
    Place(Ino),
    /// What is in a directory.
    Contents(Ino),
}

/// As many are kept at most. Then half of them get to the medium, as the kernel does it by the clock.
const MAX_PENDING: usize = 4096;

/// The removed files of those that are kept have as many pages at most: 64 MiB.
const MAX_RETAINED_PAGES: u64 = 1 << 14;

impl Names {
    pub(super) fn push(&mut self, operation: NameOperation) {
        self.pending.push((self.next, operation));
        self.next += 1;
    }

    /// The number that the next operation gets.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes out what gets to the medium because there is too much, or because the removed files
    /// have too many pages.
    pub(super) fn take_excess(&mut self, retained_pages: u64) -> Vec<NameOperation> {
        let count = match self.pending.len() {
            len if retained_pages > MAX_RETAINED_PAGES => len,
            len if len > MAX_PENDING => len / 2,
            _ => return Vec::new(),
        };
        let excess = self.pending.drain(..count);
        excess.map(|(_, operation)| operation).collect()
    }

    /// Takes out what was done to the names in `directory` before the operation with the number
    /// `until`, and what that follows from.
    pub(super) fn take(&mut self, directory: Ino, until: u64) -> Vec<NameOperation> {
        let is_here = |(number, operation): &(u64, NameOperation)| {
            let mut changes = operation.changes.iter();
            *number < until && changes.any(|change| change.directory == directory)
        };
        if !self.pending.iter().any(is_here) {
            return Vec::new();
        }
        let mut needed = BTreeSet::new();
        let mut taken = Vec::new();
        let mut left = Vec::new();
        for entry in self.pending.drain(..).rev() {
            if is_here(&entry) || entry.1.given().any(|key| needed.contains(&key)) {
                needed.extend(entry.1.needed());
                taken.push(entry.1);
            } else {
                left.push(entry);
            }
        }
        left.reverse();
        taken.reverse();
        self.pending = left;
        taken
    }

    /// Takes out all, and returns those that a power cut leaves: each with the probability
    /// `keeping`, unless it follows from one that is lost.
    pub(super) fn survivors(&mut self, keeping: f64, rng: &mut Rng) -> Vec<NameOperation> {
        let mut lost = BTreeSet::new();
        let mut left = Vec::new();
        for (_, operation) in self.pending.drain(..) {
            let follows = operation.needed().any(|key| lost.contains(&key));
            if !follows && rng.f64() < keeping {
                left.push(operation);
            } else {
                lost.extend(operation.given());
            }
        }
        left
    }
}

impl NameOperation {
    /// One that has nothing to do with others but for its name.
    pub(super) fn of(directory: Ino, name: &[u8], after: Option<Ino>) -> Self {
        NameOperation {
            changes: vec![Change {
                directory,
                name: name.to_vec(),
                after,
            }],
            needs: Vec::new(),
            gives: Vec::new(),
        }
    }

    fn needed(&self) -> impl Iterator<Item = Key> {
        self.names().chain(self.needs.iter().cloned())
    }

    fn given(&self) -> impl Iterator<Item = Key> {
        let contents = self.changes.iter().map(|it| Key::Contents(it.directory));
        self.names()
            .chain(contents)
            .chain(self.gives.iter().cloned())
    }

    fn names(&self) -> impl Iterator<Item = Key> {
        self.changes
            .iter()
            .map(|it| Key::Name(it.directory, it.name.clone()))
    }
}
