//! Power cuts.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Loss;
use super::inode::{Ino, Node};
use super::names::Names;
use super::state::{Disk, ROOT};

impl Disk {
    /// Cuts the power: no file is open any more, and what was not synced is lost, kept or torn.
    pub fn power_cut(&mut self) {
        self.open.clear();
        let loss = self.loss();
        let keeping = match loss {
            Loss::Nothing => 1.0,
            // So that it is often much, and often nothing.
            _ => [0.0, 0.5, 0.9, 1.0][self.rng.usize(0..4)],
        };
        let mut names = std::mem::take(&mut self.names);
        let survivors = names.survivors(keeping, &mut self.rng);
        self.names = Names::default();
        for change in survivors
            .into_iter()
            .flat_map(|operation| operation.changes)
        {
            let Ok(directory) = self.directory_mut(change.directory) else {
                continue;
            };
            match change.after {
                Some(ino) => directory.durable.insert(change.name, ino),
                None => directory.durable.remove(&change.name),
            };
        }
        let names = self.restore_names();
        self.inodes.retain(|ino, _| names.contains_key(ino));
        (self.used_pages, self.retained_pages) = (0, 0);
        for (ino, inode) in &mut self.inodes {
            inode.names = names.get(ino).copied().unwrap_or_default();
            inode.held = inode.names;
            inode.opens = 0;
            inode.failed_syncs = 0;
            inode.is_linkable = false;
            if let Node::File(content) = &mut inode.node {
                content.power_cut(loss, &mut self.rng);
            }
            self.used_pages += inode.used_pages();
        }
    }

    /// Makes the names those of the medium, from the root on. Returns how many there are of each
    /// file that has any.
    fn restore_names(&mut self) -> BTreeMap<Ino, u32> {
        let seed = self.order_seed;
        let mut count = BTreeMap::from([(ROOT, 1)]);
        let mut left = BTreeSet::from([ROOT]);
        while let Some(at) = left.pop_first() {
            let Ok(directory) = self.directory_mut(at) else {
                continue;
            };
            directory.names.clear();
            directory.order.clear();
            directory.directories = 0;
            let durable = directory.durable.clone();
            for (name, ino) in &durable {
                directory.set(name, *ino, seed);
            }
            let mut directories = 0;
            for ino in durable.into_values() {
                *count.entry(ino).or_insert(0) += 1;
                if let Ok(below) = self.directory_mut(ino) {
                    below.parent = at;
                    directories += 1;
                    left.insert(ino);
                }
            }
            if let Ok(directory) = self.directory_mut(at) {
                directory.directories = directories;
            }
        }
        count
    }
}
