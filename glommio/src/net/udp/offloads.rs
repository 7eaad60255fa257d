//! What the kernel does for many datagrams at a time, and what it tells of each.

#![forbid(unsafe_code)]

use super::UdpSocket;
use crate::net::Result;
use crate::sys::datagrams::{self, Told};

/// Offloads, and what [`recv_many`](UdpSocket::recv_many) is told of datagrams. All are off by
/// default. Errors are those of `getsockopt(2)` and `setsockopt(2)`.
impl UdpSocket {
    /// Has the kernel give datagrams of one sender and of equal length to
    /// [`recv_many`](Self::recv_many) as one (generic receive offload, `UDP_GRO`, Linux 5.0).
    ///
    /// Other methods do not tell where one datagram ends and the next one begins: with GRO, receive
    /// by `recv_many` alone.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives: `ENOPROTOOPT` on older kernels.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::UdpSocket;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let socket = UdpSocket::bind("127.0.0.1:0")?;
    /// socket.set_gro(true)?;
    /// socket.set_receive_ecn(true)?;
    /// socket.set_receive_destination(true)?;
    /// socket.set_receive_timestamps(true)?;
    /// # let device_has_fq = false;
    /// socket.set_transmit_times(device_has_fq)?;
    /// assert_eq!(socket.receive_drops()?, 0);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_gro(&self, coalesce: bool) -> Result<()> {
        datagrams::set_told(self.socket(), Told::Coalesced, coalesce)?;
        self.receives_coalesced.set(coalesce);
        Ok(())
    }

    /// Has [`recv_many`](Self::recv_many) report the mark of congestion of each
    /// datagram (`IP_RECVTOS`, `IPV6_RECVTCLASS`).
    pub fn set_receive_ecn(&self, receive: bool) -> Result<()> {
        Ok(datagrams::set_told(self.socket(), Told::Ecn, receive)?)
    }

    /// Has [`recv_many`](Self::recv_many) report where each datagram was sent to, and on
    /// which interface it came (`IP_PKTINFO`, `IPV6_RECVPKTINFO`): what a socket that is bound to no
    /// address needs to answer from the address that was asked.
    pub fn set_receive_destination(&self, receive: bool) -> Result<()> {
        Ok(datagrams::set_told(
            self.socket(),
            Told::Destination,
            receive,
        )?)
    }

    /// Has [`recv_many`](Self::recv_many) report when the kernel received each datagram
    /// (`SO_TIMESTAMPNS`).
    pub fn set_receive_timestamps(&self, receive: bool) -> Result<()> {
        Ok(datagrams::set_told(self.socket(), Told::Time, receive)?)
    }

    /// Leaves the waiting of [`send_segments_at`](Self::send_segments_at) to the kernel
    /// (`SO_TXTIME`, Linux 4.19), by its monotonic clock.
    ///
    /// Only the queueing discipline `fq` of the device that sends holds datagrams until then, for up
    /// to its horizon of ten seconds; others, and the loopback device, send them at once. Nothing
    /// tells a socket which it is: turn this on where the device is known to have `fq`
    /// (`tc qdisc show`).
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives: `ENOPROTOOPT` on older kernels. Kind `Unsupported` in a
    /// simulation.
    pub fn set_transmit_times(&self, hold: bool) -> Result<()> {
        if hold {
            datagrams::set_transmit_times(self.socket())?;
        }
        // What the socket was told has no effect on datagrams without a time.
        self.holds_until.set(hold);
        Ok(())
    }

    /// How many datagrams the kernel has dropped because the receive buffer was full, since the
    /// socket was made; counted in 32 bits. Zero in a simulation.
    pub fn receive_drops(&self) -> Result<u32> {
        Ok(datagrams::receive_drops(self.socket())?)
    }
}
