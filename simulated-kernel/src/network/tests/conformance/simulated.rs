//! Scenarios on the simulation, on the loopback addresses of one node.

use std::net::{IpAddr, Shutdown};
use std::time::Duration;

use super::super::super::address::NodeId;
use super::super::super::{Address, Kind, Network, Received, Result, SocketId, UnixName};
use super::{Setting, Sockets};

pub(super) struct Simulated {
    network: Network,
    node: NodeId,
    ids: Vec<SocketId>,
}

impl Simulated {
    pub(super) fn new() -> Self {
        let mut network = Network::new(1);
        let node = network.add_node("node", IpAddr::from([192, 0, 2, 1]));
        if let Some(limit) = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen")
            .ok()
            .and_then(|text| text.trim().parse().ok())
        {
            network.unix_queue = limit;
        }
        Self {
            network,
            node,
            ids: Vec::new(),
        }
    }

    fn add(&mut self, id: SocketId) -> usize {
        self.ids.push(id);
        self.ids.len() - 1
    }
}

impl Sockets for Simulated {
    fn socket(&mut self, kind: Kind) -> usize {
        let id = self.network.socket(self.node, kind);
        self.add(id)
    }

    fn pair(&mut self, kind: Kind) -> (usize, usize) {
        let (one, other) = self.network.pair(self.node, kind).expect("a pair");
        (self.add(one), self.add(other))
    }

    fn bind(&mut self, id: usize, address: &Address) -> Result<()> {
        self.network.bind(self.ids[id], address)
    }

    fn listen(&mut self, id: usize, backlog: usize) -> Result<()> {
        self.network.listen(self.ids[id], backlog)
    }

    fn connect(&mut self, id: usize, address: &Address) -> Result<()> {
        self.network.connect(self.ids[id], address)
    }

    fn accept(&mut self, id: usize) -> Result<(usize, Address)> {
        let (child, address) = self.network.accept(self.ids[id])?;
        Ok((self.add(child), address))
    }

    fn send(&mut self, id: usize, bytes: &[u8], address: Option<&Address>) -> Result<usize> {
        match address {
            None => self.network.send(self.ids[id], bytes),
            Some(address) => self.network.send_to(self.ids[id], bytes, address),
        }
    }

    fn receive(&mut self, id: usize, buffer: &mut [u8], peek: bool) -> Result<Received> {
        self.network.recv(self.ids[id], buffer, peek)
    }

    fn shutdown(&mut self, id: usize, how: Shutdown) -> Result<()> {
        self.network.shutdown(self.ids[id], how)
    }

    fn close(&mut self, id: usize) {
        self.network.close(self.ids[id]).expect("an open socket");
    }

    fn take_error(&mut self, id: usize) -> Result<Option<i32>> {
        self.network.take_error(self.ids[id])
    }

    fn local_addr(&mut self, id: usize) -> Result<Address> {
        self.network.local_addr(self.ids[id])
    }

    fn peer_addr(&mut self, id: usize) -> Result<Address> {
        self.network.peer_addr(self.ids[id])
    }

    fn set(&mut self, id: usize, setting: Setting) -> Result<()> {
        let (network, id) = (&mut self.network, self.ids[id]);
        match setting {
            Setting::ReuseAddress => network.set_reuse_address(id, true),
            Setting::ReusePort => network.set_reuse_port(id, true),
            Setting::Broadcast => network.set_broadcast(id, true),
            Setting::ResetOnClose => network.set_linger(id, Some(Duration::ZERO)),
            Setting::SendBuffer(bytes) => network.set_send_buffer(id, bytes),
            Setting::ReceiveBuffer(bytes) => network.set_receive_buffer(id, bytes),
        }
    }

    fn readiness(&mut self, id: usize) -> i16 {
        self.network.readiness(self.ids[id])
    }

    fn unlink(&mut self, path: &[u8]) {
        let names = &mut self.network.nodes[self.node.0].unix_names;
        names
            .remove(&UnixName::Path(path.to_vec()))
            .expect("a name");
    }

    fn pass(&mut self, time: Duration) {
        self.network.advance(self.network.now + time);
    }
}
