//! The system calls that move most of the data: receiving and sending without waiting.
//!
//! They are made through `syscall(2)`. The C library's own wrappers are cancellation points of
//! POSIX threads, which every call pays for with two atomic operations as soon as a process has a
//! second thread; no thread is cancelled here.

#![allow(unsafe_code)]

#[cfg(feature = "simulation")]
pub(crate) mod simulated;
#[cfg(test)]
mod tests;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, offset_of};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::vec;

use nix::sys::socket::{self, MsgFlags, getsockopt, sockopt};
#[cfg(feature = "simulation")]
pub(crate) use simulated::Socket;
#[cfg(not(feature = "simulation"))]
pub(crate) use socket2::Socket;
use socket2::{SockAddr, SockRef};

use super::door::{door, missing};

pub(crate) const SEND: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// The kernel refuses more slices in one call (`UIO_MAXIOV`).
pub(crate) const MAX_SLICES: usize = 1024;

/// Receives what is there into `buf`, without waiting.
pub fn receive(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    door!(socket(fd).receive(buf));
    // SAFETY: the kernel writes to no more than the `buf.len()` bytes at `buf`, which is borrowed
    // for the call; no address is asked for.
    let received = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd,
            buf.as_mut_ptr(),
            buf.len(),
            libc::MSG_DONTWAIT,
            std::ptr::null_mut::<libc::sockaddr>(),
            std::ptr::null_mut::<libc::socklen_t>(),
        )
    };
    count(received)
}

/// Sends as much of `buf` as there is room for, without waiting and without `SIGPIPE`.
pub fn send(fd: RawFd, buf: &[u8]) -> io::Result<usize> {
    door!(socket(fd).send(buf));
    super::unsent::add(fd);
    // SAFETY: the kernel reads no more than the `buf.len()` bytes at `buf`, which is borrowed for
    // the call; there is no address.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd,
            buf.as_ptr(),
            buf.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            std::ptr::null::<libc::sockaddr>(),
            0 as libc::socklen_t,
        )
    };
    count(sent)
}

/// As [`receive`], but the data stays in the socket.
pub(crate) fn peek(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    door!(socket(fd).peek(buf));
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
    Ok(socket::recv(fd, buf, flags)?)
}

/// As [`receive`], into no more than [`MAX_SLICES`].
pub(crate) fn receive_vectored(fd: RawFd, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    door!(socket(fd).receive_vectored(bufs));
    let message = socket::recvmsg::<()>(fd, bufs, None, MsgFlags::MSG_DONTWAIT)?;
    Ok(message.bytes)
}

/// As [`send`], from no more than [`MAX_SLICES`].
pub(crate) fn send_vectored(fd: RawFd, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    door!(socket(fd).send_vectored(bufs));
    super::unsent::add(fd);
    let count = bufs.len().min(MAX_SLICES);
    Ok(socket::sendmsg::<()>(fd, &bufs[..count], &[], SEND, None)?)
}

/// The addresses of `host`, a name or a literal; without `port`, with its own. Blocks until the resolver has answered.
pub(crate) fn look_up(host: &str, port: Option<u16>) -> io::Result<vec::IntoIter<SocketAddr>> {
    door!(node().look_up(host, port));
    match port {
        Some(port) => (host, port).to_socket_addrs(),
        None => host.to_socket_addrs(),
    }
}

/// What `fd` is connected to.
pub(crate) fn peer_addr(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    door!(socket(fd).peer_addr());
    SockRef::from(&fd).peer_addr()
}

/// Whether there is urgent data that was not received yet (`POLLPRI`).
pub(crate) fn has_urgent_data(fd: RawFd) -> bool {
    is_ready(fd, libc::POLLPRI)
}

/// Whether a receive or an accept would not block now.
pub(crate) fn is_readable(fd: RawFd) -> bool {
    is_ready(fd, libc::POLLIN)
}

/// Whether a send would not block now.
pub(crate) fn is_writable(fd: RawFd) -> bool {
    is_ready(fd, libc::POLLOUT)
}

/// Has all accepts that wait for a connection of `listener`, also in other processes, look for one.
pub(crate) fn wake_accepts(listener: RawFd) {
    door!(socket(listener).wake_accepts());
    // A listener sends nothing, and goes on listening; who waits for it is woken, whatever the order.
    let _ = socket::shutdown(listener, socket::Shutdown::Write);
}

fn is_ready(fd: RawFd, events: libc::c_short) -> bool {
    door!(socket(fd).is_ready(events));
    let mut polled = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    loop {
        // SAFETY: the kernel reads and writes the one record that `polled` is, during the call.
        let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
        let is_interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if ready >= 0 || !is_interrupted() {
            // That it cannot be told is as good as yes: the socket is tried more often then.
            return ready < 0 || polled.revents & events != 0;
        }
    }
}

