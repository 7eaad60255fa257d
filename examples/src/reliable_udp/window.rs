//! The sender's window: what has been sent and not been acknowledged.
//!
//! ```text
//!            base                      next
//!   acked ...| sent  acked sent  sent  | not sent yet
//!            └──── at most `limit` ────┘
//! ```
//!
//! Selective repeat: each datagram is acknowledged, timed and sent again by itself, and the window
//! moves on when its oldest has been acknowledged. Pure: it neither sends nor looks at a clock, and
//! of a timer it knows only the name that it was given.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use super::ack::{Ack, check_window};

/// The window of one flow. `T` names a timer.
#[derive(Debug)]
pub struct Window<T> {
    limit: usize,
    base: u64,
    /// Those from `base` on; `None` stands for one that was acknowledged, and never comes first.
    flights: VecDeque<Option<Flight<T>>>,
}

/// A datagram in flight.
#[derive(Debug)]
pub struct Flight<T> {
    /// What it carries.
    pub segment: Rc<[u8]>,
    /// When it was last sent.
    pub sent_at: Instant,
    /// How many times it was sent again.
    pub resent: u32,
    /// When it is to be sent again.
    pub timer: T,
}

impl<T> Window<T> {
    /// An empty window for up to `limit` datagrams.
    ///
    /// # Panics
    ///
    /// Panics if [`check_window`] does.
    pub fn new(limit: usize) -> Self {
        check_window(limit);
        Window {
            limit,
            base: 0,
            flights: VecDeque::with_capacity(limit),
        }
    }

    /// The sequence number of the next datagram.
    pub fn next(&self) -> u64 {
        self.base + self.flights.len() as u64
    }

    /// From the oldest that was not acknowledged to the newest, whatever became of those in
    /// between.
    pub fn span(&self) -> usize {
        self.flights.len()
    }

    /// Whether nothing more may be sent until the oldest is acknowledged.
    pub fn is_full(&self) -> bool {
        self.flights.len() == self.limit
    }

    /// Enters the next datagram, which is being sent for the first time.
    ///
    /// # Panics
    ///
    /// Panics if the window is full.
    pub fn push(&mut self, segment: Rc<[u8]>, sent_at: Instant, timer: T) {
        assert!(
            !self.is_full(),
            "more than {} datagrams in flight",
            self.limit
        );
        self.flights.push_back(Some(Flight {
            segment,
            sent_at,
            resent: 0,
            timer,
        }));
    }

    /// A datagram that is in flight.
    pub fn flight(&mut self, sequence: u64) -> Option<&mut Flight<T>> {
        let index = usize::try_from(sequence.checked_sub(self.base)?).ok()?;
        self.flights.get_mut(index)?.as_mut()
    }

    /// All that are in flight, the oldest first.
    pub fn flights(&self) -> impl Iterator<Item = &Flight<T>> {
        self.flights.iter().flatten()
    }

    /// Takes out what `ack` covers, moves the timers that are no longer needed into `freed`, and
    /// returns when the youngest datagram among them was sent, for its round trip. By Karn's rule
    /// one that was sent again does not count, as it is not known which of its copies arrived.
    ///
    /// # Errors
    ///
    /// If `ack` covers what was never sent; the window is as before.
    pub fn acknowledge(
        &mut self,
        ack: &Ack,
        freed: &mut Vec<T>,
    ) -> Result<Option<Instant>, Unsent> {
        let next = self.next();
        if ack.end().is_none_or(|end| end > next) {
            return Err(Unsent { next });
        }
        let mut sent_at = None;
        for (sequence, place) in (self.base..).zip(&mut self.flights) {
            if !ack.covers(sequence) {
                continue;
            }
            if let Some(flight) = place.take() {
                if flight.resent == 0 {
                    sent_at = Some(flight.sent_at);
                }
                freed.push(flight.timer);
            }
        }
        while let Some(None) = self.flights.front() {
            self.flights.pop_front();
            self.base += 1;
        }
        Ok(sent_at)
    }
}

impl<T> Flight<T> {
    /// It is being sent again, with a new timer.
    pub fn resend(&mut self, now: Instant, timer: T) {
        self.sent_at = now;
        self.resent = self.resent.saturating_add(1);
        self.timer = timer;
    }
}

/// The peer acknowledges what was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    next: u64,
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an acknowledgement beyond {}, which is yet to be sent",
            self.next
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(limit: usize, at: Instant) -> Window<u64> {
        let mut window = Window::new(limit);
        while !window.is_full() {
            let sequence = window.next();
            window.push(Rc::from([]), at, sequence);
        }
        window
    }

    fn ack(next: u64, ahead: &[u64]) -> Ack {
        let mut ack = Ack::new(next);
        ahead.iter().for_each(|&sequence| ack.note(sequence));
        ack
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let now = Instant::now();
        let mut window = filled(4, now);
        let mut freed = Vec::new();
        let last_words = Ack::from_words(u64::MAX, [u64::MAX]).expect("one word is not too many");
        for beyond in [ack(5, &[]), ack(0, &[4]), last_words] {
            assert_eq!(
                window.acknowledge(&beyond, &mut freed),
                Err(Unsent { next: 4 })
            );
        }
        assert_eq!((window.span(), freed.len()), (4, 0));
    }
}
