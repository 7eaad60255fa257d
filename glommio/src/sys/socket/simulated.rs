//! Sockets of the kernel or of a simulated network.
//!
//! On a thread that runs a simulation, each new socket is one of the simulated network. Behind its
//! descriptor is one of the kernel all the same, of the same family and type, which is never bound nor connected: it has the number,
//! and the options that have no meaning in the simulation.

#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{self, UnixListener};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, TcpKeepalive, Type};

use crate::simulated::{self, SimulatedSocket};
use crate::sys::door::{closing, is_simulated, may_open, missing};
use simulated_kernel::network::{self, Address, Kind, Network, SocketId, UnixName};

/// A socket: of the kernel, or of a simulated network, as the module has it. What is not among its own methods is
/// asked of the kernel's.
#[derive(Debug)]
pub(crate) struct Socket(
    /// There until it is taken out.
    Option<socket2::Socket>,
);

impl Socket {
    pub(crate) fn new(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Self> {
        may_open()?;
        let made = socket2::Socket::new(domain, kind, protocol);
        let Some(kind) = kind_of(domain, kind) else {
            return made.map(Socket::from);
        };
        let socket = Socket::from(simulated::of_host(made)?);
        simulated::add_socket(socket.as_raw_fd(), kind);
        Ok(socket)
    }

    pub(crate) fn pair(
        domain: Domain,
        kind: Type,
        protocol: Option<Protocol>,
    ) -> io::Result<(Self, Self)> {
        if let Some(kind) = kind_of(domain, kind).filter(|_| is_simulated()) {
            may_open()?;
            let (one, other) = (
                simulated::of_host(socket2::Socket::new(domain, kind_type(kind), protocol))?,
                simulated::of_host(socket2::Socket::new(domain, kind_type(kind), protocol))?,
            );
            simulated::add_pair((one.as_raw_fd(), other.as_raw_fd()), kind)?;
            return Ok((one.into(), other.into()));
        }
        let (one, other) = socket2::Socket::pair(domain, kind, protocol)?;
        Ok((one.into(), other.into()))
    }

    /// Another descriptor of the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let Some(socket) = simulated::socket(self.as_raw_fd()) else {
            return self.kernel().try_clone().map(Socket::from);
        };
        may_open()?;
        let clone = Socket::from(simulated::of_host(self.kernel().try_clone())?);
        socket.is_also(clone.as_raw_fd());
        Ok(clone)
    }

    pub(crate) fn bind(&self, address: &SockAddr) -> io::Result<()> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => socket.bind(&simulated_address(address)?),
            None => self.kernel().bind(address),
        }
    }

    pub(crate) fn listen(&self, backlog: i32) -> io::Result<()> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => {
                let backlog = usize::try_from(backlog).unwrap_or(usize::MAX);
                socket.with(|network, id| network.listen(id, backlog))
            }
            None => self.kernel().listen(backlog),
        }
    }

    pub(crate) fn connect(&self, address: &SockAddr) -> io::Result<()> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => socket.connect(&simulated_address(address)?),
            None => self.kernel().connect(address),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => socket.shutdown(how),
            None => self.kernel().shutdown(how),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SockAddr> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => socket.local_addr(),
            None => self.kernel().local_addr(),
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SockAddr> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => socket.peer_addr(),
            None => self.kernel().peer_addr(),
        }
    }

    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => {
                let error = socket.with(|network, id| network.take_error(id))?;
                Ok(error.map(io::Error::from_raw_os_error))
            }
            None => self.kernel().take_error(),
        }
    }

    pub(crate) fn set_reuse_address(&self, reuse: bool) -> io::Result<()> {
        self.simulate(|network, id| network.set_reuse_address(id, reuse))?;
        self.kernel().set_reuse_address(reuse)
    }

    pub(crate) fn set_reuse_port(&self, reuse: bool) -> io::Result<()> {
        self.simulate(|network, id| network.set_reuse_port(id, reuse))?;
        self.kernel().set_reuse_port(reuse)
    }

    pub(crate) fn set_broadcast(&self, allowed: bool) -> io::Result<()> {
        self.simulate(|network, id| network.set_broadcast(id, allowed))?;
        self.kernel().set_broadcast(allowed)
    }

    pub(crate) fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.simulate(|network, id| network.set_linger(id, linger))?;
        self.kernel().set_linger(linger)
    }

    pub(crate) fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.simulate(|network, id| network.set_send_buffer(id, bytes))?;
        self.kernel().set_send_buffer_size(bytes)
    }

    pub(crate) fn set_recv_buffer_size(&self, bytes: usize) -> io::Result<()> {
        self.simulate(|network, id| network.set_receive_buffer(id, bytes))?;
        self.kernel().set_recv_buffer_size(bytes)
    }

    pub(crate) fn set_tcp_user_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.simulate(|network, id| network.set_user_timeout(id, limit))?;
        self.kernel().set_tcp_user_timeout(limit)
    }

    pub(crate) fn set_tcp_keepalive(&self, keepalive: &TcpKeepalive) -> io::Result<()> {
        self.needs_kernel("keep-alives")?
            .set_tcp_keepalive(keepalive)
    }

    pub(crate) fn join_multicast_v4(&self, group: &Ipv4Addr, at: &Ipv4Addr) -> io::Result<()> {
        self.needs_kernel("multicast")?.join_multicast_v4(group, at)
    }

    pub(crate) fn join_multicast_v6(&self, group: &Ipv6Addr, at: u32) -> io::Result<()> {
        self.needs_kernel("multicast")?.join_multicast_v6(group, at)
    }

    /// The kernel's, for what a simulated network does not have.
    fn needs_kernel(&self, what: &str) -> io::Result<&socket2::Socket> {
        match simulated::socket(self.as_raw_fd()) {
            Some(_) => Err(missing(what)),
            None => Ok(self.kernel()),
        }
    }

    pub(crate) fn send_to_with_flags(
        &self,
        buf: &[u8],
        address: &SockAddr,
        flags: libc::c_int,
    ) -> io::Result<usize> {
        match simulated::socket(self.as_raw_fd()) {
            Some(socket) => socket.send_to(buf, &simulated_address(address)?),
            None => self.kernel().send_to_with_flags(buf, address, flags),
        }
    }

    /// Sets an option that has a meaning in the simulation, too.
    fn simulate(
        &self,
        set: impl FnOnce(&mut Network, SocketId) -> network::Result<()>,
    ) -> io::Result<()> {
        simulated::socket(self.as_raw_fd()).map_or(Ok(()), |socket| socket.with(set))
    }

    fn kernel(&self) -> &socket2::Socket {
        self.0.as_ref().expect("it is taken out at the end")
    }

    fn take(mut self) -> socket2::Socket {
        self.0.take().expect("it is taken out once")
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(socket) = &self.0 {
            closing(socket.as_raw_fd());
        }
    }
}

