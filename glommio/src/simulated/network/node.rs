//! Nodes: names, addresses, power and pauses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::route::Packet;
use super::{Event, Link, Network, NodeId, SocketId, UnixName};

#[derive(Debug)]
pub(super) struct Node {
    addresses: Vec<IpAddr>,
    pub(super) is_up: bool,
    pub(super) is_paused: bool,
    /// Packets that came while it was paused.
    pub(super) held: Vec<Packet>,
    /// The names of Unix sockets. A path stays when its socket is closed, until it is unlinked.
    pub(super) unix_names: BTreeMap<UnixName, Option<SocketId>>,
}

impl Network {
    /// Adds a node with an address, in addition to the loopback addresses. A name or an
    /// address that another node has already is the new node's from now on.
    pub(crate) fn add_node(&mut self, name: &str, address: IpAddr) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
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
    pub(crate) fn add_address(&mut self, node: NodeId, address: IpAddr) {
        let address = address.to_canonical();
        if let Some(previous) = self.addresses.insert(address, node) {
            self.nodes[previous.0 as usize]
                .addresses
                .retain(|other| *other != address);
        }
        self.nodes[node.0 as usize].addresses.push(address);
    }

    /// The address of a name: that of a node, the loopback address for `localhost`, or the one that
    /// the name is the text of.
    pub(crate) fn resolve(&self, from: NodeId, name: &str) -> Option<IpAddr> {
        if name == "localhost" {
            return self
                .nodes
                .get(from.0 as usize)
                .map(|_| IpAddr::from([127, 0, 0, 1]));
        }
        if let Some(node) = self.names.get(name) {
            return self.nodes[node.0 as usize].addresses.first().copied();
        }
        name.parse().ok()
    }

    /// The address of `node` in the family of `like`.
    pub(super) fn address_of(&self, node: NodeId, like: IpAddr) -> Option<IpAddr> {
        let addresses = &self.nodes[node.0 as usize].addresses;
        addresses
            .iter()
            .find(|address| address.is_ipv4() == like.is_ipv4())
            .copied()
    }

    /// Whether sockets of the node may be bound to the address.
    pub(super) fn is_local(&self, node: NodeId, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.get(&address) == Some(&node)
    }

    pub(crate) fn set_default_link(&mut self, link: Link) {
        self.routes.default = link;
    }

    /// The link of one direction.
    pub(crate) fn set_link(&mut self, from: NodeId, to: NodeId, link: Link) {
        self.routes.links.insert((from, to), link);
    }

    /// Packets pass only inside a group, also those that are on their way. Nodes in none of the
    /// groups are one more group.
    pub(crate) fn partition(&mut self, groups: &[Vec<NodeId>]) {
        self.routes.group_of = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| group.iter().map(move |node| (*node, number)))
            .collect();
    }

    pub(crate) fn heal(&mut self) {
        self.routes.group_of.clear();
    }

    /// The node loses its power. Its sockets vanish without a word to their peers, and packets to
    /// it are lost. Paths of its Unix sockets stay.
    pub(crate) fn cut(&mut self, node: NodeId) {
        let Some(record) = self.nodes.get_mut(node.0 as usize) else {
            return;
        };
        record.is_up = false;
        record.is_paused = false;
        record.held.clear();
        record
            .unix_names
            .retain(|name, _| matches!(name, UnixName::Path(_)));
        record
            .unix_names
            .values_mut()
            .for_each(|socket| *socket = None);
        let ids: Vec<SocketId> = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.node == node)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.remove(id);
        }
    }

    /// The node runs again after a power cut. Packets to sockets that it had are answered with a
    /// reset, or with an ICMP message.
    pub(crate) fn power_on(&mut self, node: NodeId) {
        if let Some(node) = self.nodes.get_mut(node.0 as usize) {
            node.is_up = true;
        }
    }

    /// The node stands still, as a virtual machine that is paused: packets to it and the timers of
    /// its sockets wait.
    pub(crate) fn pause(&mut self, node: NodeId) {
        if let Some(node) = self.nodes.get_mut(node.0 as usize) {
            node.is_paused = node.is_up;
        }
    }

    /// What has waited happens now, in order; [`advance`](Network::advance) delivers it.
    pub(crate) fn resume(&mut self, node: NodeId) {
        let Some(record) = self.nodes.get_mut(node.0 as usize) else {
            return;
        };
        record.is_paused = false;
        for packet in std::mem::take(&mut record.held) {
            self.schedule(self.now, Event::Arrival(packet));
        }
        let ids: Vec<SocketId> = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.node == node)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.set_deadline(id);
        }
    }
}
