//! The ring says when something has come; system calls receive and send it.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, RawFd};

use glommio::bare_socket;
use nix::libc;

use super::{BYTES, Log, Server, descriptors};
use crate::ring::{Completion, Ring};

/// How a message is received, and how it comes out that there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receive {
    /// The next poll will tell.
    Once,
    /// The buffer was longer than what came.
    Roomy,
    /// Nothing is left if the next fails.
    UntilEmpty,
    /// The kernel says with the message what is left.
    TellingRest,
}

/// Polls, for each wait anew or for good.
pub struct Polled {
    fds: Vec<RawFd>,
    has_ended: Vec<bool>,
    is_multishot: bool,
    receive: Receive,
}

impl Polled {
    pub fn new(peers: &[TcpStream], is_multishot: bool, receive: Receive) -> io::Result<Self> {
        if receive == Receive::TellingRest {
            for peer in peers {
                bare_socket::set_reports_rest(peer.as_fd(), true)?;
            }
        }
        Ok(Self {
            fds: descriptors(peers),
            has_ended: vec![false; peers.len()],
            is_multishot,
            receive,
        })
    }

    /// Returns what came of messages until there are no more, as far as can be told: false if the
    /// connection has ended.
    fn answer(&self, fd: RawFd, is_ending: bool, log: &mut Log) -> io::Result<bool> {
        let mut buf = [0; 2 * BYTES];
        let room = match self.receive {
            Receive::Roomy => buf.len(),
            _ => BYTES,
        };
        let buf = &mut buf[..room];
        loop {
            let received = match self.receive {
                Receive::TellingRest => bare_socket::receive_all(fd, buf),
                _ => bare_socket::receive(fd, buf).map(|bytes| (bytes, false)),
            };
            let (bytes, is_empty) = match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                received => received?,
            };
            if bytes == 0 {
                return Ok(false);
            }
            log.received(bytes);
            if bare_socket::send(fd, &buf[..bytes])? < bytes {
                return Err(io::Error::other("a message does not fit the socket"));
            }
            // An end that was told of together with the last bytes is not told of again.
            let is_done = match self.receive {
                Receive::Once => true,
                Receive::Roomy | Receive::UntilEmpty => bytes < buf.len() && !is_ending,
                Receive::TellingRest => is_empty,
            };
            if is_done {
                return Ok(true);
            }
        }
    }
}

impl Server for Polled {
    fn begin(&mut self, ring: &mut Ring, peer: usize) -> io::Result<()> {
        let events = libc::POLLIN | libc::POLLRDHUP;
        ring.poll(self.fds[peer], events, self.is_multishot, peer as u64)
    }

    fn complete(
        &mut self,
        ring: &mut Ring,
        completion: Completion,
        log: &mut Log,
    ) -> io::Result<()> {
        let peer = completion.tag as usize;
        let events = completion.result()? as libc::c_short;
        if self.has_ended[peer] {
            return Ok(());
        }
        let is_ending = events & !libc::POLLIN != 0;
        if !self.answer(self.fds[peer], is_ending, log)? {
            self.has_ended[peer] = true;
            log.ended();
        } else if !completion.has_more() {
            self.begin(ring, peer)?;
        }
        Ok(())
    }
}
