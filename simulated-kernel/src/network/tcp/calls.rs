//! The calls of the socket's owner.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::super::address::{Result, Time};
use super::super::readiness::{FAILED, HANG_UP, PEER_CLOSED, READABLE, WRITABLE};
use super::connection::{Connection, Output, Progress, State, Timer};
use super::limits::{INITIAL_TIMEOUT, INITIAL_WINDOW, LINGER};
use super::segment::{Flags, Segment};

impl Connection {
    pub(in super::super) fn new(send_capacity: usize, receive_capacity: usize) -> Self {
        Self {
            state: State::Closed,
            progress: Progress::Unconnected,
            error: None,
            read_shut: false,
            write_shut: false,
            is_finished: false,
            is_orphan: false,
            mss: 0,
            send_capacity,
            send_queue: VecDeque::new(),
            send_start: 0,
            fin_queued: false,
            unacknowledged: 0,
            next: 0,
            highest: 0,
            send_limit: 0,
            congestion_window: 0,
            slow_start_until: u64::MAX,
            duplicate_acks: 0,
            recovering: None,
            receive_capacity,
            receive_queue: VecDeque::new(),
            expected: 0,
            advertised: 0,
            early: BTreeMap::new(),
            fin_at: None,
            timer: None,
            round_trip: None,
            round_trip_variance: Duration::ZERO,
            timed: None,
            timeout: INITIAL_TIMEOUT,
            timeouts: 0,
            silent_since: None,
            user_timeout: None,
        }
    }

    /// The end of a connection that `syn` asks for, and the answer to it.
    pub(in super::super) fn accept(
        buffers: (usize, usize),
        mss: u32,
        first: u64,
        syn: &Segment,
        now: Time,
        output: &mut Output,
    ) -> Self {
        let mut connection = Self::new(buffers.0, buffers.1);
        connection.progress = Progress::Connected;
        connection.start(State::SynReceived, mss.min(syn.mss), first);
        connection.learn_peer(syn);
        connection.send_syn(now, output);
        connection
    }

    /// Nothing has been done with it but binding.
    pub(in super::super) fn is_fresh(&self) -> bool {
        self.progress == Progress::Unconnected && self.state == State::Closed
    }

    /// Whether a new attempt may start, and what `connect` returns otherwise.
    pub(in super::super) fn may_connect(&mut self) -> Result<bool> {
        match self.progress {
            Progress::Unconnected if self.state == State::Closed => Ok(true),
            Progress::Unconnected | Progress::Connected => Err(libc::EISCONN),
            Progress::Connecting => match self.state {
                State::SynSent | State::SynReceived => Err(libc::EALREADY),
                State::Closed | State::TimeWait => {
                    let error = self.error.take().unwrap_or(libc::ECONNABORTED);
                    *self = Self::new(self.send_capacity, self.receive_capacity);
                    Err(error)
                }
                _ => {
                    self.progress = Progress::Connected;
                    Ok(false)
                }
            },
        }
    }

    pub(in super::super) fn connect(
        &mut self,
        mss: u32,
        first: u64,
        now: Time,
        output: &mut Output,
    ) {
        self.progress = Progress::Connecting;
        self.read_shut = false;
        self.write_shut = false;
        self.error = None;
        self.start(State::SynSent, mss, first);
        self.send_syn(now, output);
    }

    fn start(&mut self, state: State, mss: u32, first: u64) {
        self.state = state;
        self.mss = u64::from(mss);
        self.unacknowledged = first;
        self.next = first;
        self.highest = first;
        self.send_start = first + 1;
        self.congestion_window = INITIAL_WINDOW * self.mss;
    }

