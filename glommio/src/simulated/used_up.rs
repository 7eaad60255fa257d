//! Resources of which a node has none left for a while.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::ids::{NodeId, Time};

#[derive(Default)]
pub(crate) struct UsedUp {
    /// No descriptor of a node is free.
    pub(crate) descriptors: Until,
    /// There is no memory for what the rings of a node are asked for.
    pub(crate) memory: Until,
}

/// Until when, by node.
#[derive(Default)]
pub(crate) struct Until(RefCell<BTreeMap<NodeId, Time>>);

impl UsedUp {
    /// There is enough of everything.
    pub(super) fn clear(&self) {
        self.descriptors.0.borrow_mut().clear();
        self.memory.0.borrow_mut().clear();
    }
}

impl Until {
    pub(crate) fn set(&self, node: NodeId, until: Time) {
        let mut of_nodes = self.0.borrow_mut();
        let end = of_nodes.entry(node).or_default();
        *end = (*end).max(until);
    }

    pub(super) fn of(&self, node: NodeId, now: Time) -> Option<Time> {
        let until = self.0.borrow().get(&node).copied();
        until.filter(|until| *until > now)
    }
}
