//! Data of Unix sockets.

use super::super::address::{Address, Passed, Received, Result, SocketId};
use super::super::kind::Kind;
use super::super::state::Network;
use super::super::udp_socket::DATAGRAM_OVERHEAD;
use super::super::unix_socket::{Message, State};

impl Network {
    pub(in super::super) fn unix_send(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        address: Option<&Address>,
    ) -> Result<usize> {
        match self.get(id)?.kind {
            Kind::UnixStream => self.unix_send_stream(id, bytes, address),
            _ => self.unix_send_datagram(id, bytes, address),
        }
    }

    pub(in super::super) fn unix_send_passing(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        passed: Passed,
    ) -> Result<usize> {
        if self.get(id)?.kind != Kind::UnixStream {
            return Err(libc::EINVAL);
        }
        let sent = self.unix_send_stream(id, bytes, None)?;
        let peer = self.unix(id)?.peer.ok_or(libc::ENOTCONN)?;
        // The bytes are at the end of the queue.
        if sent > 0
            && let Some(message) = self.unix_mut(peer).and_then(|unix| unix.queue.back_mut())
        {
            message.passed = Some(passed);
        }
        Ok(sent)
    }

    pub(in super::super) fn unix_receive_passed(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
    ) -> Result<(Received, Option<Passed>)> {
        let lost_before = self.lost_passed.len();
        let received = self.unix_receive(id, buffer, false)?;
        // Of one send at the most.
        let passed = self.lost_passed.split_off(lost_before).pop();
        Ok((received, passed))
    }

