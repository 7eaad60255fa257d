//! Which descriptor is what of which node, the numbers of descriptors as a node sees them, and how many it has.
//!
//! Behind each descriptor is one of the process, with a device that does nothing, so that all code that owns and
//! closes it is as it is. Its number depends on all else that is open in the process. Nothing that a node is told
//! depends on that: its limit is a setting, and errors name the numbers here, the lowest one that is free as in a
//! process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;
use std::rc::Rc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::ids::NodeId;
use simulated_kernel::disk::FileId;
use simulated_kernel::network::SocketId;

/// Lets the process have as many descriptors as it may without privileges.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // It goes on with what it has.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// What a descriptor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    File(FileId),
    Socket(SocketId),
}

/// Those of all nodes.
#[derive(Default)]
pub(super) struct Descriptors {
    by_fd: BTreeMap<RawFd, Descriptor>,
    /// How many descriptors there are of each.
    counts: BTreeMap<(NodeId, Of), usize>,
    /// What files were opened by.
    paths: BTreeMap<(NodeId, FileId), Rc<[u8]>>,
    numbers: BTreeMap<NodeId, Numbers>,
}

struct Descriptor {
    node: NodeId,
    of: Of,
    /// As the node sees it.
    number: RawFd,
}

/// The numbers from [`FIRST`] to before `next` are taken, but for those that are free.
struct Numbers {
    next: RawFd,
    free: BTreeSet<RawFd>,
}

/// The first three are the standard streams.
const FIRST: RawFd = 3;

impl Default for Numbers {
    fn default() -> Self {
        Numbers {
            next: FIRST,
            free: BTreeSet::new(),
        }
    }
}

impl Descriptors {
    pub(super) fn get(&self, fd: RawFd) -> Option<(NodeId, Of)> {
        self.by_fd.get(&fd).map(|it| (it.node, it.of))
    }

    pub(super) fn number(&self, fd: RawFd) -> Option<RawFd> {
        self.by_fd.get(&fd).map(|it| it.number)
    }

    /// What a file was opened by.
    pub(super) fn path(&self, file: (NodeId, FileId)) -> Option<Rc<[u8]>> {
        self.paths.get(&file).cloned()
    }

    pub(super) fn set_path(&mut self, file: (NodeId, FileId), path: &[u8]) {
        self.paths.insert(file, path.into());
    }

    /// How many a node has, with the standard streams.
    pub(super) fn count(&self, node: NodeId) -> usize {
        let numbers = self.numbers.get(&node);
        numbers.map_or(FIRST as usize, |it| it.next as usize - it.free.len())
    }

    pub(super) fn add(&mut self, fd: RawFd, node: NodeId, of: Of) {
        let numbers = self.numbers.entry(node).or_default();
        let number = numbers.free.pop_first().unwrap_or_else(|| {
            numbers.next += 1;
            numbers.next - 1
        });
        self.by_fd.insert(fd, Descriptor { node, of, number });
        *self.counts.entry((node, of)).or_default() += 1;
    }

    /// A descriptor is closed. What it is of, if it was the last one.
    pub(super) fn forget(&mut self, fd: RawFd) -> Option<(NodeId, Of)> {
        let Descriptor { node, of, number } = self.by_fd.remove(&fd)?;
        self.numbers.entry(node).or_default().free.insert(number);
        let count = self.counts.get_mut(&(node, of))?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.counts.remove(&(node, of));
        if let Of::File(file) = of {
            self.paths.remove(&(node, file));
        }
        Some((node, of))
    }

    /// All descriptors of a node are gone. The sockets that had some, in their order.
    pub(super) fn forget_node(&mut self, node: NodeId) -> Vec<SocketId> {
        self.by_fd.retain(|_, it| it.node != node);
        self.paths.retain(|(of, _), _| *of != node);
        self.numbers.remove(&node);
        let mut sockets = Vec::new();
        self.counts.retain(|(of_node, of), _| {
            if let (Of::Socket(socket), true) = (of, *of_node == node) {
                sockets.push(*socket);
            }
            *of_node != node
        });
        sockets
    }
}
