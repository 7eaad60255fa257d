//! Options of UDP sockets that socket2 does not know.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};

use crate::sys::door::door;
use crate::sys::socket::{Socket, read_option};

/// What a receiver can be told of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told {
    /// How long those are that were received as one.
    Coalesced,
    Ecn,
    Destination,
    Time,
}

/// Has the kernel tell it, or stop that. A simulated network accepts it and tells nothing.
///
/// # Errors
///
/// What `setsockopt(2)` gives.
pub(crate) fn set_told(socket: &Socket, what: Told, on: bool) -> io::Result<()> {
    let fd = &socket.as_fd();
    match what {
        Told::Coalesced => setsockopt(fd, sockopt::UdpGroSegment, &on)?,
        Told::Time => setsockopt(fd, sockopt::ReceiveTimestampns, &on)?,
        // Sockets of IPv6 may receive datagrams of IPv4, too.
        Told::Ecn => {
            setsockopt(fd, sockopt::IpRecvTos, &on)?;
            if is_v6(socket)? {
                setsockopt(fd, sockopt::Ipv6RecvTClass, &on)?;
            }
        }
        Told::Destination if is_v6(socket)? => {
            setsockopt(fd, sockopt::Ipv6RecvPacketInfo, &on)?;
        }
        Told::Destination => setsockopt(fd, sockopt::Ipv4PacketInfo, &on)?,
    }
    Ok(())
}

fn is_v6(socket: &Socket) -> io::Result<bool> {
    Ok(socket.domain()? == socket2::Domain::IPV6)
}

/// Has the kernel hold datagrams until the time that they carry, by the monotonic clock.
///
/// # Errors
///
/// What `setsockopt(2)` gives; kind `Unsupported` in a simulation.
pub(crate) fn set_transmit_times(socket: &Socket) -> io::Result<()> {
    door!(socket(socket.as_fd()) => Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "a simulated network holds no datagrams until a time: leave transmit times off",
    )));
    let option = libc::sock_txtime {
        clockid: libc::CLOCK_MONOTONIC,
        flags: 0,
    };
    Ok(setsockopt(&socket.as_fd(), sockopt::TxTime, &option)?)
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every kernel with io_uring has it");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Whether the kernel cuts what is sent into segments.
pub(crate) fn has_segments(socket: &Socket) -> bool {
    getsockopt(&socket.as_fd(), sockopt::UdpGsoSegment).is_ok()
}

/// How many datagrams were dropped for lack of space.
///
/// # Errors
///
/// What `getsockopt(2)` gives.
pub(crate) fn receive_drops(socket: &Socket) -> io::Result<u32> {
    // `SK_MEMINFO_VARS` of them, Linux 4.12.
    let mut values = [0; 9 * size_of::<u32>()];
    read_option(
        socket.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_MEMINFO,
        &mut values,
    )?;
    let [.., a, b, c, d] = values;
    Ok(u32::from_ne_bytes([a, b, c, d]))
}
