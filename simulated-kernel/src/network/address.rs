//! Names and numbers that the calls of a network take and return.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub use crate::{NodeId, Result, Time};

/// A socket. Ids are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub(super) u64);

/// The name of a Unix socket, without the leading zero byte of an abstract one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnixName {
    /// The socket has none.
    Unnamed,
    /// A path in the file system.
    Path(Vec<u8>),
    /// A name outside of the file system, which goes when the socket is closed.
    Abstract(Vec<u8>),
}

/// The address of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Of TCP and UDP.
    Ip(SocketAddr),
    /// Of a Unix socket.
    Unix(UnixName),
}

impl Address {
    pub(super) fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

/// The name of descriptors that are passed along with the data of a Unix socket (`SCM_RIGHTS`): what they are,
/// the owner of the network knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passed(pub u64);

/// What a receive has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes in the buffer.
    pub len: usize,
    /// Bytes of the datagram: more than `len` if the buffer was too short for it (`MSG_TRUNC`).
    pub full: usize,
    /// The sender of a datagram.
    pub from: Option<Address>,
}

impl Received {
    pub(super) fn bytes(len: usize) -> Self {
        Self {
            len,
            full: len,
            from: None,
        }
    }
}

/// The address as the network keeps it: IPv4 for an IPv4-mapped one, without scope and flow.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The address as a socket of the family shows it.
pub(super) fn shown(address: SocketAddr, is_v6: bool) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if is_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        _ => address,
    }
}

/// The unspecified address of a family.
pub(super) fn unspecified(is_v6: bool) -> IpAddr {
    if is_v6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

/// The loopback address of the family of `of`.
pub(super) fn loopback(of: IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

pub(super) fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_broadcast())
}
