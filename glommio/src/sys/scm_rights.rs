//! Descriptors that are passed along with the data of a Unix socket (`SCM_RIGHTS`, `unix(7)`).

#![allow(unsafe_code)]

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use super::door::door;

/// Sends as much of `buf` as there is room for, and with its first byte `fds`, without waiting.
///
/// # Errors
///
/// What `sendmsg(2)` gives: `EINVAL` for more than 253 descriptors (`SCM_MAX_FD`), `ETOOMANYREFS` if too many are on
/// their way. Nothing was sent then.
pub fn send(socket: RawFd, buf: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    door!(socket(socket).send_passing(buf, fds));
    let fds: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let rights = if fds.is_empty() { &[][..] } else { &rights };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(sendmsg::<()>(
        socket,
        &[IoSlice::new(buf)],
        rights,
        flags,
        None,
    )?)
}

/// Room for all descriptors that can come at a time, and for the credentials that come with them
/// where somebody has asked the socket for these.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; CONTROL_BYTES]);

const CONTROL_BYTES: usize = 2048;

/// Receives what is there into `buf`, without waiting, and the descriptors that come with it, which
/// are closed on `execve`. Never goes beyond the data of one message with descriptors.
///
/// # Errors
///
/// What `recvmsg(2)` gives. `EMFILE` if there was no room for all of the descriptors: the data and
/// those that there was room for are gone with the others.
pub fn receive(socket: RawFd, buf: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    door!(socket(socket).receive_passed(buf));
    let mut control = Control([MaybeUninit::uninit(); CONTROL_BYTES]);
    let mut slice = libc::iovec {
        iov_base: buf.as_mut_ptr().cast(),
        iov_len: buf.len(),
    };
    // SAFETY: a message of no parts; all of its fields may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the kernel writes to no more than the bytes of `buf` and of `control`, which outlive
    // the call, as far as `message` says that they go.
    let received = unsafe {
        libc::recvmsg(
            socket,
            &raw mut message,
            libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC,
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    // Owned before anything else: what is left behind is closed.
    // SAFETY: the kernel has just filled it in.
    let fds = unsafe { owned(&message) };
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    Ok((received, fds))
}

/// All descriptors of a message that was received.
///
/// # Safety
///
/// `message` is as `recvmsg(2)` has left it, its control part is readable and aligned as a
/// `cmsghdr`, and nothing else owns the descriptors in it.
unsafe fn owned(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: promised by the caller.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: it is one of the message's, which are aligned.
        let part = unsafe { &*header };
        if part.cmsg_level == libc::SOL_SOCKET && part.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: the data begin there.
            let data = unsafe { libc::CMSG_DATA(header) }.cast::<RawFd>();
            let before = data.addr() - header.addr();
            let count = (part.cmsg_len as usize - before) / size_of::<RawFd>();
            for number in 0..count {
                // SAFETY: so many lie there, installed by the kernel for this call alone.
                fds.push(unsafe { OwnedFd::from_raw_fd(data.add(number).read_unaligned()) });
            }
        }
        // SAFETY: promised by the caller.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    fds
}
