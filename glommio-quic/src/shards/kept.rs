//! The sockets of a process that shares its address with others.

use super::order::Placed;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// They stay at their places in the kernel, one for each shard, until all shards have ended. Then the
/// last is closed first: each leaves its place to the last of all, so that as many of a process that has
/// taken over come to the same places, in their order.
pub(super) struct Kept(Vec<UdpSocket>);

impl Kept {
    /// Binds `count` sockets, each by `bind`.
    pub(super) fn new(
        addr: SocketAddr,
        count: usize,
        bind: impl Fn(SocketAddr) -> io::Result<UdpSocket>,
    ) -> io::Result<Kept> {
        let sockets = (0..count).map(|_| bind(addr));
        Ok(Kept(sockets.collect::<io::Result<_>>()?))
    }

    /// The socket of a shard, by its place among them.
    pub(super) fn socket(self: &Arc<Kept>, place: usize) -> io::Result<Placed<UdpSocket>> {
        Ok(Placed::kept(self.0[place].try_clone()?, Arc::clone(self)))
    }

    pub(super) fn any(&self) -> &UdpSocket {
        &self.0[0]
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        while let Some(last) = self.0.pop() {
            drop(last);
        }
    }
}