/// Sets an option of TCP that is a number, one that socket2 does not know.
///
/// # Errors
///
/// What `setsockopt(2)` gives.
pub(crate) fn set_tcp_option(
    fd: BorrowedFd<'_>,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    if option == libc::TCP_DEFER_ACCEPT {
        door!(socket(fd) => Err(missing("a deferred accept")));
    }
    // SAFETY: the kernel reads no more than the number during the call.
    let failed = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_TCP,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The process at the other end of a Unix socket: its user, its group and its number.
pub(crate) fn peer_credentials(fd: BorrowedFd<'_>) -> io::Result<(u32, u32, i32)> {
    // Nodes have no users: all processes are those of root.
    door!(socket(fd) => Ok((0, 0, 1)));
    let peer = getsockopt(&fd, sockopt::PeerCredentials)?;
    Ok((peer.uid(), peer.gid(), peer.pid()))
}

/// Reads what [`set_tcp_option`] sets.
///
/// # Errors
///
/// What `getsockopt(2)` gives.
pub(crate) fn tcp_option(fd: BorrowedFd<'_>, option: libc::c_int) -> io::Result<libc::c_int> {
    let mut value = [0; size_of::<libc::c_int>()];
    read_option(fd, libc::SOL_TCP, option, &mut value)?;
    Ok(libc::c_int::from_ne_bytes(value))
}

/// Reads an option. Returns how many bytes it has, if there is room for all.
///
/// # Errors
///
/// What `getsockopt(2)` gives.
pub(crate) fn read_option(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = value.len() as libc::socklen_t;
    let place = value.as_mut_ptr().cast();
    // SAFETY: the kernel writes no more than `length` bytes to `value`, and the length; both
    // outlive the call.
    let failed = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, place, &raw mut length) };
    match failed {
        0 => Ok(length as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether something between TCP and the user changes what is received (`TCP_ULP`), such as the
/// kernel's TLS.
pub(crate) fn has_upper_layer(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut name = [0; 16];
    let length = read_option(fd, libc::SOL_TCP, libc::TCP_ULP, &mut name)?;
    Ok(length > 0 && name[0] != 0)
}

/// As [`receive`], for a socket with the kernel's TLS: from no more than one record, whose content
/// type is returned, too; none on other sockets.
///
/// # Errors
///
/// As [`receive`], but a record that is not application data is none.
pub(crate) fn receive_record(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, Option<u8>)> {
    door!(socket(fd).receive_record(buf));
    let mut slice = libc::iovec {
        iov_base: buf.as_mut_ptr().cast(),
        iov_len: buf.len(),
    };
    let mut control = Control::zeroed();
    // SAFETY: a header without name, slices or control data is one of zeros.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the kernel writes to the header, to the `buf.len()` bytes at `buf`, and to no more
    // than `msg_controllen` bytes at `control`; all three outlive the call.
    let received =
        unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut header, libc::MSG_DONTWAIT) };
    let bytes = count(received)?;
    Ok((bytes, control.record_kind(header.msg_controllen as _)))
}

/// Room for one control message of the kernel. With this room, the kernel's TLS delivers records of
/// other kinds than application data and says in a message of its own what they are.
#[repr(C)]
struct Control {
    header: libc::cmsghdr,
    data: [u8; 8],
}

impl Control {
    fn zeroed() -> Self {
        // SAFETY: both fields consist of integers.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }

    /// What the message is, and its data; none if there is no message in the `written` bytes.
    fn message(&self, written: usize) -> Option<(libc::c_int, libc::c_int, &[u8])> {
        let header = &self.header;
        if written < size_of_val(header) {
            return None;
        }
        let length = written.min(header.cmsg_len as _);
        let length = length.saturating_sub(offset_of!(Control, data));
        let data = &self.data[..length.min(self.data.len())];
        Some((header.cmsg_level, header.cmsg_type, data))
    }

    /// The content type of the record that was received from, if the kernel has said so.
    fn record_kind(&self, written: usize) -> Option<u8> {
        match self.message(written)? {
            (libc::SOL_TLS, libc::TLS_GET_RECORD_TYPE, &[kind]) => Some(kind),
            _ => None,
        }
    }
}

/// Receives a message into `buf` without waiting, with `flags` of `recv(2)`, and the address of its
/// sender. That is one of length zero where the kernel gives none: on connections, and for Unix
/// sockets without a name.
pub(crate) fn receive_from(
    fd: RawFd,
    buf: &mut [u8],
    flags: libc::c_int,
) -> io::Result<(usize, SockAddr)> {
    door!(socket(fd).receive_from(buf, flags));
    // SAFETY: of the address, which is zeroed before, the kernel writes as much as it says, in the
    // form that belongs to the family in it, and no more than the length that it is given; to
    // `buf` it writes no more than its `buf.len()` bytes. All three outlive the call.
    unsafe {
        SockAddr::try_init(|address, length| {
            count(libc::syscall(
                libc::SYS_recvfrom,
                fd,
                buf.as_mut_ptr(),
                buf.len(),
                flags | libc::MSG_DONTWAIT,
                address,
                length,
            ))
        })
    }
}

fn count(returned: libc::c_long) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}
