//! Sending.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use super::control::{BATCH, Control};
use super::name::Name;
use crate::sys::door::door;

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
    door!(socket(fd).send_segments(sending.bytes, sending.to, sending.segment_bytes));
    let mut parts = Parts::EMPTY;
    let header = parts.fill(sending);
    // SAFETY: the kernel reads the header and what it points to: `parts` and the bytes of `sending`,
    // with their lengths. All outlive the call, and it writes to none of them.
    let sent = unsafe { libc::syscall(libc::SYS_sendmsg, fd, &raw const header, FLAGS) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends those at the front, as many as there is space for, and up to [`BATCH`], as [`send`] does.
/// Returns how many.
///
/// # Errors
///
/// What `sendmmsg(2)` gives, if it is the first that fails.
pub(crate) fn send_many<'a>(
    fd: RawFd,
    mut many: impl Iterator<Item = Sending<'a>>,
) -> io::Result<usize> {
    door!(socket(fd) => many.next().map_or(Ok(0), |it| send(fd, &it).map(|()| 1)));
    let mut parts = [const { MaybeUninit::uninit() }; BATCH];
    // SAFETY: headers consist of pointers that may be null, and of integers.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut count = 0;
    for ((parts, header), sending) in parts.iter_mut().zip(&mut headers).zip(&mut many) {
        header.msg_hdr = parts.write(Parts::EMPTY).fill(&sending);
        count += 1;
    }
    // SAFETY: the kernel reads the first `count` headers and what they point to: an element of
    // `parts` and the bytes of a `Sending` each, which are borrowed for longer than the call. It
    // writes to the lengths in the headers alone.
    let sent = unsafe { libc::syscall(libc::SYS_sendmmsg, fd, headers.as_mut_ptr(), count, FLAGS) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// What the header of a message points to, but for the bytes.
#[derive(Clone, Copy)]
struct Parts {
    name: Name,
    slice: libc::iovec,
    control: Control<SENT>,
}

/// A segment size, two marks, an address and a time.
const SENT: usize = 24 + 2 * 24 + 40 + 24;

impl Parts {
    const EMPTY: Parts = Parts {
        name: Name::EMPTY,
        slice: libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        },
        control: Control::EMPTY,
    };

    /// The header of a message. It points into `self`, and to the bytes of `sending`, which are not
    /// written to.
    fn fill(&mut self, sending: &Sending<'_>) -> libc::msghdr {
        // SAFETY: a header without name, slices or control data is one of zeros.
        let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        if let Some(to) = &sending.to {
            let length;
            (self.name, length) = Name::new(to);
            header.msg_name = (&raw mut self.name).cast();
            header.msg_namelen = length as _;
        }
        self.slice.iov_base = sending.bytes.as_ptr().cast_mut().cast();
        self.slice.iov_len = sending.bytes.len();
        header.msg_iov = &raw mut self.slice;
        header.msg_iovlen = 1;
        let length = sending.write(&mut self.control);
        if length > 0 {
            header.msg_control = (&raw mut self.control).cast();
            header.msg_controllen = length as _;
        }
        header
    }
}

impl Sending<'_> {
    /// Writes what makes it differ. Returns the length.
    fn write(&self, control: &mut Control<SENT>) -> usize {
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
