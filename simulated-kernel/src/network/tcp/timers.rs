//! Time-outs, round trips and congestion.

use std::time::Duration;

use super::super::address::Time;
use super::connection::{Connection, Output, State, Timer};
use super::limits::{
    LONGEST_TIMEOUT, ORPHAN_SILENCE_LIMIT, SHORTEST_TIMEOUT, SILENCE_LIMIT, SYN_ACK_RETRIES,
    SYN_RETRIES,
};

impl Connection {
    /// When `expire` is to be called.
    pub(in super::super) fn deadline(&self) -> Option<Time> {
        self.timer.map(|(at, _)| at)
    }

    pub(in super::super) fn expire(&mut self, now: Time, output: &mut Output) {
        let Some((_, timer)) = self.timer.take_if(|(at, _)| *at <= now) else {
            return;
        };
        match timer {
            Timer::End => self.end(None, output),
            Timer::Retransmit => self.retransmit_all(now, output),
            Timer::Probe => self.probe(now, output),
        }
    }

    pub(super) fn backed_off(&self) -> Duration {
        self.timeout
            .saturating_mul(1 << self.timeouts.min(16))
            .min(LONGEST_TIMEOUT)
    }

    fn retransmit_all(&mut self, now: Time, output: &mut Output) {
        let is_starting = matches!(self.state, State::SynSent | State::SynReceived);
        if !is_starting && self.has_given_up(now) {
            return self.end(Some(libc::ETIMEDOUT), output);
        }
        self.timeouts += 1;
        match self.state {
            State::SynSent | State::SynReceived => {
                let retries = if self.state == State::SynSent {
                    SYN_RETRIES
                } else {
                    SYN_ACK_RETRIES
                };
                if self.timeouts > retries {
                    self.end(Some(libc::ETIMEDOUT), output);
                } else {
                    self.send_syn(now, output);
                }
            }
            _ => {
                let in_flight = self.highest - self.unacknowledged;
                self.slow_start_until = (in_flight / 2).max(2 * self.mss);
                self.congestion_window = self.mss;
                self.recovering = None;
                self.duplicate_acks = 0;
                self.timed = None;
                self.next = self.unacknowledged;
                self.transmit(now, output);
            }
        }
    }

    /// Asks with a number that the peer has already, which it answers.
    fn probe(&mut self, now: Time, output: &mut Output) {
        // Without an owner it does not wait forever, although the peer answers.
        let is_abandoned = self.is_orphan && self.backed_off() == LONGEST_TIMEOUT;
        if is_abandoned || self.has_given_up(now) {
            return self.end(Some(libc::ETIMEDOUT), output);
        }
        self.timeouts += 1;
        let next = self.next;
        self.next = self.unacknowledged - 1;
        self.send_ack(output);
        self.next = next;
        self.set_timer(now);
    }

    fn has_given_up(&mut self, now: Time) -> bool {
        let since = *self.silent_since.get_or_insert(now);
        now - since >= self.silence_limit()
    }

    fn silence_limit(&self) -> Duration {
        match (self.user_timeout, self.is_orphan) {
            (Some(limit), _) => limit,
            (None, true) => ORPHAN_SILENCE_LIMIT,
            (None, false) => SILENCE_LIMIT,
        }
    }

    /// How long the next answer is waited for.
    pub(super) fn patience(&self, now: Time) -> Duration {
        let left = match (self.user_timeout, self.silent_since) {
            (Some(limit), Some(since)) => (since + limit).saturating_sub(now),
            _ => Duration::MAX,
        };
        // As `tcp_clamp_rto_to_user_timeout` has it.
        self.backed_off().min(left.max(Duration::from_millis(1)))
    }

    /// The peer has everything below `ack`, which is more than before.
    pub(super) fn acknowledge(&mut self, ack: u64, now: Time) {
        let bytes = ack
            .saturating_sub(self.send_start)
            .min(self.send_queue.len() as u64);
        self.send_queue.drain(..bytes as usize);
        self.send_start += bytes;
        self.unacknowledged = ack;
        self.next = self.next.max(ack);
        self.duplicate_acks = 0;
        self.timeouts = 0;
        self.silent_since = None;
        if let Some((_, sent)) = self.timed.take_if(|(end, _)| *end <= ack) {
            self.measured(now - sent);
        }
        self.grow_window(bytes);
        let is_outstanding = self.highest > ack;
        self.timer = is_outstanding.then(|| (now + self.timeout, Timer::Retransmit));
    }

    fn grow_window(&mut self, bytes: u64) {
        if self.congestion_window < self.slow_start_until {
            self.congestion_window += bytes.min(2 * self.mss);
        } else if bytes > 0 {
            self.congestion_window += (self.mss * self.mss / self.congestion_window.max(1)).max(1);
        }
    }

    /// RFC 6298, section 2.
    fn measured(&mut self, round_trip: Duration) {
        let smoothed = match self.round_trip {
            None => {
                self.round_trip_variance = round_trip / 2;
                round_trip
            }
            Some(smoothed) => {
                self.round_trip_variance =
                    (self.round_trip_variance * 3 + smoothed.abs_diff(round_trip)) / 4;
                (smoothed * 7 + round_trip) / 8
            }
        };
        self.round_trip = Some(smoothed);
        self.timeout =
            (smoothed + (self.round_trip_variance * 4).max(SHORTEST_TIMEOUT)).min(LONGEST_TIMEOUT);
    }

    /// The third one in a row says that a segment is lost while later ones arrive.
    pub(super) fn duplicate_acknowledgement(&mut self, now: Time, output: &mut Output) {
        self.duplicate_acks += 1;
        if self.duplicate_acks != 3 || self.recovering.is_some() {
            return;
        }
        let in_flight = self.highest - self.unacknowledged;
        self.slow_start_until = (in_flight / 2).max(2 * self.mss);
        self.congestion_window = self.slow_start_until;
        self.recovering = Some(self.highest);
        self.timed = None;
        self.retransmit_first(now, output);
    }

    /// Something new is acknowledged while a loss is being repaired: what follows it is lost, too,
    /// if it was sent before the loss was seen (RFC 6582).
    pub(super) fn partial_acknowledgement(&mut self, now: Time, output: &mut Output) {
        match self.recovering {
            Some(until) if self.unacknowledged < until => self.retransmit_first(now, output),
            _ => self.recovering = None,
        }
    }

    fn retransmit_first(&mut self, now: Time, output: &mut Output) {
        let (next, window) = (self.next, self.congestion_window);
        self.next = self.unacknowledged;
        self.congestion_window = self.mss;
        self.transmit(now, output);
        self.next = next.max(self.next);
        self.congestion_window = window;
    }
}