    fn unix_send_stream(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        address: Option<&Address>,
    ) -> Result<usize> {
        let send_buffer = self.get(id)?.options.send_buffer;
        let unix = self.unix(id)?;
        if address.is_some() {
            return Err(match unix.state == State::Established {
                true => libc::EISCONN,
                false => libc::EOPNOTSUPP,
            });
        }
        let peer = unix.peer.ok_or(libc::ENOTCONN)?;
        if unix.write_shut {
            return Err(libc::EPIPE);
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        if let Some(error) = unix.error.take() {
            return Err(error);
        }
        let len = bytes
            .len()
            .min(send_buffer.saturating_sub(unix.outstanding));
        if len == 0 {
            return Err(libc::EAGAIN);
        }
        if self.unix_ref(peer).is_none_or(|unix| unix.read_shut) {
            return Err(libc::EPIPE);
        }
        self.unix_push(id, peer, &bytes[..len], len);
        Ok(len)
    }

    fn unix_send_datagram(
        &mut self,
        id: SocketId,
        bytes: &[u8],
        address: Option<&Address>,
    ) -> Result<usize> {
        let send_buffer = self.get(id)?.options.send_buffer;
        let unix = self.unix(id)?;
        let connected = unix.peer;
        if bytes.len() > send_buffer - 32 {
            return Err(libc::EMSGSIZE);
        }
        if let Some(error) = unix.error.take() {
            return Err(error);
        }
        if unix.write_shut {
            return Err(libc::EPIPE);
        }
        if unix.outstanding >= send_buffer {
            return Err(libc::EAGAIN);
        }
        let other = match address {
            Some(address) => self.unix_find(id, address)?,
            None => connected.ok_or(libc::ENOTCONN)?,
        };
        if self.unix_ref(other).is_none() {
            self.unix_lose_peer(id);
            return Err(libc::ECONNREFUSED);
        }
        self.unix_may_send(id, other)?;
        if self.unix_ref(other).is_some_and(|unix| unix.read_shut) {
            return Err(libc::EPIPE);
        }
        if self.unix_queue_is_full(id, other) {
            return Err(libc::EAGAIN);
        }
        self.unix_push(id, other, bytes, bytes.len() + DATAGRAM_OVERHEAD);
        Ok(bytes.len())
    }

    fn unix_push(&mut self, id: SocketId, to: SocketId, bytes: &[u8], cost: usize) {
        let Some(unix) = self.unix_mut(id) else {
            return;
        };
        unix.outstanding += cost;
        let from = unix.name.clone();
        if let Some(unix) = self.unix_mut(to) {
            unix.queue.push_back(Message {
                data: bytes.to_vec().into(),
                sender: id,
                from,
                passed: None,
            });
            self.touch(to);
        }
    }

    pub(in super::super) fn unix_receive(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        peek: bool,
    ) -> Result<Received> {
        match self.get(id)?.kind {
            Kind::UnixStream => self.unix_receive_stream(id, buffer, peek),
            _ => self.unix_receive_datagram(id, buffer, peek),
        }
    }

    fn unix_receive_stream(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        peek: bool,
    ) -> Result<Received> {
        let unix = self.unix(id)?;
        if unix.state != State::Established {
            return Err(libc::EINVAL);
        }
        if unix.queue.is_empty() {
            if let Some(error) = unix.error.take() {
                return Err(error);
            }
            return if unix.read_shut {
                Ok(Received::bytes(0))
            } else {
                Err(libc::EAGAIN)
            };
        }
        let (mut len, mut freed, mut passed) = (0, None, None);
        for message in &unix.queue {
            let part = message.data.len().min(buffer.len() - len);
            for (place, byte) in buffer[len..len + part].iter_mut().zip(&message.data) {
                *place = *byte;
            }
            len += part;
            let ends = part < message.data.len() || message.passed.is_some();
            if ends || len == buffer.len() {
                break;
            }
        }
        if !peek {
            let mut left = len;
            while left > 0
                && let Some(message) = unix.queue.front_mut()
            {
                let part = message.data.len().min(left);
                passed = passed.or(message.passed.take());
                message.data.drain(..part);
                left -= part;
                freed = Some(message.sender);
                if message.data.is_empty() {
                    unix.queue.pop_front();
                }
            }
        }
        self.lost_passed.extend(passed);
        // All of a stream comes from one peer.
        if let Some(sender) = freed {
            self.unix_free(sender, len);
        }
        Ok(Received::bytes(len))
    }

    fn unix_receive_datagram(
        &mut self,
        id: SocketId,
        buffer: &mut [u8],
        peek: bool,
    ) -> Result<Received> {
        let unix = self.unix(id)?;
        if let Some(error) = unix.error.take() {
            return Err(error);
        }
        let message = unix.queue.front().ok_or(libc::EAGAIN)?;
        let len = message.data.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(&message.data) {
            *place = *byte;
        }
        let received = Received {
            len,
            full: message.data.len(),
            from: Some(Address::Unix(message.from.clone())),
        };
        if !peek && let Some(message) = unix.queue.pop_front() {
            let was_full = unix.queue.len() == self.unix_queue;
            self.unix_free(message.sender, received.full + DATAGRAM_OVERHEAD);
            if was_full {
                self.wake_followers(id);
            }
        }
        Ok(received)
    }

    /// Datagrams that found the queue full may be sent now.
    fn wake_followers(&mut self, id: SocketId) {
        let Some(unix) = self.unix_ref(id) else {
            return;
        };
        let peer = unix.peer;
        let followers: Vec<_> = unix
            .followers
            .iter()
            .copied()
            .filter(|follower| peer != Some(*follower))
            .collect();
        for follower in followers {
            self.touch(follower);
        }
    }

    /// What `sender` had in a queue is read or dropped.
    fn unix_free(&mut self, sender: SocketId, cost: usize) {
        let Some(socket) = self.sockets.get(&sender) else {
            return;
        };
        let send_buffer = socket.options.send_buffer;
        let Some(unix) = self.unix_mut(sender) else {
            return;
        };
        let had_space = unix.has_space(send_buffer);
        unix.outstanding -= cost;
        if !had_space && unix.has_space(send_buffer) {
            self.touch(sender);
        }
    }

    /// Drops what was not read.
    pub(super) fn unix_purge(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get(&id) else {
            return;
        };
        let overhead = if socket.kind == Kind::UnixStream {
            0
        } else {
            DATAGRAM_OVERHEAD
        };
        let Some(unix) = self.unix_mut(id) else {
            return;
        };
        for message in std::mem::take(&mut unix.queue) {
            self.lost_passed.extend(message.passed);
            self.unix_free(message.sender, message.data.len() + overhead);
        }
        self.wake_followers(id);
    }
}
