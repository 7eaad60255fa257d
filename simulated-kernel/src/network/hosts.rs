//! Nodes are added and found: names and addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::address::NodeId;
use super::node::Node;
use super::state::Network;

impl Network {
    /// Adds a node with an address, in addition to the loopback addresses. A name or an
    /// address that another node has already is the new node's from now on.
    pub fn add_node(&mut self, name: &str, address: IpAddr) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node {
            addresses: Vec::new(),
            is_up: true,
            is_paused: false,
            held: Vec::new(),
            unix_names: BTreeMap::new(),
        });
        self.names.insert(name.to_owned(), id);
        self.add_address(id, address);
        id
    }

    /// Gives a node one more address, of the other family for instance.
    pub fn add_address(&mut self, node: NodeId, address: IpAddr) {
        let address = address.to_canonical();
        if let Some(previous) = self.addresses.insert(address, node) {
            self.nodes[previous.0]
                .addresses
                .retain(|other| *other != address);
        }
        self.nodes[node.0].addresses.push(address);
    }

    /// The address of a name: that of a node, the loopback address for `localhost`, or the one that
    /// the name is the text of.
    pub fn resolve(&self, from: NodeId, name: &str) -> Option<IpAddr> {
        if name == "localhost" {
            return self.nodes.get(from.0).map(|_| IpAddr::from([127, 0, 0, 1]));
        }
        if let Some(node) = self.names.get(name) {
            return self.nodes[node.0].addresses.first().copied();
        }
        name.parse().ok()
    }

    /// The address of `node` in the family of `like`.
    pub(super) fn address_of(&self, node: NodeId, like: IpAddr) -> Option<IpAddr> {
        let addresses = &self.nodes[node.0].addresses;
        addresses
            .iter()
            .find(|address| address.is_ipv4() == like.is_ipv4())
            .copied()
    }

    /// Whether sockets of the node may be bound to the address.
    pub(super) fn is_local(&self, node: NodeId, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.get(&address) == Some(&node)
    }
}
