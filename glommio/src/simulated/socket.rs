//! A socket of the simulated network, as calls on its descriptor see it.

use std::io::{self, IoSlice, IoSliceMut, PipeReader, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;

use super::current::current;
use super::ids::{NodeId, Time};
use super::moments::Moment;
use super::world::World;
use simulated_kernel::disk;
use simulated_kernel::network::{self, Address, Kind, Network, Received, SocketId};

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
pub(crate) fn socket(fd: impl AsRawFd) -> Option<SimulatedSocket> {
    let world = current()?;
    let (node, id) = world.socket(fd.as_raw_fd())?;
    Some(SimulatedSocket { world, node, id })
}

/// `fd` is a new socket of the node whose code runs; nothing outside of a simulation.
pub(crate) fn add_socket(fd: RawFd, kind: Kind) {
    if let Some(world) = current()
        && let Some(node) = world.here()
    {
        let id = world.with_network(|network| network.socket(node, kind));
        world.add_socket(fd, node, id);
    }
}

/// The same for two sockets that are connected with each other.
pub(crate) fn add_pair(fds: (RawFd, RawFd), kind: Kind) -> io::Result<()> {
    if let Some(world) = current()
        && let Some(node) = world.here()
    {
        let pair = world.with_network(|network| network.pair(node, kind));
        let (one, other) = pair.map_err(io::Error::from_raw_os_error)?;
        world.add_socket(fds.0, node, one);
        world.add_socket(fds.1, node, other);
    }
    Ok(())
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
        called.map_err(io::Error::from_raw_os_error)
    }

    pub(crate) fn recv(&self, buf: &mut [u8], peeks: bool) -> io::Result<Received> {
        self.with(|network, id| network.recv(id, buf, peeks))
    }

    pub(crate) fn receive(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv(buf, false)?.len)
    }

    pub(crate) fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv(buf, true)?.len)
    }

    pub(crate) fn receive_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut whole = vec![0; bufs.iter().map(|buf| buf.len()).sum()];
        let received = self.receive(&mut whole)?;
        let mut rest = &whole[..received];
        for buf in bufs {
            let (part, left) = rest.split_at(rest.len().min(buf.len()));
            buf[..part.len()].copy_from_slice(part);
            rest = left;
        }
        Ok(received)
    }

    /// Nothing says of what kind the record is: there is no TLS.
    pub(crate) fn receive_record(&self, buf: &mut [u8]) -> io::Result<(usize, Option<u8>)> {
        Ok((self.receive(buf)?, None))
    }

    pub(crate) fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.noted_as_sent(self.with(|network, id| network.send(id, buf)))
    }

    fn noted_as_sent(&self, sent: io::Result<usize>) -> io::Result<usize> {
        if sent.is_ok() {
            (self.world.moments()).add(self.node, Moment::Sent, Time::ZERO);
        }
        sent
    }

    pub(crate) fn send_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        let whole: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.send(&whole)
    }

    /// Sends one segment at a time, as a network does that takes none.
    pub(crate) fn send_segments(
        &self,
        bytes: &[u8],
        to: Option<SocketAddr>,
        segment_bytes: Option<u16>,
    ) -> io::Result<()> {
        let one = |bytes: &[u8]| match to {
            Some(to) => self.send_to(bytes, &Address::Ip(to)),
            None => self.send(bytes),
        };
        let Some(segment_bytes) = segment_bytes else {
            return one(bytes).map(drop);
        };
        for (index, segment) in bytes.chunks(segment_bytes.into()).enumerate() {
            match one(segment) {
                // As a network drops what there is no space for.
                Err(error) if index > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                sent => sent.map(drop)?,
            }
        }
        Ok(())
    }

    /// Sends up to `bytes` bytes of a pipe, which are there. The rest is put back: nothing fills it meanwhile.
    pub(crate) fn drain_pipe(
        &self,
        (mut reader, writer, capacity): (&PipeReader, BorrowedFd<'_>, usize),
        bytes: usize,
    ) -> io::Result<usize> {
        let mut all = vec![0; capacity];
        let count = reader.read(&mut all)?;
        let sent = self.send(&all[..count.min(bytes)]);
        let rest = &all[sent.as_ref().map_or(0, |sent| *sent)..count];
        let put_back = nix::unistd::write(writer, rest)?;
        debug_assert_eq!(put_back, rest.len(), "there was room for it");
        sent
    }

    /// Sends, and with the first byte duplicates of `fds`.
    pub(crate) fn send_passing(&self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
        if fds.is_empty() {
            return self.send(buf);
        }
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
        // Of a connection, the address is refused or ignored.
        let address = match self.world.network().is_datagram(self.id) {
            true => of_disk(self.world.found(self.node, self.id, address))?,
            false => address.clone(),
        };
        self.noted_as_sent(self.with(|network, id| network.send_to(id, buf, &address)))
    }

    pub(crate) fn bind(&self, address: &Address) -> io::Result<()> {
        of_disk(self.world.bind(self.node, self.id, address))
    }

    pub(crate) fn connect(&self, address: &Address) -> io::Result<()> {
        of_disk(self.world.connect(self.node, self.id, address))
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.with(|network, id| network.shutdown(id, how))
    }

    /// All who wait are told of each connection: the order of their waits decides nothing.
    pub(crate) fn wake_accepts(&self) {}

    /// Whether any of `events` of `poll(2)` is there.
    pub(crate) fn is_ready(&self, events: i16) -> bool {
        let ready = (self.world).with_network(|network| network.readiness(self.id));
        ready & events != 0
    }
}

fn of_disk<T>(result: disk::Result<T>) -> io::Result<T> {
    result.map_err(io::Error::from_raw_os_error)
}

/// An internet address, if it is one.
pub(crate) fn internet(address: &Address) -> Option<SocketAddr> {
    match address {
        Address::Ip(address) => Some(*address),
        Address::Unix(_) => None,
    }
}
