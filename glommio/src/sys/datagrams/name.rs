//! Socket addresses of the internet, as the kernel has them.

#![forbid(unsafe_code)]

use std::io;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address: that of IPv6 is the longest.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct Name([u8; size_of::<libc::sockaddr_in6>()]);

impl Name {
    pub(super) const EMPTY: Name = Name([0; _]);

    /// With the length of what is valid of it.
    pub(super) fn new(address: &SocketAddr) -> (Name, usize) {
        let mut name = [0; _];
        let mut put = |at: usize, bytes: &[u8]| name[at..at + bytes.len()].copy_from_slice(bytes);
        put(2, &address.port().to_be_bytes());
        let (family, length) = match address {
            SocketAddr::V4(address) => {
                put(4, &address.ip().octets());
                (libc::AF_INET, size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(address) => {
                put(4, &address.flowinfo().to_ne_bytes());
                put(8, &address.ip().octets());
                put(24, &address.scope_id().to_ne_bytes());
                (libc::AF_INET6, size_of::<libc::sockaddr_in6>())
            }
        };
        put(0, &(family as libc::sa_family_t).to_ne_bytes());
        (Name(name), length)
    }

    /// Of an address of this `length`.
    ///
    /// # Errors
    ///
    /// Kind `InvalidData` if it is of another family.
    pub(super) fn address(&self, length: usize) -> io::Result<SocketAddr> {
        let [f0, f1, p0, p1, ..] = self.0;
        let family = libc::c_int::from(libc::sa_family_t::from_ne_bytes([f0, f1]));
        let port = u16::from_be_bytes([p0, p1]);
        match family {
            libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
                Ok(SocketAddrV4::new(self.array::<4>(4).into(), port).into())
            }
            libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
                let flow = u32::from_ne_bytes(self.array(4));
                let address = self.array::<16>(8).into();
                let scope = u32::from_ne_bytes(self.array(24));
                Ok(SocketAddrV6::new(address, port, flow, scope).into())
            }
            _ => Err(no_internet_address()),
        }
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self.0[at..].first_chunk();
        *bytes.expect("within the longest address")
    }
}

pub(super) fn no_internet_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "what was received came without an internet address: the socket is not a UDP socket",
    )
}
