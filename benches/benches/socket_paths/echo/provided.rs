//! The ring receives whatever comes into buffers that it was given before; a system call or the
//! ring sends it.

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;
use std::os::fd::RawFd;

use glommio::bare_socket;
use io_uring::{opcode, types};
use nix::libc;

use super::{BYTES, Log, Server, descriptors};
use crate::provided::ProvidedBuffers;
use crate::ring::{Completion, Ring};

/// How a message goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// From the buffer of a caller, to which it was copied.
    Call,
    /// From the buffer that it came in.
    Operation,
}

/// Of an operation that sends; others receive.
const SENDS: u64 = 1 << 32;

pub struct Provided {
    fds: Vec<RawFd>,
    buffers: ProvidedBuffers,
    reply: Reply,
    /// Buffers that go back to each peer, and their lengths. The first is on its way.
    outgoing: Vec<VecDeque<(u16, u32)>>,
}

impl Provided {
    pub fn new(ring: &mut Ring, peers: &[TcpStream], reply: Reply) -> io::Result<Self> {
        const COUNT: u16 = 256;
        const SIZE: usize = 2048;
        Ok(Self {
            fds: descriptors(peers),
            buffers: ProvidedBuffers::new(ring, COUNT, SIZE)?,
            reply,
            outgoing: vec![VecDeque::new(); peers.len()],
        })
    }

    fn received(
        &mut self,
        ring: &mut Ring,
        peer: usize,
        completion: Completion,
        log: &mut Log,
    ) -> io::Result<()> {
        if !completion.lacks_buffers() {
            let bytes = completion.result()?;
            if bytes == 0 {
                log.ended();
                return Ok(());
            }
            let buffer = completion.buffer().expect("bytes lie in a buffer");
            log.received(bytes as usize);
            match self.reply {
                Reply::Call => self.send_copy(peer, buffer, bytes as usize)?,
                Reply::Operation => {
                    self.outgoing[peer].push_back((buffer, bytes));
                    if self.outgoing[peer].len() == 1 {
                        self.send_next(ring, peer)?;
                    }
                }
            }
        }
        if !completion.has_more() {
            self.begin(ring, peer)?;
        }
        Ok(())
    }

    fn send_copy(&mut self, peer: usize, buffer: u16, bytes: usize) -> io::Result<()> {
        // SAFETY: the completion at hand has named the buffer.
        for part in unsafe { self.buffers.bytes(buffer, bytes) }.chunks(BYTES) {
            let mut copy = [0; BYTES];
            copy[..part.len()].copy_from_slice(part);
            if bare_socket::send(self.fds[peer], &copy[..part.len()])? < part.len() {
                return Err(io::Error::other("a message does not fit the socket"));
            }
        }
        self.buffers.give_back(buffer);
        Ok(())
    }

    /// One at a time for each peer, since a send that has to wait may be overtaken.
    fn send_next(&mut self, ring: &mut Ring, peer: usize) -> io::Result<()> {
        let Some(&(buffer, bytes)) = self.outgoing[peer].front() else {
            return Ok(());
        };
        let fd = types::Fd(self.fds[peer]);
        let send = opcode::Send::new(fd, self.buffers.start(buffer), bytes)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build();
        // SAFETY: the buffers are lent to the ring, and this one is given back when it was sent.
        unsafe { ring.submit(send, peer as u64 | SENDS) }
    }

    fn sent(&mut self, ring: &mut Ring, peer: usize, completion: Completion) -> io::Result<()> {
        let sent = self.outgoing[peer].pop_front();
        let (buffer, bytes) = sent.expect("an operation sends the first");
        if completion.result()? < bytes {
            return Err(io::Error::other("a message was sent in part"));
        }
        self.buffers.give_back(buffer);
        self.send_next(ring, peer)
    }
}

impl Server for Provided {
    fn begin(&mut self, ring: &mut Ring, peer: usize) -> io::Result<()> {
        self.buffers.publish();
        self.buffers.receive(ring, self.fds[peer], peer as u64)
    }

    fn complete(
        &mut self,
        ring: &mut Ring,
        completion: Completion,
        log: &mut Log,
    ) -> io::Result<()> {
        let peer = (completion.tag & !SENDS) as usize;
        if completion.tag & SENDS == 0 {
            self.received(ring, peer, completion, log)
        } else {
            self.sent(ring, peer, completion)
        }
    }

    fn end_turn(&mut self) {
        self.buffers.publish();
    }
}
