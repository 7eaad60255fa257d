//! An option of sockets that neither socket2 nor nix has.

#![allow(unsafe_code, reason = "setsockopt(2)")]

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::AsRawFd;

use glommio::net::UdpSocket;

/// Has the kernel send datagrams up to the MTU of the device as they are, whatever it believes of the path, and
/// let no router cut them. RFC 8899 demands both of a sender that finds the longest datagram out by itself.
pub(super) fn probe(socket: &UdpSocket, is_ipv6: bool) -> io::Result<()> {
    set(
        socket,
        libc::IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        libc::IP_PMTUDISC_PROBE,
    )
    .or_else(
        // A socket of IPv6 that takes no IPv4.
        |error| if is_ipv6 { Ok(()) } else { Err(error) },
    )?;
    if is_ipv6 {
        let probe = libc::IPV6_PMTUDISC_PROBE;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)?;
    }
    Ok(())
}

fn set(socket: &UdpSocket, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let length = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the pointer is to a live `c_int` of `length` bytes, which the kernel reads within the
    // call. Another descriptor, level or option gives an error.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
