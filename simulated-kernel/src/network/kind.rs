//! The kinds of sockets.

use std::net::SocketAddr;

use super::address::{Address, Result, canonical};

/// What a socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6, and IPv4 by mapped addresses.
    TcpV6,
    /// UDP over IPv4.
    UdpV4,
    /// UDP over IPv6, and IPv4 by mapped addresses.
    UdpV6,
    /// `SOCK_STREAM` of `AF_UNIX`.
    UnixStream,
    /// `SOCK_DGRAM` of `AF_UNIX`.
    UnixDatagram,
}

impl Kind {
    /// The address in canonical form, if sockets of this kind take it.
    pub(super) fn accepts(self, address: &Address) -> Result<SocketAddr> {
        let address = address.ip().ok_or(libc::EINVAL)?;
        match (self, address) {
            (Self::TcpV4 | Self::UdpV4, SocketAddr::V6(_)) => Err(libc::EAFNOSUPPORT),
            (Self::TcpV6 | Self::UdpV6, SocketAddr::V4(_)) => Err(libc::EINVAL),
            _ => Ok(canonical(address)),
        }
    }

    pub(super) fn is_v6(self) -> bool {
        matches!(self, Self::TcpV6 | Self::UdpV6)
    }

    pub(super) fn is_stream(self) -> bool {
        matches!(self, Self::TcpV4 | Self::TcpV6 | Self::UnixStream)
    }

    pub(super) fn protocol(self) -> Protocol {
        match self {
            Self::TcpV4 | Self::TcpV6 => Protocol::Tcp,
            Self::UdpV4 | Self::UdpV6 => Protocol::Udp,
            Self::UnixStream | Self::UnixDatagram => Protocol::Unix,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    Tcp,
    Udp,
    Unix,
}
