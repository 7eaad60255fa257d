//! Segments that leave: what the windows allow, in order.

use super::super::address::Time;
use super::connection::{Connection, Output, State, Timer};
use super::segment::{Flags, Segment};

impl Connection {
    /// The number that the FIN takes.
    pub(super) fn fin_number(&self) -> u64 {
        self.send_start + self.send_queue.len() as u64
    }

    fn segment_at(&mut self, seq: u64, flags: Flags, data: Vec<u8>) -> Segment {
        let window = self.window();
        self.advertised = self.expected + window;
        Segment {
            seq,
            ack: Some(self.expected),
            flags,
            window,
            mss: self.mss as u32,
            data,
        }
    }

    /// Bytes that the peer may send. What was promised before is never taken back.
    fn window(&self) -> u64 {
        let free = self
            .receive_capacity
            .saturating_sub(self.receive_queue.len()) as u64;
        free.max(self.advertised.saturating_sub(self.expected))
    }

    pub(super) fn send_ack(&mut self, output: &mut Output) {
        let segment = self.segment_at(self.next, Flags::None, Vec::new());
        output.segments.push(segment);
    }

    pub(super) fn send_syn(&mut self, now: Time, output: &mut Output) {
        let mut segment = self.segment_at(self.unacknowledged, Flags::Syn, Vec::new());
        if self.state == State::SynSent {
            segment.ack = None;
            segment.window = self.receive_capacity as u64;
        }
        output.segments.push(segment);
        self.timed =
            (self.highest == self.unacknowledged).then_some((self.unacknowledged + 1, now));
        self.next = self.unacknowledged + 1;
        self.highest = self.next;
        self.timer = Some((now + self.patience(now), Timer::Retransmit));
    }

    /// The reader has made space: tells the peer when it is worth a segment.
    pub(super) fn open_window(&mut self, _now: Time, output: &mut Output) {
        let receives = matches!(
            self.state,
            State::Established | State::FinWait1 | State::FinWait2
        );
        let gained = (self.expected + self.window()).saturating_sub(self.advertised);
        if receives
            && !self.is_finished
            && gained >= self.mss.min(self.receive_capacity as u64 / 2).max(1)
        {
            self.send_ack(output);
        }
    }

    /// Sends what the windows of the peer and of congestion allow, and sets the timer.
    pub(super) fn transmit(&mut self, now: Time, output: &mut Output) {
        if !matches!(
            self.state,
            State::Established
                | State::CloseWait
                | State::FinWait1
                | State::Closing
                | State::LastAck
        ) {
            return;
        }
        let limit = self
            .send_limit
            .min(self.unacknowledged + self.congestion_window);
        let data_end = self.fin_number();
        while self.next < data_end.min(limit) {
            let end = data_end.min(limit).min(self.next + self.mss);
            self.send_data(end, now, output);
        }
        if self.fin_queued && self.next == data_end && self.next <= limit {
            let fin = self.segment_at(self.next, Flags::Fin, Vec::new());
            output.segments.push(fin);
            self.sent(self.next + 1, now);
        }
        self.set_timer(now);
    }

    /// Sends the bytes from `next` on, with the FIN if they are the last ones.
    fn send_data(&mut self, end: u64, now: Time, output: &mut Output) {
        let range = (self.next - self.send_start) as usize..(end - self.send_start) as usize;
        let data: Vec<u8> = self.send_queue.range(range).copied().collect();
        let ends = self.fin_queued && end == self.fin_number();
        let flags = if ends { Flags::Fin } else { Flags::None };
        let segment = self.segment_at(self.next, flags, data);
        output.segments.push(segment);
        self.sent(end + u64::from(ends), now);
    }

    fn sent(&mut self, next: u64, now: Time) {
        // A segment that is sent twice tells nothing of the round trip (Karn).
        if self.timed.is_none() && self.next == self.highest {
            self.timed = Some((next, now));
        }
        self.next = next;
        self.highest = self.highest.max(next);
    }

    pub(super) fn set_timer(&mut self, now: Time) {
        if self.highest > self.unacknowledged {
            if !self
                .timer
                .is_some_and(|(_, timer)| timer == Timer::Retransmit)
            {
                self.timer = Some((now + self.patience(now), Timer::Retransmit));
            }
        } else if self.next < self.fin_number() {
            if !self.timer.is_some_and(|(_, timer)| timer == Timer::Probe) {
                self.timer = Some((now + self.patience(now), Timer::Probe));
            }
        } else {
            self.timer = None;
        }
    }
}
