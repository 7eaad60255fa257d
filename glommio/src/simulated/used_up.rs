//! Resources of which a node has none left for a while.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::ids::{NodeId, Time};

/// Until when, by node.
#[derive(Default)]
pub(crate) struct UsedUp {
    descriptors: RefCell<BTreeMap<NodeId, Time>>,
    memory: RefCell<BTreeMap<NodeId, Time>>,
}

impl UsedUp {
    /// No descriptor of a node is free until then.
    pub(crate) fn set_descriptors(&self, node: NodeId, until: Time) {
        set(&self.descriptors, node, until);
    }

    /// There is no memory for what the rings of a node are asked for until then.
    pub(crate) fn set_memory(&self, node: NodeId, until: Time) {
        set(&self.memory, node, until);
    }

    pub(super) fn descriptors(&self, node: NodeId, now: Time) -> Option<Time> {
        until(&self.descriptors, node, now)
    }

    pub(super) fn memory(&self, node: NodeId, now: Time) -> Option<Time> {
        until(&self.memory, node, now)
    }
}

fn set(of_nodes: &RefCell<BTreeMap<NodeId, Time>>, node: NodeId, until: Time) {
    let mut of_nodes = of_nodes.borrow_mut();
    let end = of_nodes.entry(node).or_default();
    *end = (*end).max(until);
}

fn until(of_nodes: &RefCell<BTreeMap<NodeId, Time>>, node: NodeId, now: Time) -> Option<Time> {
    let until = of_nodes.borrow().get(&node).copied();
    until.filter(|until| *until > now)
}
