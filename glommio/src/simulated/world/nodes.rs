//! Nodes: how they come to be, start and end.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::super::ids::{End, NodeId};
use super::{Node, Planned, World};
use simulated_kernel::disk::{Disk, DiskSettings};

/// Nodes have the addresses after this one: 10.0.0.1 and so on.
const FIRST_ADDRESS: u32 = 0x0A00_0000;

impl World {
    pub(crate) fn add_node(&self, name: &str, disk: DiskSettings) -> NodeId {
        let seed = self.draw(|rng| rng.u64(..));
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(Node {
            name: name.to_owned(),
            disk: Disk::new(seed, disk),
            ended: None,
            starts: 0,
            executors: 0,
        });
        let number = nodes.len();
        let address = Ipv4Addr::from_bits(FIRST_ADDRESS + number as u32);
        self.network.borrow_mut().add_node(name, address.into());
        NodeId(number - 1)
    }

    /// A node is about to end: of the calls that it waits for, those which have been made by
    /// then without its knowing. The others are forgotten.
    pub(crate) fn calls_made_unseen(&self, node: NodeId) -> Vec<Box<dyn FnOnce()>> {
        let mut calls = self.take_calls(node);
        self.draw(|rng| rng.shuffle(&mut calls));
        let (made, forgotten): (Vec<_>, _) =
            (calls.into_iter()).partition(|_| self.draw(fastrand::Rng::bool));
        // What they capture may be dropped with nothing borrowed only.
        drop::<Vec<_>>(forgotten);
        made
    }

    /// Takes the calls of a node that are planned.
    fn take_calls(&self, node: NodeId) -> Vec<Box<dyn FnOnce()>> {
        let mut planned = self.planned.borrow_mut();
        let (calls, others) = (std::mem::take(&mut *planned).into_iter())
            .partition(|(_, it)| matches!(it, Planned::Call(of, _) if *of == node));
        *planned = others;
        let calls = BTreeMap::into_values(calls).filter_map(|it| match it {
            Planned::Call(_, call) => Some(call),
            Planned::Operation(..) => None,
        });
        calls.collect()
    }

    /// A node starts, for the first time or again.
    pub(crate) fn start_node(&self, node: NodeId) {
        let ended = self.nodes.borrow_mut()[node.0].ended.take();
        if ended == Some(End::Power) {
            self.with_network(|network| network.power_on(node));
        }
        let state = &mut self.nodes.borrow_mut()[node.0];
        state.starts += 1;
        state.executors = 0;
    }

    /// How often a node has started.
    pub(crate) fn starts(&self, node: NodeId) -> u64 {
        self.nodes.borrow()[node.0].starts
    }

    /// Counts the executors of a node from 1, anew whenever it starts.
    pub(crate) fn next_executor_id(&self, node: NodeId) -> usize {
        let state = &mut self.nodes.borrow_mut()[node.0];
        state.executors += 1;
        state.executors
    }

    /// A node ends, if it has not: nothing is open any more, and with its power its disk loses what is lost in
    /// a power cut.
    pub(crate) fn end_node(&self, node: NodeId, end: End) {
        let ended = self.nodes.borrow_mut()[node.0].ended;
        if ended == Some(End::Power) || ended == Some(end) {
            return;
        }
        self.nodes.borrow_mut()[node.0].ended = Some(end);
        // What they capture may be dropped with nothing borrowed only.
        drop(self.take_calls(node));
        let sockets = self.descriptors.borrow_mut().forget_node(node);
        self.passed.borrow_mut().retain(|_, (of, _)| *of != node);
        let mut nodes = self.nodes.borrow_mut();
        let disk = &mut nodes[node.0].disk;
        match end {
            End::Power => {
                disk.power_cut();
                drop(nodes);
                self.with_network(|network| network.cut(node));
            }
            End::Processes => {
                disk.close_all();
                drop(nodes);
                for socket in sockets {
                    // One that is gone already is closed.
                    let _ = self.with_network(|network| network.close(socket));
                }
            }
        }
    }

    /// Whether code that runs now is of a node that has ended: only destructors are.
    pub(crate) fn is_off(&self, node: NodeId) -> bool {
        self.nodes.borrow()[node.0].ended.is_some()
    }

    /// Changes what the disk of a node is like, but for its sectors.
    pub(crate) fn set_disk(&self, node: NodeId, settings: DiskSettings) {
        let disk = &mut self.nodes.borrow_mut()[node.0].disk;
        disk.set_settings(DiskSettings {
            sector_bytes: disk.settings().sector_bytes,
            ..settings
        });
    }
}
