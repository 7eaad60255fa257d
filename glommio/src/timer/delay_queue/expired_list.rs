//! Which items have expired, in that order.
//!
//! A list that is linked through an array by key, so that an item can be listed again or taken out
//! at once, and is in it once at most: the list is never longer than the queue was.

use std::mem;

pub(super) struct ExpiredList {
    /// By key; longer if need be.
    links: Vec<Link>,
    /// [`END`] of an empty list, both.
    oldest: usize,
    newest: usize,
}

/// Four to a cache line: items are listed by deadline, and thus from all over the array.
#[derive(Clone, Copy)]
struct Link {
    older: usize,
    newer: usize,
}

/// There is none beyond.
const END: usize = usize::MAX;

/// Of one that is not listed.
const UNLISTED: Link = Link {
    older: usize::MAX - 1,
    newer: usize::MAX - 1,
};

impl Default for ExpiredList {
    /// An empty list, without memory.
    fn default() -> Self {
        ExpiredList {
            links: Vec::new(),
            oldest: END,
            newest: END,
        }
    }
}

impl ExpiredList {
    /// The last one from here on, also if it is listed already.
    pub(super) fn append(&mut self, key: usize) {
        if self.links.len() <= key {
            self.links.resize(key + 1, UNLISTED);
        }
        self.remove(key);
        let older = mem::replace(&mut self.newest, key);
        self.links[key] = Link { older, newer: END };
        match self.links.get_mut(older) {
            Some(older) => older.newer = key,
            None => self.oldest = key,
        }
    }

    pub(super) fn take_oldest(&mut self) -> Option<usize> {
        let key = self.oldest;
        self.remove(key);
        (key != END).then_some(key)
    }

    /// Does nothing to one that is not listed.
    pub(super) fn remove(&mut self, key: usize) {
        let Some(link) = self.links.get_mut(key) else {
            return;
        };
        let Link { older, newer } = mem::replace(link, UNLISTED);
        if older == UNLISTED.older {
            return;
        }
        match self.links.get_mut(older) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
    }

    /// How many items it has memory for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.links.capacity()
    }
}