    pub(in super::super) fn send(
        &mut self,
        bytes: &[u8],
        now: Time,
        output: &mut Output,
    ) -> Result<usize> {
        if matches!(self.state, State::SynSent | State::SynReceived) && !self.write_shut {
            return match self.error.take() {
                Some(error) => Err(error),
                None => Err(libc::EAGAIN),
            };
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.write_shut || !matches!(self.state, State::Established | State::CloseWait) {
            return Err(libc::EPIPE);
        }
        let len = bytes
            .len()
            .min(self.send_capacity.saturating_sub(self.send_queue.len()));
        if len == 0 && !bytes.is_empty() {
            return Err(libc::EAGAIN);
        }
        self.send_queue.extend(&bytes[..len]);
        self.transmit(now, output);
        Ok(len)
    }

    pub(in super::super) fn receive(
        &mut self,
        buffer: &mut [u8],
        peek: bool,
        now: Time,
        output: &mut Output,
    ) -> Result<usize> {
        if self.receive_queue.is_empty() {
            return self.end_of_data();
        }
        let len = buffer.len().min(self.receive_queue.len());
        let (first, second) = self.receive_queue.as_slices();
        let in_first = len.min(first.len());
        buffer[..in_first].copy_from_slice(&first[..in_first]);
        buffer[in_first..len].copy_from_slice(&second[..len - in_first]);
        if !peek {
            self.receive_queue.drain(..len);
            self.open_window(now, output);
        }
        Ok(len)
    }

    fn end_of_data(&mut self) -> Result<usize> {
        if self.is_finished {
            return Ok(0);
        }
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        if self.read_shut {
            return Ok(0);
        }
        Err(match self.state.is_closed() {
            true => libc::ENOTCONN,
            false => libc::EAGAIN,
        })
    }

    pub(in super::super) fn shutdown(
        &mut self,
        read: bool,
        write: bool,
        now: Time,
        output: &mut Output,
    ) -> Result<()> {
        output.wakes = true;
        if self.state == State::SynSent {
            // The attempt is given up, as `disconnect` does.
            *self = Self::new(self.send_capacity, self.receive_capacity);
            self.error = Some(libc::ECONNRESET);
            return Ok(());
        }
        self.read_shut |= read;
        self.write_shut |= write;
        if self.state.is_closed() {
            return Err(libc::ENOTCONN);
        }
        if write {
            self.finish_sending(now, output);
        }
        Ok(())
    }

    /// The owner closes the socket; afterwards the record is an orphan.
    pub(in super::super) fn close(&mut self, reset: bool, now: Time, output: &mut Output) {
        self.is_orphan = true;
        let is_unread = !self.receive_queue.is_empty();
        self.read_shut = true;
        self.write_shut = true;
        if self.state.is_closed() {
            return;
        }
        if self.state == State::SynSent {
            self.end(None, output);
        } else if is_unread || reset {
            self.abort(output);
        } else {
            self.finish_sending(now, output);
            if self.state == State::FinWait2 {
                self.timer = Some((now + LINGER, Timer::End));
            }
        }
        self.receive_queue = VecDeque::new();
    }

    /// Ends the connection with a reset to the peer.
    pub(in super::super) fn abort(&mut self, output: &mut Output) {
        if self.state.is_synchronised() {
            output.segments.push(Segment {
                seq: self.highest,
                ack: Some(self.expected),
                flags: Flags::Rst,
                window: 0,
                mss: 0,
                data: Vec::new(),
            });
        }
        self.end(None, output);
    }

    fn finish_sending(&mut self, now: Time, output: &mut Output) {
        self.state = match self.state {
            State::Established | State::SynReceived => State::FinWait1,
            State::CloseWait => State::LastAck,
            _ => return,
        };
        self.fin_queued = true;
        self.transmit(now, output);
    }

    /// The connection is over, for the reason `error`. What was received stays readable.
    pub(super) fn end(&mut self, error: Option<i32>, output: &mut Output) {
        self.state = State::Closed;
        self.error = error.or(self.error);
        self.read_shut = true;
        self.write_shut = true;
        self.send_queue = VecDeque::new();
        self.early.clear();
        self.timer = None;
        output.wakes = true;
    }

    /// An ICMP message says that the peer cannot be reached.
    pub(in super::super) fn unreachable(&mut self, error: i32, output: &mut Output) {
        // Connections that stand go on trying (RFC 1122, 4.2.3.9).
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.end(Some(error), output);
        }
    }

    pub(in super::super) fn take_error(&mut self) -> Option<i32> {
        self.error.take()
    }

    /// Whether the socket has a peer to name.
    pub(in super::super) fn has_peer(&self) -> bool {
        !self.state.is_closed() && self.state != State::SynSent
    }

    pub(in super::super) fn set_send_capacity(&mut self, bytes: usize) {
        self.send_capacity = bytes;
    }

    pub(in super::super) fn set_receive_capacity(&mut self, bytes: usize) {
        self.receive_capacity = bytes;
    }

    pub(in super::super) fn set_user_timeout(&mut self, limit: Option<Duration>) {
        self.user_timeout = limit;
    }

    /// A third of the buffer is free, so that writers are not woken for every byte.
    pub(super) fn is_writable(&self) -> bool {
        self.write_shut || self.send_queue.len() * 3 <= self.send_capacity * 2
    }

    pub(in super::super) fn readiness(&self) -> i16 {
        let mut mask = 0;
        if (self.read_shut && self.write_shut) || self.state.is_closed() {
            mask |= HANG_UP;
        }
        if self.read_shut {
            mask |= READABLE | PEER_CLOSED;
        }
        if !matches!(self.state, State::SynSent | State::SynReceived) {
            if !self.receive_queue.is_empty() {
                mask |= READABLE;
            }
            if self.is_writable() {
                mask |= WRITABLE;
            }
        }
        if self.error.is_some() {
            mask |= FAILED;
        }
        mask
    }
}
