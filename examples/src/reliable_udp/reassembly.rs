//! The receiver's side of the window: puts in order what comes out of order, and each of it once.
//!
//! Pure, like the window. Memory is bounded by it: what lies further ahead is refused, which no
//! sender that keeps its window ever sees.

use std::collections::VecDeque;

use super::ack::{Ack, check_window};

/// What has come of one flow and cannot be delivered yet.
#[derive(Debug)]
pub struct Reassembly {
    limit: usize,
    /// The first sequence number that is missing.
    next: u64,
    /// Those from `next` on, as far as they have come; the first is missing.
    waiting: VecDeque<Option<Box<[u8]>>>,
}

/// What became of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was delivered, with all that had waited for it.
    InOrder,
    /// It waits for one that comes before it.
    Ahead,
    /// It had come before.
    Duplicate,
    /// It lies beyond the window and was refused.
    Beyond,
}

impl Reassembly {
    /// For a sender that has up to `limit` datagrams in flight.
    ///
    /// # Panics
    ///
    /// Panics as [`check_window`] does.
    pub fn new(limit: usize) -> Self {
        check_window(limit);
        Reassembly {
            limit,
            next: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Takes a segment in, and hands to `deliver` what is in order by now.
    pub fn receive(
        &mut self,
        sequence: u64,
        segment: &[u8],
        mut deliver: impl FnMut(&[u8]),
    ) -> Arrival {
        let Some(ahead) = sequence.checked_sub(self.next) else {
            return Arrival::Duplicate;
        };
        if ahead >= self.limit as u64 {
            return Arrival::Beyond;
        }
        if ahead > 0 {
            return self.keep(ahead as usize, segment);
        }
        deliver(segment);
        self.next += 1;
        self.waiting.pop_front();
        while let Some(Some(_)) = self.waiting.front() {
            let segment = self.waiting.pop_front().flatten();
            deliver(&segment.expect("it was looked at just before"));
            self.next += 1;
        }
        Arrival::InOrder
    }

    /// Whether something waits for one that is missing.
    pub fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// What is to be said to the sender.
    pub fn ack(&self) -> Ack {
        let mut ack = Ack::new(self.next);
        for (sequence, place) in (self.next..).zip(&self.waiting) {
            if place.is_some() {
                ack.note(sequence);
            }
        }
        ack
    }

    fn keep(&mut self, ahead: usize, segment: &[u8]) -> Arrival {
        if self.waiting.len() <= ahead {
            self.waiting.resize_with(ahead + 1, || None);
        }
        let place = &mut self.waiting[ahead];
        if place.is_some() {
            return Arrival::Duplicate;
        }
        *place = Some(segment.into());
        Arrival::Ahead
    }
}
