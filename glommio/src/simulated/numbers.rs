//! The numbers of descriptors as a node sees them, and how many it may have.
//!
//! Behind each descriptor is one of the process, whose number depends on all else that is open in it. Nothing
//! that a node is told depends on that: its limit is a setting, and errors name the numbers here, the lowest
//! one that is free as in a process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::ids::NodeId;

/// Lets the process have as many descriptors as it may without privileges.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // It goes on with what it has.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

#[derive(Default)]
pub(super) struct Numbers {
    by_fd: BTreeMap<RawFd, (NodeId, RawFd)>,
    of_nodes: BTreeMap<NodeId, OfNode>,
}

/// The numbers from [`FIRST`] to before `next` are taken, but for those that are free.
struct OfNode {
    next: RawFd,
    free: BTreeSet<RawFd>,
}

/// The first three are the standard streams.
const FIRST: RawFd = 3;

impl Default for OfNode {
    fn default() -> Self {
        OfNode {
            next: FIRST,
            free: BTreeSet::new(),
        }
    }
}

impl Numbers {
    pub(super) fn add(&mut self, fd: RawFd, node: NodeId) {
        let of_node = self.of_nodes.entry(node).or_default();
        let number = of_node.free.pop_first().unwrap_or_else(|| {
            of_node.next += 1;
            of_node.next - 1
        });
        self.by_fd.insert(fd, (node, number));
    }

    pub(super) fn forget(&mut self, fd: RawFd) {
        if let Some((node, number)) = self.by_fd.remove(&fd) {
            self.of_nodes.entry(node).or_default().free.insert(number);
        }
    }

    pub(super) fn forget_node(&mut self, node: NodeId) {
        self.by_fd.retain(|_, (of, _)| *of != node);
        self.of_nodes.remove(&node);
    }

    pub(super) fn get(&self, fd: RawFd) -> Option<RawFd> {
        self.by_fd.get(&fd).map(|(_, number)| *number)
    }

    /// How many a node has, with the standard streams.
    pub(super) fn count(&self, node: NodeId) -> usize {
        let of_node = self.of_nodes.get(&node);
        of_node.map_or(FIRST as usize, |it| it.next as usize - it.free.len())
    }
}
