//! One operation of the ring receives a message, another sends it.

use std::io;
use std::net::TcpStream;
use std::os::fd::RawFd;
use std::rc::Rc;

use io_uring::{opcode, types};
use nix::libc;

use super::{BYTES, Log, Server, descriptors};
use crate::ring::{Completion, Memory, Ring};

/// Of an operation that sends; others receive.
const SENDS: u64 = 1 << 32;

/// With two places for a message for each peer: the next comes in while the last goes out, without
/// a copy.
pub struct Operations {
    fds: Vec<RawFd>,
    messages: Rc<Memory>,
    states: Vec<State>,
}

#[derive(Clone, Copy, Default)]
struct State {
    /// Which place the next message comes to; what goes out is in the other.
    comes_to: usize,
    /// A message that is going out.
    sending: Option<u32>,
    /// A message that came while the last was still going out, and whether there is more.
    waiting: Option<(u32, bool)>,
}

impl Operations {
    pub fn new(ring: &mut Ring, peers: &[TcpStream]) -> Self {
        let messages = Memory::new(peers.len() * 2 * BYTES);
        ring.lend(&messages);
        Self {
            fds: descriptors(peers),
            messages,
            states: vec![State::default(); peers.len()],
        }
    }

    fn place(&self, peer: usize, place: usize) -> *mut u8 {
        let start = (2 * peer + place) * BYTES;
        self.messages.at(start..start + BYTES)
    }

    /// Sends what has come, and receives into the other place.
    fn turn_over(
        &mut self,
        ring: &mut Ring,
        peer: usize,
        bytes: u32,
        left_some: bool,
    ) -> io::Result<()> {
        let fd = types::Fd(self.fds[peer]);
        let came_to = self.states[peer].comes_to;
        let send = opcode::Send::new(fd, self.place(peer, came_to), bytes)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build();
        // SAFETY: the messages are lent to the ring. The receive into this place has completed, and
        // the next is submitted after this has completed: `sending` says so.
        unsafe { ring.submit(send, peer as u64 | SENDS)? };
        self.states[peer] = State {
            comes_to: 1 - came_to,
            sending: Some(bytes),
            waiting: None,
        };
        self.receive(ring, peer, !left_some)
    }

    /// If the socket is known to be empty, the kernel is told not to look first.
    fn receive(&mut self, ring: &mut Ring, peer: usize, is_empty: bool) -> io::Result<()> {
        /// `IORING_RECVSEND_POLL_FIRST`.
        const POLL_FIRST: u16 = 1;
        let fd = types::Fd(self.fds[peer]);
        let place = self.place(peer, self.states[peer].comes_to);
        let receive = opcode::Recv::new(fd, place, BYTES as u32)
            .ioprio(if is_empty { POLL_FIRST } else { 0 })
            .build();
        // SAFETY: the messages are lent to the ring, nothing is sent from this place, and no other
        // receive is in flight for this peer.
        unsafe { ring.submit(receive, peer as u64) }
    }
}

impl Server for Operations {
    fn begin(&mut self, ring: &mut Ring, peer: usize) -> io::Result<()> {
        self.receive(ring, peer, false)
    }

    fn complete(
        &mut self,
        ring: &mut Ring,
        completion: Completion,
        log: &mut Log,
    ) -> io::Result<()> {
        let peer = (completion.tag & !SENDS) as usize;
        let bytes = completion.result()?;
        let state = &mut self.states[peer];
        if completion.tag & SENDS != 0 {
            if state.sending.take() != Some(bytes) {
                return Err(io::Error::other("a message was sent in part"));
            }
            if let Some((bytes, left_some)) = state.waiting.take() {
                self.turn_over(ring, peer, bytes, left_some)?;
            }
            return Ok(());
        }
        if bytes == 0 {
            log.ended();
            return Ok(());
        }
        log.received(bytes as usize);
        if state.sending.is_some() {
            state.waiting = Some((bytes, completion.left_some()));
            return Ok(());
        }
        self.turn_over(ring, peer, bytes, completion.left_some())
    }
}
