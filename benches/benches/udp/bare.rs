//! Loops over the system calls, and nothing else.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use super::rows::{Clock, Timing};
use super::{DATAGRAM, END, SEGMENTS};

/// Waiting datagrams of one filling, in sends of [`SEGMENTS`].
pub const FILLING: usize = 40;

const BATCH: usize = 32;
const PATIENCE_MS: libc::c_int = 10_000;
const BUFFER: usize = 65_535;

/// A socket with the options that all have here.
pub fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let fd = &socket.as_fd();
    setsockopt(fd, sockopt::RcvBuf, &(4 << 20))?;
    setsockopt(fd, sockopt::UdpGroSegment, &true)?;
    setsockopt(fd, sockopt::IpRecvTos, &true)?;
    setsockopt(fd, sockopt::Ipv4PacketInfo, &true)?;
    setsockopt(fd, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

/// Memory for one message, or for many.
struct Messages {
    headers: Vec<libc::mmsghdr>,
    _slices: Vec<libc::iovec>,
    _buffers: Vec<Vec<u8>>,
    names: Vec<libc::sockaddr_storage>,
    controls: Vec<[u64; 32]>,
}

impl Messages {
    fn new(count: usize) -> Messages {
        let mut buffers = vec![vec![0_u8; BUFFER]; count];
        let mut slices: Vec<_> = (buffers.iter_mut())
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        let headers = (slices.iter_mut())
            .map(|slice| {
                // SAFETY: it consists of integers and of pointers that may be null.
                let mut header: libc::mmsghdr = unsafe { zeroed() };
                header.msg_hdr.msg_iov = slice;
                header.msg_hdr.msg_iovlen = 1;
                header
            })
            .collect();
        Messages {
            headers,
            _slices: slices,
            _buffers: buffers,
            // SAFETY: it consists of integers.
            names: vec![unsafe { zeroed() }; count],
            controls: vec![[0; 32]; count],
        }
    }

    fn reset(&mut self) {
        let memory = self.names.iter_mut().zip(&mut self.controls);
        for (header, (name, control)) in self.headers.iter_mut().zip(memory) {
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = size_of_val(name) as _;
            header.msg_hdr.msg_control = (&raw mut *control).cast();
            header.msg_hdr.msg_controllen = size_of_val(control) as _;
        }
    }

    /// Receives by one call, and waits for it if nothing is there. How many messages.
    fn receive(&mut self, fd: RawFd) -> io::Result<usize> {
        loop {
            match self.try_receive(fd) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(fd)?,
                received => return received,
            }
        }
    }

    fn try_receive(&mut self, fd: RawFd) -> io::Result<usize> {
        self.reset();
        let received = if let [header] = &mut self.headers[..] {
            // SAFETY: the header points to memory of `self` alone, with the lengths that it has.
            let length = unsafe { libc::recvmsg(fd, &raw mut header.msg_hdr, libc::MSG_DONTWAIT) };
            header.msg_len = u32::try_from(length).unwrap_or(0);
            if length < 0 { -1 } else { 1 }
        } else {
            // SAFETY: the headers point to memory of `self` alone, with the lengths that it has.
            unsafe {
                libc::recvmmsg(
                    fd,
                    self.headers.as_mut_ptr(),
                    self.headers.len() as _,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                )
            }
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// How many datagrams the first `count` messages are, and whether one of them was the last.
    fn datagrams(&self, count: usize) -> (u64, bool) {
        let (mut datagrams, mut is_over) = (0, false);
        for header in &self.headers[..count] {
            let length = header.msg_len as usize;
            if length == END {
                is_over = true;
                continue;
            }
            datagrams += length.div_ceil(segment_size(&header.msg_hdr).unwrap_or(length)) as u64;
        }
        (datagrams, is_over)
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

fn wait(fd: RawFd) -> io::Result<()> {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: it is one, and lives for the call.
    match unsafe { libc::poll(&raw mut polled, 1, PATIENCE_MS) } {
        0 => Err(io::Error::other("nothing has come for ten seconds")),
        1.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

pub fn receive(socket: UdpSocket) -> io::Result<(u64, Timing)> {
    receive_by(socket, 1)
}

pub fn receive_many(socket: UdpSocket) -> io::Result<(u64, Timing)> {
    receive_by(socket, BATCH)
}

fn receive_by(socket: UdpSocket, count: usize) -> io::Result<(u64, Timing)> {
    let fd = socket.as_raw_fd();
    let mut messages = Messages::new(count);
    wait(fd)?;
    let clock = Clock::start();
    let mut datagrams = 0;
    loop {
        let received = messages.receive(fd)?;
        let (more, is_over) = messages.datagrams(received);
        datagrams += more;
        if is_over {
            return Ok((datagrams, clock.stop()));
        }
    }
}

pub fn empty(length: Duration) -> io::Result<(u64, Timing)> {
    empty_by(length, 1)
}

pub fn empty_many(length: Duration) -> io::Result<(u64, Timing)> {
    empty_by(length, BATCH)
}

fn empty_by(length: Duration, count: usize) -> io::Result<(u64, Timing)> {
    let socket = socket()?;
    let fd = socket.as_raw_fd();
    let fill = Filling::of(&socket)?;
    let mut messages = Messages::new(count);
    let begin = Instant::now();
    let (mut datagrams, mut timing) = (0, Timing::default());
    while begin.elapsed() < length {
        let mut left = fill.fill()?;
        datagrams += left;
        let clock = Clock::start();
        while left > 0 {
            let received = messages.receive(fd)?;
            left = self::left(left, messages.datagrams(received).0)?;
        }
        timing += clock.stop();
    }
    Ok((datagrams, timing))
}

/// How many are left when `received` of them are.
///
/// # Errors
///
/// If more were received than were there.
pub fn left(before: u64, received: u64) -> io::Result<u64> {
    let left = before.checked_sub(received);
    left.ok_or_else(|| io::Error::other(format!("{received} datagrams of {before}")))
}

/// Fills a socket, of which it becomes the peer.
pub struct Filling {
    sender: Sender,
}

impl Filling {
    pub fn of(socket: &UdpSocket) -> io::Result<Filling> {
        let sender = UdpSocket::bind("127.0.0.1:0")?;
        sender.connect(socket.local_addr()?)?;
        // What other programs send to its port, which was theirs a moment ago, is not received.
        socket.connect(sender.local_addr()?)?;
        Ok(Filling {
            sender: Sender::new(sender),
        })
    }

    /// Gives how many datagrams there are now.
    pub fn fill(&self) -> io::Result<u64> {
        for _ in 0..FILLING {
            self.sender.send()?;
        }
        Ok((FILLING * SEGMENTS) as u64)
    }
}

struct Sender {
    socket: UdpSocket,
    bytes: Vec<u8>,
}

impl Sender {
    fn new(socket: UdpSocket) -> Sender {
        Sender {
            socket,
            bytes: vec![7; DATAGRAM * SEGMENTS],
        }
    }

    /// One buffer full of segments, by one call.
    fn send(&self) -> io::Result<()> {
        let mut slice = libc::iovec {
            iov_base: self.bytes.as_ptr().cast_mut().cast(),
            iov_len: self.bytes.len(),
        };
        let mut control = [0_u64; 3];
        // SAFETY: it consists of integers and of pointers that may be null.
        let mut header: libc::msghdr = unsafe { zeroed() };
        header.msg_iov = &raw mut slice;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the header has space for one message of a short number, which is written there.
        unsafe {
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_UDP;
            (*message).cmsg_type = libc::UDP_SEGMENT;
            (*message).cmsg_len = libc::CMSG_LEN(2) as _;
            (libc::CMSG_DATA(message).cast::<u16>()).write_unaligned(DATAGRAM as u16);
        }
        // SAFETY: the header and all that it points to outlive the call.
        if unsafe { libc::sendmsg(self.socket.as_raw_fd(), &raw const header, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

pub fn send(socket: UdpSocket, length: Duration) -> io::Result<u64> {
    let sender = Sender::new(socket);
    let begin = Instant::now();
    let mut sent = 0;
    while begin.elapsed() < length {
        sender.send()?;
        sent += SEGMENTS as u64;
    }
    Ok(sent)
}

pub fn answer(socket: UdpSocket) -> io::Result<(u64, Timing)> {
    answer_by(socket, 1)
}

pub fn answer_many(socket: UdpSocket) -> io::Result<(u64, Timing)> {
    answer_by(socket, BATCH)
}

/// Answers so many by one call.
fn answer_by(socket: UdpSocket, at_once: usize) -> io::Result<(u64, Timing)> {
    let fd = socket.as_raw_fd();
    let mut messages = Messages::new(BATCH);
    let mut slices = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
    let mut answers = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BATCH];
    wait(fd)?;
    let clock = Clock::start();
    let mut datagrams = 0;
    loop {
        let received = messages.receive(fd)?;
        let mut is_over = false;
        let mut count = 0;
        for header in &messages.headers[..received] {
            let length = header.msg_len as usize;
            if length == END {
                is_over = true;
                continue;
            }
            let slice = slices[count].write(libc::iovec {
                iov_len: length,
                // SAFETY: each header has one slice, which lives as long as `messages`.
                ..unsafe { *header.msg_hdr.msg_iov }
            });
            // SAFETY: a header of zeros is one.
            let answer = unsafe { &mut answers[count].assume_init_mut().msg_hdr };
            answer.msg_name = header.msg_hdr.msg_name;
            answer.msg_namelen = header.msg_hdr.msg_namelen;
            answer.msg_iov = slice;
            answer.msg_iovlen = 1;
            count += 1;
        }
        for answers in answers[..count].chunks_mut(at_once) {
            let answers: *mut libc::mmsghdr = answers.as_mut_ptr().cast();
            // SAFETY: the headers and all that they point to outlive the call.
            let sent = unsafe {
                if at_once == 1 {
                    libc::sendmsg(fd, &raw const (*answers).msg_hdr, 0)
                } else {
                    libc::sendmmsg(fd, answers, count as _, 0) as isize
                }
            };
            if sent < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        datagrams += count as u64;
        if is_over {
            return Ok((datagrams, clock.stop()));
        }
    }
}
