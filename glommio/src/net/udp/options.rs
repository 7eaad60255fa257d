//! Options of UDP sockets.

#![forbid(unsafe_code)]

use std::net::{Ipv4Addr, Ipv6Addr};

use super::UdpSocket;
use crate::net::Result;
use crate::net::options::{bound_options, internet_options, socket_options};

/// Options. There are more; the crate `socket2` sets them on any socket, through its `SockRef`.
impl UdpSocket {
    /// Whether datagrams may be sent to a broadcast address (`SO_BROADCAST`). Off by default.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn broadcast(&self) -> Result<bool> {
        Ok(self.socket().broadcast()?)
    }

    /// Sets what [`broadcast`](Self::broadcast) returns.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// let socket = glommio::net::UdpSocket::bind("127.0.0.1:0")?;
    /// socket.set_broadcast(true)?;
    /// assert!(socket.broadcast()?);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_broadcast(&self, broadcast: bool) -> Result<()> {
        Ok(self.socket().set_broadcast(broadcast)?)
    }

    /// Joins the group `multiaddr` on the interface with the address `interface`, or on one of the
    /// system's choice if that is unspecified.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, net::UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
    ///
    /// /// Receives what is sent to the group, on the interface that the system chooses, until it leaves.
    /// async fn one_notice(socket: &UdpSocket, buffer: &mut [u8]) -> Result<usize, GlommioError<()>> {
    ///     socket.join_multicast_v4(&GROUP, &Ipv4Addr::UNSPECIFIED)?;
    ///     let received = socket.recv_from(buffer).await;
    ///     socket.leave_multicast_v4(&GROUP, &Ipv4Addr::UNSPECIFIED)?;
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
    /// What `setsockopt(2)` gives.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, net::UdpSocket};
    /// use std::net::Ipv6Addr;
    ///
    /// const GROUP: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x123);
    ///
    /// /// Receives what is sent to the group, on the interface with this index, until it leaves.
    /// async fn one_notice(
    ///     socket: &UdpSocket,
    ///     interface: u32,
    ///     buffer: &mut [u8],
    /// ) -> Result<usize, GlommioError<()>> {
    ///     socket.join_multicast_v6(&GROUP, interface)?;
    ///     let received = socket.recv_from(buffer).await;
    ///     socket.leave_multicast_v6(&GROUP, interface)?;
    ///     Ok(received?.0)
    /// }
    /// ```
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> Result<()> {
        Ok(self.socket().join_multicast_v6(multiaddr, interface)?)
    }

    /// Leaves a group that was [joined](Self::join_multicast_v4).
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn leave_multicast_v4(&self, multiaddr: &Ipv4Addr, interface: &Ipv4Addr) -> Result<()> {
        Ok(self.socket().leave_multicast_v4(multiaddr, interface)?)
    }

    /// Leaves a group that was [joined](Self::join_multicast_v6).
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn leave_multicast_v6(&self, multiaddr: &Ipv6Addr, interface: u32) -> Result<()> {
        Ok(self.socket().leave_multicast_v6(multiaddr, interface)?)
    }

    /// Whether IPv4 multicasts sent from here come back to sockets of this host. On by default.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn multicast_loop_v4(&self) -> Result<bool> {
        Ok(self.socket().multicast_loop_v4()?)
    }

    /// Sets what [`multicast_loop_v4`](Self::multicast_loop_v4) returns.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// let socket = glommio::net::UdpSocket::bind("127.0.0.1:0")?;
    /// socket.set_multicast_loop_v4(false)?;
    /// socket.set_multicast_ttl_v4(4)?;
    /// assert_eq!((socket.multicast_loop_v4()?, socket.multicast_ttl_v4()?), (false, 4));
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_multicast_loop_v4(&self, multicast_loop_v4: bool) -> Result<()> {
        Ok(self.socket().set_multicast_loop_v4(multicast_loop_v4)?)
    }

    /// Whether IPv6 multicasts sent from here come back to sockets of this host. On by default.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn multicast_loop_v6(&self) -> Result<bool> {
        Ok(self.socket().multicast_loop_v6()?)
    }

    /// Sets what [`multicast_loop_v6`](Self::multicast_loop_v6) returns.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn set_multicast_loop_v6(&self, multicast_loop_v6: bool) -> Result<()> {
        Ok(self.socket().set_multicast_loop_v6(multicast_loop_v6)?)
    }

    /// The time to live of IPv4 multicasts sent from here. 1 by default: they stay in the network.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn multicast_ttl_v4(&self) -> Result<u32> {
        Ok(self.socket().multicast_ttl_v4()?)
    }

    /// Sets what [`multicast_ttl_v4`](Self::multicast_ttl_v4) returns.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn set_multicast_ttl_v4(&self, multicast_ttl_v4: u32) -> Result<()> {
        Ok(self.socket().set_multicast_ttl_v4(multicast_ttl_v4)?)
    }

    /// The address of the interface that IPv4 multicasts are sent on; unspecified, the default,
    /// leaves the choice to the system.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn multicast_if_v4(&self) -> Result<Ipv4Addr> {
        Ok(self.socket().multicast_if_v4()?)
    }

    /// Sets what [`multicast_if_v4`](Self::multicast_if_v4) returns.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives, for instance `EADDRNOTAVAIL` if no interface has that address.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::UdpSocket;
    /// use std::net::Ipv4Addr;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// assert_eq!(socket.multicast_if_v4()?, Ipv4Addr::UNSPECIFIED);
    /// socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?; // multicasts stay on this host
    /// assert_eq!(socket.multicast_if_v4()?, Ipv4Addr::LOCALHOST);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_multicast_if_v4(&self, interface: &Ipv4Addr) -> Result<()> {
        Ok(self.socket().set_multicast_if_v4(interface)?)
    }

    /// The index of the interface that IPv6 multicasts are sent on; 0, the default, leaves the
    /// choice to the system.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn multicast_if_v6(&self) -> Result<u32> {
        Ok(self.socket().multicast_if_v6()?)
    }

    /// Sets what [`multicast_if_v6`](Self::multicast_if_v6) returns.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives, for instance `ENODEV` if there is no such interface.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, net::UdpSocket};
    ///
    /// /// Sends multicasts on the interface with this index, to other hosts alone.
    /// fn to_others(socket: &UdpSocket, interface: u32) -> Result<(), GlommioError<()>> {
    ///     socket.set_multicast_if_v6(interface)?;
    ///     socket.set_multicast_loop_v6(false)?;
    ///     assert_eq!(socket.multicast_if_v6()?, interface);
    ///     assert!(!socket.multicast_loop_v6()?);
    ///     Ok(())
    /// }
    /// ```
    pub fn set_multicast_if_v6(&self, interface: u32) -> Result<()> {
        Ok(self.socket().set_multicast_if_v6(interface)?)
    }

    socket_options!();
    internet_options!();
    bound_options!();
}
