//! The links between nodes, and the groups of a partition.

use std::collections::BTreeMap;

use super::address::{NodeId, Time};
use super::fault::Link;

#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) default: Link,
    pub(super) links: BTreeMap<(NodeId, NodeId), Link>,
    pub(super) group_of: BTreeMap<NodeId, usize>,
    /// Until when a link of limited bandwidth has something to send.
    pub(super) busy: BTreeMap<(NodeId, NodeId), Time>,
}

impl Routes {
    pub(super) fn link(&self, from: NodeId, to: NodeId) -> &Link {
        self.links.get(&(from, to)).unwrap_or(&self.default)
    }

    pub(super) fn is_parted(&self, from: NodeId, to: NodeId) -> bool {
        from != to
            && !self.group_of.is_empty()
            && self.group_of.get(&from) != self.group_of.get(&to)
    }
}
