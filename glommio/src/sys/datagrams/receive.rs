//! Receiving.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;
use std::time::{Duration, SystemTime};

use super::control::{BATCH, Control, ControlMessages};
use super::name::Name;
use crate::sys::door::door;

/// What was received into one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    /// Of datagrams that were received as one; none for a single one.
    pub(crate) segment_bytes: Option<usize>,
    /// The lowest two bits of the traffic class.
    pub(crate) ecn: u8,
    /// Where it was sent to, and the index of the interface that received it.
    pub(crate) destination: Option<(IpAddr, u32)>,
    pub(crate) received_at: Option<SystemTime>,
    /// The buffer was too short.
    pub(crate) is_truncated: bool,
}

/// Memory for what the kernel says of the datagrams of one call.
pub(crate) struct Headers {
    pub(super) headers: [libc::mmsghdr; BATCH],
    slices: [libc::iovec; BATCH],
    pub(super) names: [Name; BATCH],
    controls: [Received; BATCH],
}

/// Space for all control messages that this crate asks for, and some more.
type Received = Control<256>;

impl Headers {
    pub(crate) fn new() -> Box<Self> {
        // SAFETY: headers and slices consist of pointers that may be null, and of integers.
        let (headers, slices) = unsafe {
            (
                MaybeUninit::zeroed().assume_init(),
                MaybeUninit::zeroed().assume_init(),
            )
        };
        Box::new(Headers {
            headers,
            slices,
            names: [Name::EMPTY; BATCH],
            controls: [Received::EMPTY; BATCH],
        })
    }

    /// Receives what is there, without waiting, one message in each of `buffers` from the **last**
    /// one on, and no more than [`BATCH`]. Returns how many there are; [`message`](Self::message)
    /// has more of each.
    ///
    /// # Errors
    ///
    /// What `recvmmsg(2)` gives, if it is the first message that fails.
    pub(crate) fn receive(&mut self, fd: RawFd, buffers: &mut [Box<[u8]>]) -> io::Result<usize> {
        door!(socket(fd).receive_many(self, buffers));
        let count = buffers.len().min(BATCH);
        for (index, buffer) in buffers.iter_mut().rev().take(count).enumerate() {
            self.slices[index] = libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            };
            let header = &mut self.headers[index].msg_hdr;
            header.msg_name = (&raw mut self.names[index]).cast();
            header.msg_namelen = size_of::<Name>() as _;
            header.msg_iov = &raw mut self.slices[index];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = size_of::<Received>() as _;
            header.msg_flags = 0;
        }
        // SAFETY: the kernel writes to the first `count` headers, which were all set above, and
        // where they point to, no more than the lengths there: to a name, a control buffer and a
        // slice of the same index in `self`, and to a buffer of its own among `buffers` each. All
        // are borrowed for the call.
        let received = unsafe {
            libc::syscall(
                libc::SYS_recvmmsg,
                fd,
                self.headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// What is known of the message `index` of those that were received last.
    ///
    /// # Errors
    ///
    /// Kind `InvalidData` if it came from elsewhere than from the internet: the socket is no UDP
    /// socket.
    pub(crate) fn message(&self, index: usize) -> io::Result<Message> {
        let libc::mmsghdr { msg_hdr, msg_len } = &self.headers[index];
        let mut message = Message {
            length: *msg_len as usize,
            from: self.names[index].address(msg_hdr.msg_namelen as usize)?,
            segment_bytes: None,
            ecn: 0,
            destination: None,
            received_at: None,
            is_truncated: msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
        };
        let control = &self.controls[index];
        for (level, kind, data) in ControlMessages::of(control, msg_hdr.msg_controllen as _) {
            message.learn(level, kind, data);
        }
        Ok(message)
    }
}

impl Message {
    pub(super) fn learn(&mut self, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let bytes = word(data).and_then(|bytes| usize::try_from(bytes).ok());
                self.segment_bytes = bytes.filter(|&bytes| 0 < bytes && bytes < self.length);
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => self.ecn = data.first().map_or(0, |tos| tos & ECN),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.ecn = word(data).map_or(0, |class| class as u8 & ECN);
            }
            // The interface, the address of this host that received it, that in the header.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                if let Some(&[i0, i1, i2, i3, _, _, _, _, a, b, c, d]) = data.first_chunk() {
                    let interface = u32::from_ne_bytes([i0, i1, i2, i3]);
                    self.destination = Some((Ipv4Addr::new(a, b, c, d).into(), interface));
                }
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                if let Some((address, rest)) = data.split_first_chunk::<16>()
                    && let Some(interface) = rest.first_chunk()
                {
                    let interface = u32::from_ne_bytes(*interface);
                    self.destination = Some((Ipv6Addr::from(*address).into(), interface));
                }
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                self.received_at = system_time(data);
            }
            _ => {}
        }
    }
}

/// The bits of a traffic class that are for congestion (RFC 3168).
const ECN: u8 = 3;

/// What a `timespec` of that clock says.
fn system_time(data: &[u8]) -> Option<SystemTime> {
    let (seconds, rest) = data.split_first_chunk()?;
    let seconds = u64::try_from(i64::from_ne_bytes(*seconds)).ok()?;
    let nanoseconds = u64::try_from(i64::from_ne_bytes(*rest.first_chunk()?)).ok()?;
    let since = Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanoseconds))?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// The first `int` of `data`.
fn word(data: &[u8]) -> Option<libc::c_int> {
    data.first_chunk()
        .map(|bytes| libc::c_int::from_ne_bytes(*bytes))
}
