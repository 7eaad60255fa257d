//! Options of UDP sockets.

#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, Ipv6Addr};

use super::UdpSocket;
use crate::net::Result;
use crate::net::options::{bound_options, internet_options, plain_options, socket_options};

/// Options. There are more; the crate `socket2` sets them on any socket, through its `SockRef`.
/// Errors are those of `getsockopt(2)` and `setsockopt(2)`.
impl UdpSocket {
    /// Joins the group `multiaddr` on the interface with the address `interface`, or on one of the
    /// system's choice if that is unspecified.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives. Kind `Unsupported` in a simulation.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, net::UdpSocket};
    /// use std::net::{Ipv4Addr, Ipv6Addr};
    ///
    /// const V4: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
    /// const V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x123);
    ///
    /// /// Receives what is sent to the group, until it leaves.
    /// async fn one_notice(socket: &UdpSocket, buffer: &mut [u8]) -> Result<usize, GlommioError<()>> {
    ///     let is_v4 = socket.local_addr()?.is_ipv4();
    ///     match is_v4 {
    ///         true => socket.join_multicast_v4(&V4, &Ipv4Addr::UNSPECIFIED)?,
    ///         false => socket.join_multicast_v6(&V6, 0)?,
    ///     }
    ///     let received = socket.recv_from(buffer).await;
    ///     match is_v4 {
    ///         true => socket.leave_multicast_v4(&V4, &Ipv4Addr::UNSPECIFIED)?,
    ///         false => socket.leave_multicast_v6(&V6, 0)?,
    ///     }
    ///     Ok(received?.0)
    /// }
    /// ```
    pub fn join_multicast_v4(&self, multiaddr: &Ipv4Addr, interface: &Ipv4Addr) -> Result<()> {
        Ok(self.socket().join_multicast_v4(multiaddr, interface)?)
    }

    /// Joins the group `multiaddr` on the interface with the index `interface`, or on any if that
    /// is 0.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives. Kind `Unsupported` in a simulation.
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> Result<()> {
        Ok(self.socket().join_multicast_v6(multiaddr, interface)?)
    }

    /// Leaves a group that was [joined](Self::join_multicast_v4).
    pub fn leave_multicast_v4(&self, multiaddr: &Ipv4Addr, interface: &Ipv4Addr) -> Result<()> {
        Ok(self.socket().leave_multicast_v4(multiaddr, interface)?)
    }

    /// Leaves a group that was [joined](Self::join_multicast_v6).
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> Result<()> {
        Ok(self.socket().leave_multicast_v6(multiaddr, interface)?)
    }

    plain_options! {
        /// Whether datagrams may be sent to a broadcast address (`SO_BROADCAST`). Off by default.
        broadcast: bool, set_broadcast: bool;
        /// Whether IPv4 multicasts sent from here come back to sockets of this host. On by default.
        multicast_loop_v4: bool, set_multicast_loop_v4: bool;
        /// Whether IPv6 multicasts sent from here come back to sockets of this host. On by default.
        multicast_loop_v6: bool, set_multicast_loop_v6: bool;
        /// The time to live of IPv4 multicasts sent from here. 1 by default: they stay in the network.
        multicast_ttl_v4: u32, set_multicast_ttl_v4: u32;
        /// The address of the interface that IPv4 multicasts are sent on; unspecified, the default,
        /// leaves the choice to the system.
        multicast_if_v4: Ipv4Addr, set_multicast_if_v4: &Ipv4Addr,
            " Fails with `EADDRNOTAVAIL` if no interface has that address.";
        /// The index of the interface that IPv6 multicasts are sent on; 0, the default, leaves the
        /// choice to the system.
        multicast_if_v6: u32, set_multicast_if_v6: u32,
            " Fails with `ENODEV` if there is no such interface.";
    }

    socket_options!();
    internet_options!();
    bound_options!();
}