impl Deref for Socket {
    type Target = socket2::Socket;

    fn deref(&self) -> &socket2::Socket {
        self.kernel()
    }
}

impl From<socket2::Socket> for Socket {
    fn from(socket: socket2::Socket) -> Self {
        Socket(Some(socket))
    }
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        socket2::Socket::from(fd).into()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.take().into()
    }
}

impl From<Socket> for TcpListener {
    fn from(socket: Socket) -> Self {
        socket.take().into()
    }
}

impl From<Socket> for UnixListener {
    fn from(socket: Socket) -> Self {
        socket.take().into()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.kernel().as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel().as_fd()
    }
}

/// What the functions beside this answer.
impl SimulatedSocket {
    pub(super) fn receive_from(
        &self,
        buf: &mut [u8],
        flags: libc::c_int,
    ) -> io::Result<(usize, SockAddr)> {
        let received = self.recv(buf, flags & libc::MSG_PEEK != 0)?;
        let from = match &received.from {
            Some(address) => kernel_address(address)?,
            // That of a connection is of no length.
            // SAFETY: nothing of such an address is read.
            None => unsafe { SockAddr::new(MaybeUninit::zeroed().assume_init(), 0) },
        };
        Ok((received.len, from))
    }

    pub(super) fn local_addr(&self) -> io::Result<SockAddr> {
        kernel_address(&self.with(|network, id| network.local_addr(id))?)
    }

