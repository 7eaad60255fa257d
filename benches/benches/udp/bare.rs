//! Loops over the system calls, and nothing else.

use std::io::{self, IoSlice};
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::way::{DATAGRAM, Received, SEGMENTS, Way};

const BUFFER: usize = 65_535;

/// Receives up to `RECEIVED` messages by one call, `recvmsg` or `recvmmsg`, and answers `ANSWERED` of them by one call,
/// `sendmsg` or `sendmmsg`.
pub struct Bare<const RECEIVED: usize, const ANSWERED: usize> {
    socket: UdpSocket,
    headers: Vec<libc::mmsghdr>,
    slices: Vec<libc::iovec>,
    buffers: Vec<Vec<u8>>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<[u64; 32]>,
}

impl<const RECEIVED: usize, const ANSWERED: usize> Bare<RECEIVED, ANSWERED> {
    /// Receives by one call, and waits for it if nothing is there. How many messages, and what they are.
    fn receive_messages(&mut self) -> io::Result<(usize, Received)> {
        let messages = loop {
            match self.try_receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(&self.socket)?,
                messages => break messages?,
            }
        };
        let mut received = Received::default();
        for header in &self.headers[..messages] {
            let length = header.msg_len as usize;
            let segment = segment_size(&header.msg_hdr).unwrap_or(length);
            received.count(length, segment);
        }
        Ok((messages, received))
    }

    fn try_receive(&mut self) -> io::Result<usize> {
        for (index, header) in self.headers.iter_mut().enumerate() {
            let header = &mut header.msg_hdr;
            self.slices[index].iov_base = self.buffers[index].as_mut_ptr().cast();
            self.slices[index].iov_len = BUFFER;
            header.msg_iov = &raw mut self.slices[index];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut self.names[index]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = size_of::<[u64; 32]>() as _;
        }
        let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
        let headers = self.headers.as_mut_ptr();
        let received = if RECEIVED == 1 {
            // SAFETY: there is a header, which points to memory of `self` alone, with the lengths that it has.
            let length = unsafe { libc::recvmsg(fd, &raw mut (*headers).msg_hdr, flags) };
            self.headers[0].msg_len = u32::try_from(length).unwrap_or(0);
            length.min(1)
        } else {
            let timeout = std::ptr::null_mut();
            // SAFETY: there are so many headers, which point to memory of `self` alone, with the lengths that it has.
            let count = unsafe { libc::recvmmsg(fd, headers, RECEIVED as _, flags, timeout) };
            count as isize
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }
}

fn wait(socket: &UdpSocket) -> io::Result<()> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    match poll(&mut polled, PollTimeout::from(10_000_u16))? {
        0 => Err(io::Error::other("nothing has come for ten seconds")),
        _ => Ok(()),
    }
}

/// What the kernel says of the size of coalesced datagrams.
pub fn segment_size(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: the kernel has written the messages that the header points to, and their length.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: not null, it points to a message, whose data the kernel has written.
        let (kind, data) = unsafe { ((*message).cmsg_type, libc::CMSG_DATA(message)) };
        // SAFETY: as above.
        if unsafe { (*message).cmsg_level } == libc::SOL_UDP && kind == libc::UDP_GRO {
            // SAFETY: the data of this kind is a number.
            let size = unsafe { data.cast::<libc::c_int>().read_unaligned() };
            return usize::try_from(size).ok();
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

impl<const RECEIVED: usize, const ANSWERED: usize> Way for Bare<RECEIVED, ANSWERED> {
    fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        futures_lite::future::block_on(work)
    }

    fn new(socket: UdpSocket) -> io::Result<Self> {
        // SAFETY: they consist of integers and of pointers that may be null.
        let (header, slice, name) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Ok(Bare {
            socket,
            headers: vec![header; RECEIVED],
            slices: vec![slice; RECEIVED],
            buffers: vec![vec![7; BUFFER]; RECEIVED],
            names: vec![name; RECEIVED],
            controls: vec![[0; 32]; RECEIVED],
        })
    }

    async fn wait(&mut self) -> io::Result<()> {
        wait(&self.socket)
    }

    async fn receive(&mut self) -> io::Result<Received> {
        Ok(self.receive_messages()?.1)
    }

    async fn send(&mut self) -> io::Result<()> {
        let bytes = [IoSlice::new(&self.buffers[0][..DATAGRAM * SEGMENTS])];
        let control = [ControlMessage::UdpGsoSegments(&(DATAGRAM as u16))];
        let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
        sendmsg::<()>(fd, &bytes, &control, flags, None)?;
        Ok(())
    }

    async fn answer(&mut self) -> io::Result<Received> {
        let (messages, received) = self.receive_messages()?;
        if received.is_over {
            return Ok(received);
        }
        // What was received is sent from where it is to where it came from.
        for (header, slice) in self.headers[..messages].iter_mut().zip(&mut self.slices) {
            slice.iov_len = header.msg_len as usize;
            header.msg_hdr.msg_control = std::ptr::null_mut();
            header.msg_hdr.msg_controllen = 0;
        }
        let fd = self.socket.as_raw_fd();
        for answers in self.headers[..messages].chunks_mut(ANSWERED) {
            let (count, answers) = (answers.len(), answers.as_mut_ptr());
            // SAFETY: the headers and all that they point to, memory of `self`, outlive the call.
            let sent = unsafe {
                if ANSWERED == 1 {
                    libc::sendmsg(fd, &raw const (*answers).msg_hdr, 0)
                } else {
                    libc::sendmmsg(fd, answers, count as _, 0) as isize
                }
            };
            if sent < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(received)
    }
}
