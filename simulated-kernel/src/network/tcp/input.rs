//! Segments that arrive.

use super::super::address::Time;
use super::connection::{Connection, Output, State, Timer};
use super::limits::LINGER;
use super::segment::{Flags, Segment};

impl Connection {
    pub(in super::super) fn segment(&mut self, segment: Segment, now: Time, output: &mut Output) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.segment_in_syn_sent(segment, now, output),
            State::TimeWait => self.segment_in_time_wait(&segment, now, output),
            _ => self.segment_in_connection(segment, now, output),
        }
    }

    fn segment_in_syn_sent(&mut self, segment: Segment, now: Time, output: &mut Output) {
        let acknowledges = segment.ack == Some(self.highest);
        if segment.ack.is_some() && !acknowledges {
            output.segments.extend(segment.refusal());
            return;
        }
        match segment.flags {
            Flags::Rst if acknowledges => self.end(Some(libc::ECONNREFUSED), output),
            Flags::Syn => {
                self.mss = self.mss.min(u64::from(segment.mss));
                self.learn_peer(&segment);
                if acknowledges {
                    self.acknowledge(self.highest, now);
                    self.establish(output);
                    self.send_ack(output);
                } else {
                    // Both ends connect to each other, or a socket to itself.
                    self.state = State::SynReceived;
                    self.next = self.unacknowledged;
                    self.send_syn(now, output);
                }
            }
            _ => {}
        }
    }

    fn segment_in_time_wait(&mut self, segment: &Segment, now: Time, output: &mut Output) {
        if segment.flags != Flags::Rst && segment.len() > 0 {
            self.timer = Some((now + LINGER, Timer::End));
            self.send_ack(output);
        }
    }

    fn segment_in_connection(&mut self, segment: Segment, now: Time, output: &mut Output) {
        if segment.flags == Flags::Rst {
            if segment.seq >= self.expected && segment.seq <= self.advertised.max(self.expected) {
                self.reset(output);
            }
            return;
        }
        if segment.flags == Flags::Syn {
            self.repeated_syn(&segment, now, output);
            return;
        }
        let Some(ack) = segment.ack else { return };
        if segment.seq > self.advertised.max(self.expected) || ack > self.highest {
            // From an earlier connection, or beyond the window. Mere acknowledgements are not
            // answered, so that two ends cannot answer each other forever.
            if segment.len() > 0 {
                self.send_ack(output);
            }
            return;
        }
        if self.state == State::SynReceived {
            if ack <= self.unacknowledged {
                return;
            }
            self.acknowledge(ack, now);
            self.establish(output);
        }
        self.take_acknowledgement(&segment, ack, now, output);
        if self.state == State::Closed {
            return;
        }
        let answers = segment.len() > 0 || segment.seq < self.expected;
        if !self.take_data(segment, now, output) {
            return;
        }
        let sent = output.segments.len();
        self.transmit(now, output);
        if answers && output.segments.len() == sent {
            self.send_ack(output);
        }
    }

    fn establish(&mut self, output: &mut Output) {
        self.state = State::Established;
        output.wakes = true;
    }

    fn reset(&mut self, output: &mut Output) {
        let error = if self.state == State::CloseWait {
            libc::EPIPE
        } else {
            libc::ECONNRESET
        };
        self.end(Some(error), output);
    }

    fn repeated_syn(&mut self, segment: &Segment, now: Time, output: &mut Output) {
        let is_repeated = segment.seq + 1 == self.expected;
        match segment.ack {
            Some(ack) if self.state == State::SynReceived && is_repeated && ack == self.highest => {
                self.acknowledge(ack, now);
                self.send_limit = self.send_limit.max(ack + segment.window);
                self.establish(output);
                self.send_ack(output);
            }
            None if self.state == State::SynReceived && is_repeated => {
                self.next = self.unacknowledged;
                self.send_syn(now, output);
            }
            // Also if the peer has started anew: it answers this with a reset.
            _ => self.send_ack(output),
        }
    }

    /// What a SYN tells of the peer.
    pub(super) fn learn_peer(&mut self, syn: &Segment) {
        self.expected = syn.seq + 1;
        self.advertised = self.expected;
        self.send_limit = self.send_start + syn.window;
    }

    fn take_acknowledgement(
        &mut self,
        segment: &Segment,
        ack: u64,
        now: Time,
        output: &mut Output,
    ) {
        if ack < self.unacknowledged {
            return;
        }
        let limit = self.send_limit.max(ack + segment.window);
        let has_opened = limit > self.send_limit;
        self.send_limit = limit;
        if ack > self.unacknowledged {
            let was_writable = self.is_writable();
            self.acknowledge(ack, now);
            self.partial_acknowledgement(now, output);
            output.wakes |= !was_writable && self.is_writable();
            if self.fin_queued && ack == self.highest && self.highest > self.fin_number() {
                self.fin_acknowledged(now, output);
            }
        } else {
            if self.timer.is_some_and(|(_, timer)| timer == Timer::Probe) {
                // Any answer shows that the peer lives.
                self.silent_since = None;
                if has_opened {
                    self.timeouts = 0;
                    self.timer = None;
                }
            }
            if self.highest > ack && segment.len() == 0 && !has_opened {
                self.duplicate_acknowledgement(now, output);
            }
        }
    }

    fn fin_acknowledged(&mut self, now: Time, output: &mut Output) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.is_orphan {
                    self.timer = Some((now + LINGER, Timer::End));
                }
            }
            State::Closing => self.wait_for_late_segments(now, output),
            State::LastAck => self.end(None, output),
            _ => {}
        }
    }

    fn wait_for_late_segments(&mut self, now: Time, output: &mut Output) {
        self.end(None, output);
        self.state = State::TimeWait;
        self.timer = Some((now + LINGER, Timer::End));
    }

    /// Takes what the segment carries, and returns whether the connection still is one.
    fn take_data(&mut self, segment: Segment, now: Time, output: &mut Output) -> bool {
        if !matches!(
            self.state,
            State::Established | State::FinWait1 | State::FinWait2
        ) {
            return true;
        }
        let end = segment.seq + segment.data.len() as u64;
        let is_new = end > self.expected && !segment.data.is_empty();
        if is_new && self.state != State::Established && self.read_shut {
            // There is no reader for it (RFC 1122, 4.2.2.13).
            output.segments.extend(segment.refusal());
            self.end(Some(libc::ECONNRESET), output);
            return false;
        }
        let is_in_window = end >= self.expected && end <= self.advertised.max(self.expected);
        if segment.flags == Flags::Fin && is_in_window {
            self.fin_at = Some(end);
        }
        if is_new {
            self.insert(segment.seq, segment.data);
            output.wakes |= self.deliver();
        }
        if self.fin_at == Some(self.expected) && !self.is_finished {
            self.finish_receiving(now, output);
        }
        true
    }

    /// Keeps the bytes inside of the window that are not there yet.
    fn insert(&mut self, seq: u64, mut data: Vec<u8>) {
        let end = seq + data.len() as u64;
        data.truncate((self.advertised.saturating_sub(seq) as usize).min(data.len()));
        let start = seq.max(self.expected);
        if start >= end.min(self.advertised) {
            return;
        }
        if start > seq {
            data.drain(..(start - seq) as usize);
        }
        if self
            .early
            .get(&start)
            .is_none_or(|known| known.len() < data.len())
        {
            self.early.insert(start, data);
        }
    }

    /// Moves what is in order to the reader, and returns whether there was some.
    fn deliver(&mut self) -> bool {
        let before = self.expected;
        while let Some(first) = self.early.first_entry() {
            if *first.key() > self.expected {
                break;
            }
            let (start, data) = first.remove_entry();
            let known = (self.expected - start) as usize;
            if known < data.len() {
                self.receive_queue.extend(&data[known..]);
                self.expected += (data.len() - known) as u64;
            }
        }
        self.expected > before
    }

    fn finish_receiving(&mut self, now: Time, output: &mut Output) {
        self.expected += 1;
        self.is_finished = true;
        self.read_shut = true;
        output.wakes = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => {
                self.wait_for_late_segments(now, output);
                self.send_ack(output);
            }
            _ => {}
        }
    }
}
