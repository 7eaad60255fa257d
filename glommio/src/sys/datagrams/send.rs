//! Sending.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use super::control::Control;
use super::name::Name;
#[cfg(feature = "simulation")]
use crate::simulated::{SimulatedSocket, network::Address, socket as simulated_socket};

/// What is sent, and how that differs from an ordinary datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) bytes: &'a [u8],
    /// None for the peer.
    pub(crate) to: Option<SocketAddr>,
    /// The kernel makes datagrams of this size of it, the last of what is left.
    pub(crate) segment_bytes: Option<u16>,
    /// The lowest two bits of the traffic class.
    pub(crate) ecn: Option<u8>,
    pub(crate) source: Option<IpAddr>,
    /// Nanoseconds of the clock that the socket was told.
    pub(crate) transmit_at: Option<u64>,
}

/// Sends without waiting and without `SIGPIPE`.
///
/// # Errors
///
/// What `sendmsg(2)` gives.
pub(crate) fn send(fd: RawFd, sending: &Sending<'_>) -> io::Result<()> {
    #[cfg(feature = "simulation")]
    if let Some(socket) = simulated_socket(fd) {
        return send_simulated(&socket, sending);
    }
    let (mut name, name_length) = match &sending.to {
        Some(to) => Name::new(to),
        None => (Name::EMPTY, 0),
    };
    let mut slice = libc::iovec {
        iov_base: sending.bytes.as_ptr().cast_mut().cast(),
        iov_len: sending.bytes.len(),
    };
    let mut control = Control::EMPTY;
    let control_length = sending.write(&mut control);
    // SAFETY: a header without name, slices or control data is one of zeros.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    if name_length > 0 {
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = name_length as _;
    }
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    if control_length > 0 {
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = control_length as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads the header, and of the name, the control messages and the bytes what
    // the lengths there say; all four outlive the call. It writes to none of them.
    let sent = unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const header, flags) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

impl Sending<'_> {
    /// Writes what makes it differ. Returns the length.
    fn write(&self, control: &mut Control) -> usize {
        let mut end = 0;
        if let Some(bytes) = self.segment_bytes {
            end = control.put(end, libc::SOL_UDP, libc::UDP_SEGMENT, &bytes.to_ne_bytes());
        }
        if let Some(ecn) = self.ecn {
            let data = libc::c_int::from(ecn).to_ne_bytes();
            // Each family leaves that of the other alone; which one it is depends on the peer.
            for (level, kind) in [
                (libc::IPPROTO_IP, libc::IP_TOS),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            ] {
                end = control.put(end, level, kind, &data);
            }
        }
        match self.source {
            Some(IpAddr::V4(address)) => {
                // `in_pktinfo`: an interface, the address, and one that only receivers are told.
                let mut data = [0; 12];
                data[4..8].copy_from_slice(&address.octets());
                end = control.put(end, libc::IPPROTO_IP, libc::IP_PKTINFO, &data);
            }
            Some(IpAddr::V6(address)) => {
                // `in6_pktinfo`: the address, and an interface.
                let mut data = [0; 20];
                data[..16].copy_from_slice(&address.octets());
                end = control.put(end, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data);
            }
            None => {}
        }
        if let Some(at) = self.transmit_at {
            let data = at.to_ne_bytes();
            end = control.put(end, libc::SOL_SOCKET, libc::SCM_TXTIME, &data);
        }
        end
    }
}

/// One segment at a time, as a network does that takes none. What such a network has no place for is
/// left out.
#[cfg(feature = "simulation")]
fn send_simulated(socket: &SimulatedSocket, sending: &Sending<'_>) -> io::Result<()> {
    let one = |bytes: &[u8]| match sending.to {
        Some(to) => socket.send_to(bytes, &Address::Ip(to)),
        None => socket.send(bytes),
    };
    let Some(segment_bytes) = sending.segment_bytes else {
        return one(sending.bytes).map(drop);
    };
    for (index, segment) in sending.bytes.chunks(segment_bytes.into()).enumerate() {
        match one(segment) {
            // As a network drops what there is no space for.
            Err(error) if index > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
            sent => sent.map(drop)?,
        }
    }
    Ok(())
}
