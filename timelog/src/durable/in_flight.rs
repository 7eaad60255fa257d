//! The groups between the memory of a log and its device: see the pipeline, which moves them on.

use std::collections::VecDeque;
use std::rc::Rc;

use super::commit::{Group, Taken};
use super::disk::File;

/// Groups that were taken to be written and are not durable, the oldest first.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    groups: VecDeque<Sent>,
    bytes: usize,
    /// So many of them are written; at most one after those is being written.
    written: usize,
    /// Nothing will be added.
    is_over: bool,
}

#[derive(Debug)]
struct Sent {
    /// The same for all: the next file is begun when nothing is in flight.
    file: Rc<File>,
    group: Rc<Group>,
    bytes: usize,
    last: u64,
}

impl InFlight {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds one that is about to be written. Returns how many are before it.
    pub fn push(&mut self, file: Rc<File>, taken: &Taken) -> usize {
        let before = self.groups.len();
        let bytes = taken.block.len();
        self.bytes += bytes;
        self.groups.push_back(Sent {
            file,
            group: Rc::clone(&taken.group),
            bytes,
            last: taken.first + u64::from(taken.operations) - 1,
        });
        before
    }

    /// The oldest that was not written is.
    pub fn wrote(&mut self) {
        self.written += 1;
    }

    /// Nothing more is added.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The file to sync, and how many groups are durable then.
    pub fn to_sync(&self) -> Option<(Rc<File>, usize)> {
        let oldest = self.groups.front().filter(|_| self.written > 0)?;
        Some((Rc::clone(&oldest.file), self.written))
    }

    /// Those that fail.
    pub fn groups(&self) -> Vec<Rc<Group>> {
        let groups = self.groups.iter();
        groups.map(|sent| Rc::clone(&sent.group)).collect()
    }

    /// The oldest `count` are durable. Returns them, and their last operation.
    pub fn synced(&mut self, count: usize) -> (Vec<Rc<Group>>, Option<u64>) {
        let synced: Vec<_> = self.groups.drain(..count).collect();
        self.written -= count;
        self.bytes -= synced.iter().map(|sent| sent.bytes).sum::<usize>();
        let last = synced.last().map(|sent| sent.last);
        (synced.into_iter().map(|sent| sent.group).collect(), last)
    }
}