    pub(super) fn peer_addr(&self) -> io::Result<SockAddr> {
        kernel_address(&self.with(|network, id| network.peer_addr(id))?)
    }

    pub(in crate::sys) fn unix_local_addr(&self) -> io::Result<net::SocketAddr> {
        unix_address(&self.with(|network, id| network.local_addr(id))?)
    }

    pub(in crate::sys) fn unix_peer_addr(&self) -> io::Result<net::SocketAddr> {
        unix_address(&self.with(|network, id| network.peer_addr(id))?)
    }
}

fn unix_address(address: &Address) -> io::Result<net::SocketAddr> {
    match address {
        Address::Unix(UnixName::Path(path)) => {
            net::SocketAddr::from_pathname(OsStr::from_bytes(simulated::path_of(path)))
        }
        Address::Unix(UnixName::Abstract(name)) => net::SocketAddr::from_abstract_name(name),
        Address::Unix(UnixName::Unnamed) => net::SocketAddr::from_pathname(""),
        Address::Ip(_) => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    }
}

/// What a socket is in the simulated network; nothing for those that it does not have.
fn kind_of(domain: Domain, kind: Type) -> Option<Kind> {
    match (domain, kind) {
        (Domain::IPV4, Type::STREAM) => Some(Kind::TcpV4),
        (Domain::IPV6, Type::STREAM) => Some(Kind::TcpV6),
        (Domain::IPV4, Type::DGRAM) => Some(Kind::UdpV4),
        (Domain::IPV6, Type::DGRAM) => Some(Kind::UdpV6),
        (Domain::UNIX, Type::STREAM) => Some(Kind::UnixStream),
        (Domain::UNIX, Type::DGRAM) => Some(Kind::UnixDatagram),
        _ => None,
    }
}

fn kind_type(kind: Kind) -> Type {
    match kind {
        Kind::TcpV4 | Kind::TcpV6 | Kind::UnixStream => Type::STREAM,
        Kind::UdpV4 | Kind::UdpV6 | Kind::UnixDatagram => Type::DGRAM,
    }
}

/// A descriptor for a connection that was accepted: a socket of the kernel that does nothing.
pub(crate) fn placeholder(kind: Kind) -> io::Result<OwnedFd> {
    let domain = match kind {
        Kind::TcpV4 | Kind::UdpV4 => Domain::IPV4,
        Kind::TcpV6 | Kind::UdpV6 => Domain::IPV6,
        _ => Domain::UNIX,
    };
    Ok(socket2::Socket::new(domain, kind_type(kind), None)?.into())
}

/// # Errors
///
/// `EAFNOSUPPORT` for those of other families.
pub(crate) fn simulated_address(address: &SockAddr) -> io::Result<Address> {
    if let Some(address) = address.as_socket() {
        return Ok(Address::Ip(address));
    }
    if !address.is_unix() {
        return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT));
    }
    let name = match (address.as_pathname(), address.as_abstract_namespace()) {
        (Some(path), _) => UnixName::Path(path.as_os_str().as_bytes().to_vec()),
        (None, Some(name)) => UnixName::Abstract(name.to_vec()),
        (None, None) => UnixName::Unnamed,
    };
    Ok(Address::Unix(name))
}

/// The address as the kernel would have written it.
pub(crate) fn kernel_address(address: &Address) -> io::Result<SockAddr> {
    match address {
        Address::Ip(address) => Ok(SockAddr::from(*address)),
        Address::Unix(UnixName::Path(path)) => {
            SockAddr::unix(Path::new(OsStr::from_bytes(simulated::path_of(path))))
        }
        Address::Unix(UnixName::Abstract(name)) => {
            let path = [b"\0", &**name].concat();
            SockAddr::unix(Path::new(OsStr::from_bytes(&path)))
        }
        Address::Unix(UnixName::Unnamed) => SockAddr::unix(""),
    }
}
