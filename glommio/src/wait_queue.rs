//! A queue of wakers, first come first served, from which any may leave.
//!
//! ```text
//!   push ──▶ waiting ──notify──▶ notified ──remove──▶ (gone)
//!               └──────────remove──────────────▲
//! ```
//!
//! The waiting entries form a list through a slab, oldest first. A notified entry has left the list,
//! yet keeps its place in the slab until its owner takes it away: so an owner that goes without
//! acting on its notification learns of it, and passes it on.
//!
//! Invariants: an entry is in the list exactly while it waits; a key is removed once, by its owner,
//! so keys are never stale. No waker is woken or dropped in here: those that leave are handed out,
//! for the caller to deal with when nothing is borrowed.
//!
//! Cost: every operation is a handful of loads and stores.

#![forbid(unsafe_code)]

use std::task::Waker;

use slab::Slab;

/// See the module.
#[derive(Debug)]
pub(crate) struct WaitQueue {
    entries: Slab<Entry>,
    oldest: Option<usize>,
    newest: Option<usize>,
}

/// Names one entry. Not `Clone`: whoever has it owns the entry.
#[derive(Debug)]
pub(crate) struct WaitKey(usize);

#[derive(Debug)]
enum Entry {
    Waiting {
        waker: Waker,
        older: Option<usize>,
        newer: Option<usize>,
    },
    Notified,
}

/// How an entry left.
#[derive(Debug)]
pub(crate) enum Removed {
    /// It was still waiting; its waker.
    Waiting(Waker),
    /// It had been notified.
    Notified,
}

impl WaitQueue {
    pub(crate) const fn new() -> Self {
        WaitQueue {
            entries: Slab::new(),
            oldest: None,
            newest: None,
        }
    }

    /// Whether somebody waits that was not notified.
    pub(crate) fn has_waiting(&self) -> bool {
        self.oldest.is_some()
    }

    /// Adds an entry behind all others.
    pub(crate) fn push(&mut self, waker: Waker) -> WaitKey {
        let older = self.newest;
        let index = self.entries.insert(Entry::Waiting {
            waker,
            older,
            newer: None,
        });
        *self.newer_link(older) = Some(index);
        self.newest = Some(index);
        WaitKey(index)
    }

    /// Has a waiting entry, in its place, wake `waker`. Returns the waker that is to be dropped: the one
    /// it replaces, or `waker` itself if it is the same or the entry was notified.
    pub(crate) fn watch(&mut self, key: &WaitKey, waker: Waker) -> Waker {
        match &mut self.entries[key.0] {
            Entry::Waiting { waker: known, .. } if !known.will_wake(&waker) => {
                std::mem::replace(known, waker)
            }
            _ => waker,
        }
    }

    /// Whether the entry was notified.
    pub(crate) fn is_notified(&self, key: &WaitKey) -> bool {
        matches!(self.entries[key.0], Entry::Notified)
    }

    /// Notifies the oldest waiting entry; its waker is for the caller to wake.
    pub(crate) fn notify_oldest(&mut self) -> Option<Waker> {
        let index = self.oldest?;
        self.unlink(index);
        match std::mem::replace(&mut self.entries[index], Entry::Notified) {
            Entry::Waiting { waker, .. } => Some(waker),
            Entry::Notified => unreachable!("the list has waiting entries only"),
        }
    }

    /// Takes an entry away.
    pub(crate) fn remove(&mut self, key: WaitKey) -> Removed {
        self.unlink(key.0);
        match self.entries.remove(key.0) {
            Entry::Waiting { waker, .. } => Removed::Waiting(waker),
            Entry::Notified => Removed::Notified,
        }
    }

    /// Takes a waiting entry out of the list; leaves a notified one alone.
    fn unlink(&mut self, index: usize) {
        let Entry::Waiting { older, newer, .. } = self.entries[index] else {
            return;
        };
        *self.newer_link(older) = newer;
        *self.older_link(newer) = older;
    }

    /// Where the link from `index` to its newer neighbour is kept; the head of the list for `None`.
    fn newer_link(&mut self, index: Option<usize>) -> &mut Option<usize> {
        match index {
            None => &mut self.oldest,
            Some(index) => match &mut self.entries[index] {
                Entry::Waiting { newer, .. } => newer,
                Entry::Notified => unreachable!("the list has waiting entries only"),
            },
        }
    }

    /// Where the link from `index` to its older neighbour is kept; the tail of the list for `None`.
    fn older_link(&mut self, index: Option<usize>) -> &mut Option<usize> {
        match index {
            None => &mut self.newest,
            Some(index) => match &mut self.entries[index] {
                Entry::Waiting { older, .. } => older,
                Entry::Notified => unreachable!("the list has waiting entries only"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    struct Number(AtomicUsize);

    impl Wake for Number {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waker() -> (Arc<Number>, Waker) {
        let number = Arc::new(Number(AtomicUsize::new(0)));
        (Arc::clone(&number), Waker::from(number))
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push,
        Notify,
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Push),
            2 => Just(Step::Notify),
            2 => any::<usize>().prop_map(Step::Remove),
        ]
    }

    proptest! {
        /// Notifications go out in the order of arrival, to nobody who left, and whoever leaves is
        /// told whether one was meant for it.
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec(step(), 0..200)) {
            let mut queue = WaitQueue::new();
            let mut waiting = VecDeque::new();
            let mut owners: Vec<(usize, WaitKey, Arc<Number>)> = Vec::new();
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push => {
                        let (number, waker) = waker();
                        owners.push((id, queue.push(waker), number));
                        waiting.push_back(id);
                    }
                    Step::Notify => {
                        let expected = waiting.pop_front();
                        let notified = queue.notify_oldest();
                        prop_assert_eq!(expected.is_some(), notified.is_some());
                        if let (Some(waker), Some(id)) = (notified, expected) {
                            waker.wake();
                            let (_, key, number) = owners.iter().find(|it| it.0 == id).unwrap();
                            prop_assert!(queue.is_notified(key));
                            prop_assert_eq!(number.0.load(Ordering::Relaxed), 1);
                        }
                    }
                    Step::Remove(pick) if !owners.is_empty() => {
                        let (id, key, _) = owners.swap_remove(pick % owners.len());
                        let was_waiting = waiting.contains(&id);
                        waiting.retain(|other| *other != id);
                        let removed = queue.remove(key);
                        prop_assert_eq!(was_waiting, matches!(removed, Removed::Waiting(_)));
                    }
                    Step::Remove(_) => {}
                }
                prop_assert_eq!(queue.has_waiting(), !waiting.is_empty());
                prop_assert_eq!(queue.entries.len(), owners.len());
            }
        }
    }

    #[test]
    fn a_new_waker_takes_the_place_of_the_old_one() {
        let mut queue = WaitQueue::new();
        let (first, first_waker) = waker();
        let (second, second_waker) = waker();
        let key = queue.push(first_waker.clone());
        let left = queue.watch(&key, second_waker.clone());
        assert!(left.will_wake(&first_waker));
        queue.notify_oldest().expect("one waits").wake();
        assert_eq!(first.0.load(Ordering::Relaxed), 0);
        assert_eq!(second.0.load(Ordering::Relaxed), 1);
        let left = queue.watch(&key, first_waker.clone());
        assert!(left.will_wake(&first_waker), "notified: no waker is kept");
    }
}
