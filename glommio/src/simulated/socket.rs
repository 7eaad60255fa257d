//! A socket of the simulated network, as calls on its descriptor see it.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;

use super::current::current;
use super::ids::NodeId;
use super::network::{self, Address, Kind, Network, Received, SocketId};
use super::world::World;

/// A socket of a node, by one of its descriptors.
#[derive(Clone)]
pub(crate) struct SimulatedSocket {
    world: Rc<World>,
    node: NodeId,
    pub(crate) id: SocketId,
}

/// `SCM_MAX_FD`
const PASSED_MAX: usize = 253;

/// What `fd` is in the simulation on this thread, if that is a socket of it.
#[inline]
pub(crate) fn socket(fd: RawFd) -> Option<SimulatedSocket> {
    let world = current()?;
    let (node, id) = world.socket(fd)?;
    Some(SimulatedSocket { world, node, id })
}

/// Whether a descriptor of the node whose code runs is free. So it is outside of a simulation, as far as this
/// knows.
///
/// # Errors
///
/// `EMFILE` if not.
pub(crate) fn may_open() -> io::Result<()> {
    match current() {
        Some(world) => world.here().map_or(Ok(()), |node| world.may_open(node)),
        None => Ok(()),
    }
}

/// `fd` is a new socket of the node whose code runs; nothing outside of a simulation.
pub(crate) fn add_socket(fd: RawFd, kind: Kind) {
    if let Some(world) = current()
        && let Some(node) = world.here()
    {
        let id = world.with_network(|network| network.socket(node.into(), kind));
        world.add_socket(fd, node, id);
    }
}

/// The same for two sockets that are connected with each other.
pub(crate) fn add_pair(fds: (RawFd, RawFd), kind: Kind) -> io::Result<()> {
    if let Some(world) = current()
        && let Some(node) = world.here()
    {
        let pair = world.with_network(|network| network.pair(node.into(), kind));
        let (one, other) = pair.map_err(|errno| io::Error::from_raw_os_error(errno.0))?;
        world.add_socket(fds.0, node, one);
        world.add_socket(fds.1, node, other);
    }
    Ok(())
}

/// The address of a host in the simulation on this thread; `None` outside of one.
pub(crate) fn look_up(host: &str) -> Option<io::Result<std::net::IpAddr>> {
    let world = current()?;
    let node = world.here()?;
    let found = world.with_network(|network| network.resolve(node.into(), host));
    Some(
        found.ok_or_else(|| {
            io::Error::other(format!("there is no node {host:?} in the simulation"))
        }),
    )
}

impl SimulatedSocket {
    /// `fd` is a further descriptor of the socket.
    pub(crate) fn is_also(&self, fd: RawFd) {
        self.world.add_socket(fd, self.node, self.id);
    }

    /// Calls `call` with the network and the socket.
    ///
    /// # Errors
    ///
    /// That of `call`.
    pub(crate) fn with<T>(
        &self,
        call: impl FnOnce(&mut Network, SocketId) -> network::Result<T>,
    ) -> io::Result<T> {
        let called = self.world.with_network(|network| call(network, self.id));
        called.map_err(|errno| io::Error::from_raw_os_error(errno.0))
    }

    pub(crate) fn receive(&self, buf: &mut [u8], peeks: bool) -> io::Result<Received> {
        self.with(|network, id| network.recv(id, buf, peeks))
    }

    pub(crate) fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.with(|network, id| network.send(id, buf))
    }

    /// Sends, and with the first byte duplicates of `fds`.
    pub(crate) fn send_passing(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        if fds.len() > PASSED_MAX {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let passed = self.world.pass(self.node, fds)?;
        let sent = self.with(|network, id| network.send_passing(id, buf, passed));
        if !matches!(sent, Ok(1..)) {
            self.world.lose_passed(passed);
        }
        sent
    }

    /// Receives, with descriptors that were sent along.
    pub(crate) fn receive_passed(&self, buf: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let (received, passed) = self.with(|network, id| network.recv_passed(id, buf))?;
        let Some(passed) = passed else {
            return Ok((received.len, Vec::new()));
        };
        if let Err(error) = self.world.may_open(self.node) {
            self.world.lose_passed(passed);
            return Err(error);
        }
        Ok((received.len, self.world.take_passed(passed)))
    }

    pub(crate) fn send_to(&self, buf: &[u8], address: &Address) -> io::Result<usize> {
        self.with(|network, id| network.send_to(id, buf, address))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.with(|network, id| network.shutdown(id, how))
    }

    pub(crate) fn readiness(&self) -> i16 {
        self.world
            .with_network(|network| network.readiness(self.id))
    }
}

/// An internet address, if it is one.
pub(crate) fn internet(address: &Address) -> Option<SocketAddr> {
    match address {
        Address::Ip(address) => Some(*address),
        Address::Unix(_) => None,
    }
}
