//! What a receiver has: everything below one sequence number, and a bitmap of what lies ahead of
//! it.
//!
//! ```text
//!   sequence   .. n-2 n-1 | n | n+1 n+2 n+3 ..        `next` is n: the first one that is missing
//!   received       x   x  |   |  0   1   2  ..        bit i of the bitmap stands for n + 1 + i
//! ```
//!
//! Each acknowledgement says all there is to say about the window, so that a lost one costs nothing
//! once another comes, and an old one that was overtaken says nothing that is not true.
//!
//! Sequence numbers count datagrams, are 64 bits wide and never wrap: at a million a second they
//! last half a million years.

use std::time::Duration;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The first that is missing.
    pub next: u64,
    ahead: [u64; WORDS],
}

impl Ack {
    /// Everything below `next` was received, and nothing else yet.
    pub fn new(next: u64) -> Self {
        Ack {
            next,
            ahead: [0; WORDS],
        }
    }

    /// Notes that `sequence`, ahead of the first one missing, was received.
    ///
    /// # Panics
    ///
    /// Panics if the window does not reach so far ahead, or lies beyond `sequence`.
    pub fn note(&mut self, sequence: u64) {
        let (word, bit) = self
            .place(sequence)
            .expect("only what is within the window is received");
        self.ahead[word] |= bit;
    }

    /// Whether `sequence` was received.
    pub fn covers(&self, sequence: u64) -> bool {
        sequence < self.next
            || self
                .place(sequence)
                .is_some_and(|(word, bit)| self.ahead[word] & bit != 0)
    }

    /// One above the highest sequence number that was received. `None`: no such number exists.
    pub fn end(&self) -> Option<u64> {
        let Some(word) = self.ahead.iter().rposition(|&word| word != 0) else {
            return Some(self.next);
        };
        let highest_bit = word * BITS + self.ahead[word].ilog2() as usize;
        self.next.checked_add(2 + highest_bit as u64)
    }

    /// The bitmap up to its last word that is not zero.
    pub fn words(&self) -> &[u64] {
        let used = self.ahead.iter().rposition(|&word| word != 0);
        &self.ahead[..used.map_or(0, |last| last + 1)]
    }

    /// Puts together what [`words`](Self::words) took apart. `None`: too many words.
    pub fn from_words(next: u64, words: impl IntoIterator<Item = u64>) -> Option<Self> {
        let mut ack = Ack::new(next);
        let mut places = ack.ahead.iter_mut();
        for word in words {
            *places.next()? = word;
        }
        Some(ack)
    }

    /// The word and the bit of a sequence number that has one.
    fn place(&self, sequence: u64) -> Option<(usize, u64)> {
        let bit = sequence.checked_sub(self.next)?.checked_sub(1)?;
        let bit = usize::try_from(bit).ok().filter(|&bit| bit < WINDOW_MAX)?;
        Some((bit / BITS, 1 << (bit % BITS)))
    }
}

/// Checks the width of a window.
///
/// # Panics
///
/// Panics if an acknowledgement cannot tell `limit` datagrams apart, or if there are none.
pub fn check_window(limit: usize) {
    assert!(
        (1..=WINDOW_MAX).contains(&limit),
        "a window of {limit} datagrams"
    );
}

/// How long a receiver may keep an acknowledgement back for another datagram to be told of as well.
pub const ACK_DELAY: Duration = Duration::from_millis(8);

/// How many datagrams of a flow may be in flight.
pub const WINDOW_MAX: usize = 1_024;

const BITS: usize = u64::BITS as usize;
const WORDS: usize = WINDOW_MAX / BITS;
const _: () = assert!(
    WINDOW_MAX.is_multiple_of(BITS),
    "whole words, with a bit for each place ahead"
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The wire may bring any number at all.
    #[test]
    fn the_last_sequence_numbers_do_not_wrap() {
        let ack = Ack::from_words(u64::MAX, [1]).expect("one word is not too many");
        assert_eq!(ack.end(), None);
        assert!(ack.covers(u64::MAX - 1) && !ack.covers(u64::MAX));
    }
}
