//! Many datagrams from a socket of a simulated network.

#![forbid(unsafe_code)]

use std::io;

use super::control::BATCH;
use super::name::Name;
use super::receive::Headers;
use crate::simulated::{SimulatedSocket, internet};

impl SimulatedSocket {
    /// Receives one at a time, and says of each what the kernel would.
    pub(super) fn receive_many(
        &self,
        headers: &mut Headers,
        buffers: &mut [Box<[u8]>],
    ) -> io::Result<usize> {
        let count = buffers.len().min(BATCH);
        for (index, buffer) in buffers.iter_mut().rev().take(count).enumerate() {
            let received = match self.recv(buffer, false) {
                Err(_) if index > 0 => return Ok(index),
                received => received?,
            };
            let header = &mut headers.headers[index];
            header.msg_len = received.len as _;
            header.msg_hdr.msg_controllen = 0;
            header.msg_hdr.msg_namelen = 0;
            if let Some(from) = received.from.as_ref().and_then(internet) {
                let length;
                (headers.names[index], length) = Name::new(&from);
                header.msg_hdr.msg_namelen = length as _;
            }
            let is_truncated = received.full > received.len;
            header.msg_hdr.msg_flags = if is_truncated { libc::MSG_TRUNC } else { 0 };
        }
        Ok(count)
    }
}
