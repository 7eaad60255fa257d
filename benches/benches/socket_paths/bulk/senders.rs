//! The sending end.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use glommio::bare_socket;
use io_uring::{opcode, types};
use nix::libc;

use super::{Flow, Sent};
use crate::ring::{Memory, Ring};

/// System calls send what fits; the ring reports when there is space again.
pub fn copied(stream: TcpStream, mut flow: Flow) -> io::Result<Sent> {
    let mut ring = Ring::new()?;
    let fd = stream.as_raw_fd();
    let buf = vec![1; flow.chunk];
    let mut completions = Vec::new();
    for _ in 0..flow.chunks() {
        let mut rest = &buf[..];
        while !rest.is_empty() {
            match bare_socket::send(fd, rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ring.poll(fd, libc::POLLOUT, false, 0)?;
                    ring.turn(&mut completions)?;
                    for completion in completions.drain(..) {
                        completion.result()?;
                    }
                }
                sent => rest = &rest[sent?..],
            }
        }
        flow.sent(&stream)?;
    }
    Ok(Sent {
        measured: flow.finish()?,
        copied: None,
    })
}

/// Buffers of the ring, which the kernel sends from where they are.
const BUFFERS: usize = 4;

/// The ring sends registered buffers without copying them, one after the other. Each is filled
/// again when the kernel has said that it needs it no longer.
pub fn lent(stream: TcpStream, mut flow: Flow) -> io::Result<Sent> {
    /// `IORING_SEND_ZC_REPORT_USAGE`, since Linux 6.2.
    const REPORT_USAGE: u16 = 8;
    let mut ring = Ring::new()?;
    let memory = Memory::new(BUFFERS * flow.chunk);
    ring.register(&memory, flow.chunk)?;
    let mut free: Vec<usize> = (0..BUFFERS).collect();
    let mut zc_flags = REPORT_USAGE;
    let mut notifications = 0;
    let mut copies = 0;
    let mut to_send = flow.chunks();
    // One at a time, since a send that has to wait may be overtaken.
    let mut is_sending = false;
    let mut completions = Vec::new();
    while to_send > 0 || ring.uses_memory() {
        if to_send > 0
            && !is_sending
            && let Some(buffer) = free.pop()
        {
            let start = memory.at(buffer * flow.chunk..(buffer + 1) * flow.chunk);
            let fd = types::Fd(stream.as_raw_fd());
            let send = opcode::SendZc::new(fd, start, flow.chunk as u32)
                .buf_index(Some(buffer as u16))
                .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
                .zc_flags(zc_flags)
                .build();
            // SAFETY: registered buffers are lent to the ring, and nothing writes to them.
            unsafe { ring.submit(send, buffer as u64)? };
            is_sending = true;
        }
        ring.turn(&mut completions)?;
        for completion in completions.drain(..) {
            if completion.is_notification() {
                notifications += 1;
                copies += u64::from(completion.was_copied());
                free.push(completion.tag as usize);
                continue;
            }
            is_sending = false;
            if !completion.has_more() {
                free.push(completion.tag as usize);
            }
            match completion.result() {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && zc_flags != 0 => {
                    zc_flags = 0;
                    continue;
                }
                Ok(sent) if sent < flow.chunk as u32 => {
                    return Err(io::Error::other("a buffer was sent in part"));
                }
                sent => sent?,
            };
            to_send -= 1;
            flow.sent(&stream)?;
        }
    }
    let is_told = zc_flags != 0 && notifications > 0;
    Ok(Sent {
        measured: flow.finish()?,
        copied: is_told.then(|| copies as f64 / notifications as f64),
    })
}
