//! Resources of which a node has none left for a while.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use super::ids::{NodeId, Time};
use super::world::World;

/// Until when, by node.
#[derive(Default)]
pub(super) struct UsedUp {
    descriptors: RefCell<BTreeMap<NodeId, Time>>,
    memory: RefCell<BTreeMap<NodeId, Time>>,
}

impl World {
    /// From now on no descriptor of a node is free, for a while.
    pub(crate) fn use_up_descriptors(&self, node: NodeId, length: Time) {
        use_up(&self.used_up.descriptors, node, self.now() + length);
    }

    /// From now on there is no memory for what the rings of a node are asked for, for a while.
    pub(crate) fn use_up_memory(&self, node: NodeId, length: Time) {
        use_up(&self.used_up.memory, node, self.now() + length);
    }

    /// Whether a descriptor of a node is free.
    ///
    /// # Errors
    ///
    /// `EMFILE` if not.
    pub(crate) fn may_open(&self, node: NodeId) -> io::Result<()> {
        match self.used_up.descriptors.borrow().get(&node) {
            Some(until) if *until > self.now() => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            _ => Ok(()),
        }
    }

    /// Until when there is no memory for rings of a node, if there is none now.
    pub(crate) fn no_memory_until(&self, node: NodeId) -> Option<Time> {
        let until = self.used_up.memory.borrow().get(&node).copied();
        until.filter(|until| *until > self.now())
    }
}

fn use_up(of_nodes: &RefCell<BTreeMap<NodeId, Time>>, node: NodeId, until: Time) {
    let mut of_nodes = of_nodes.borrow_mut();
    let end = of_nodes.entry(node).or_default();
    *end = (*end).max(until);
}
