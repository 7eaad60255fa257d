//! Faults come and go: links, partitions, power and pauses.

use super::address::{NodeId, SocketId, UnixName};
use super::routes::Link;
use super::state::{Event, Network};

impl Network {
    /// The link between nodes for which none is set.
    pub fn set_default_link(&mut self, link: Link) {
        self.routes.default = link;
    }

    /// All links are as `link`, and all nodes reach each other.
    pub fn calm_down(&mut self, link: Link) {
        self.routes.links.clear();
        self.set_default_link(link);
        self.heal();
    }

    /// The link of one direction.
    pub fn set_link(&mut self, from: NodeId, to: NodeId, link: Link) {
        self.routes.links.insert((from, to), link);
    }

    /// Packets pass only inside a group, also those that are on their way. Nodes in none of the
    /// groups are one more group.
    pub fn partition(&mut self, groups: &[Vec<NodeId>]) {
        self.routes.group_of = groups
            .iter()
            .enumerate()
            .flat_map(|(number, group)| group.iter().map(move |node| (*node, number)))
            .collect();
    }

    /// Ends a partition.
    pub fn heal(&mut self) {
        self.routes.group_of.clear();
    }

    /// The node loses its power. Its sockets vanish without a word to their peers, and packets to
    /// it are lost. Paths of its Unix sockets stay.
    pub fn cut(&mut self, node: NodeId) {
        let record = &mut self.nodes[node.0];
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
        for id in self.sockets_of(node) {
            self.remove(id);
        }
    }

    /// The node runs again after a power cut. Packets to sockets that it had are answered with a
    /// reset, or with an ICMP message.
    pub fn power_on(&mut self, node: NodeId) {
        self.nodes[node.0].is_up = true;
    }

    /// The node stands still, as a virtual machine that is paused: packets to it and the timers of
    /// its sockets wait.
    pub fn pause(&mut self, node: NodeId) {
        let node = &mut self.nodes[node.0];
        node.is_paused = node.is_up;
    }

    /// What has waited happens now, in order; [`advance`](Network::advance) delivers it.
    pub fn resume(&mut self, node: NodeId) {
        let record = &mut self.nodes[node.0];
        record.is_paused = false;
        for packet in std::mem::take(&mut record.held) {
            self.schedule(self.now, Event::Arrival(packet));
        }
        for id in self.sockets_of(node) {
            self.set_deadline(id);
        }
    }

    fn sockets_of(&self, node: NodeId) -> Vec<SocketId> {
        let sockets = self
            .sockets
            .iter()
            .filter(|(_, socket)| socket.node == node);
        sockets.map(|(id, _)| *id).collect()
    }
}
