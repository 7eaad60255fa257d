//! What a socket of UDP holds.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::readiness::{FAILED, HANG_UP, PEER_CLOSED, READABLE, WRITABLE_BAND};

/// What a datagram takes of a buffer beyond its data, also one of a Unix socket.
pub(super) const DATAGRAM_OVERHEAD: usize = 768;

#[derive(Debug, Default)]
pub(super) struct Udp {
    pub(super) queue: VecDeque<(Vec<u8>, SocketAddr)>,
    /// Bytes of `queue`, with what the kernel adds to each.
    pub(super) queued: usize,
    pub(super) error: Option<i32>,
    pub(super) read_shut: bool,
    pub(super) write_shut: bool,
}

impl Udp {
    pub(super) fn readiness(&self) -> i16 {
        let mut mask = WRITABLE_BAND;
        if self.error.is_some() {
            mask |= FAILED;
        }
        if self.read_shut {
            mask |= READABLE | PEER_CLOSED;
        }
        if self.read_shut && self.write_shut {
            mask |= HANG_UP;
        }
        if !self.queue.is_empty() {
            mask |= READABLE;
        }
        mask
    }

    pub(super) fn next(&mut self, peek: bool) -> Option<(Vec<u8>, SocketAddr)> {
        if peek {
            return self.queue.front().cloned();
        }
        let next = self.queue.pop_front()?;
        self.queued -= next.0.len() + DATAGRAM_OVERHEAD;
        Some(next)
    }
}
