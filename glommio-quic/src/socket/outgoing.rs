//! Datagrams of several connections, collected to be sent by one call.

use super::{LONGEST, Socket};
use quinn_proto::Transmit;
use std::mem;

/// What is to be sent next, in the order in which it was written.
#[derive(Default)]
pub(crate) struct Outgoing {
    sends: Vec<Prepared>,
    /// The next one is written here.
    next: Vec<u8>,
}

/// Datagrams to one receiver.
pub(super) struct Prepared {
    pub(super) transmit: Transmit,
    /// Of `transmit.size` bytes.
    pub(super) payload: Vec<u8>,
}

/// Receivers that one call sends to.
const SENDS: usize = 32;

/// Datagrams of this many bytes and fewer go together with those of other connections of one peer:
/// all paths take them (RFC 9000, section 14), so that none of them is rejected because of another.
const ALWAYS_FITS: usize = 1200;

impl Outgoing {
    /// An empty buffer, for what is then [added](Self::add).
    pub(crate) fn next(&mut self) -> &mut Vec<u8> {
        self.next.clear();
        &mut self.next
    }

    /// Adds what was written to [`next`](Self::next).
    pub(crate) fn add(&mut self, transmit: Transmit, socket: &Socket) {
        self.next.truncate(transmit.size);
        if let Some(last) = self.sends.last_mut()
            && last.takes(&transmit, socket.most_segments())
        {
            last.payload.extend_from_slice(&self.next);
            last.transmit.segment_size.get_or_insert(last.transmit.size);
            last.transmit.size += transmit.size;
            return;
        }
        let spare = socket.buffers.spare.borrow_mut().pop();
        let spare = spare.unwrap_or_default();
        let payload = mem::replace(&mut self.next, spare);
        self.sends.push(Prepared { transmit, payload });
    }

    /// Whether it is time to send. What a connection has several datagrams of goes at once, so that the
    /// peer works on them while the next ones are made.
    pub(crate) fn is_full(&self) -> bool {
        let is_bulk = |last: &Prepared| last.transmit.size > 2 * ALWAYS_FITS;
        self.sends.len() >= SENDS || self.sends.last().is_some_and(is_bulk)
    }

    pub(super) fn sends(&self) -> &[Prepared] {
        &self.sends
    }

    pub(super) fn clear(&mut self, socket: &Socket) {
        let mut spare = socket.buffers.spare.borrow_mut();
        let missing = SENDS.saturating_sub(spare.len());
        let payloads = self.sends.drain(..).map(|it| it.payload);
        spare.extend(payloads.take(missing));
    }
}

impl Prepared {
    /// Whether `other` can be sent behind it, as one more segment.
    fn takes(&self, other: &Transmit, most: usize) -> bool {
        let Transmit { size, .. } = self.transmit;
        let segment = self.transmit.segment_size.unwrap_or(size);
        other.segment_size.is_none()
            && other.size <= segment
            && segment <= ALWAYS_FITS
            // The last segment may be shorter, and no other.
            && size.is_multiple_of(segment)
            && size / segment < most
            && size + other.size <= LONGEST
            && self.transmit.destination == other.destination
            && self.transmit.ecn == other.ecn
            && self.transmit.src_ip == other.src_ip
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_proto::EcnCodepoint;

    fn transmit(size: usize) -> Transmit {
        Transmit {
            destination: ([127, 0, 0, 1], 4433).into(),
            ecn: None,
            size,
            segment_size: None,
            src_ip: None,
        }
    }

    fn takes(sizes: &[usize], other: &Transmit, most: usize) -> bool {
        let mut first = transmit(sizes.iter().sum());
        first.segment_size = (sizes.len() > 1).then_some(sizes[0]);
        let payload = vec![0; first.size];
        let transmit = first;
        Prepared { transmit, payload }.takes(other, most)
    }

    #[test]
    fn datagrams_to_one_peer_go_together_if_the_kernel_can_cut_them() {
        assert!(takes(&[40], &transmit(40), 64));
        assert!(takes(&[40; 63], &transmit(30), 64));
        assert!(!takes(&[40; 64], &transmit(40), 64), "too many");
        assert!(!takes(&[40], &transmit(40), 1), "there is no offload");
        assert!(!takes(&[40], &transmit(41), 64), "longer than a segment");
        assert!(!takes(&[40, 30], &transmit(30), 64), "behind a shorter one");
        assert!(!takes(&[1201], &transmit(40), 64), "might be rejected");
        assert!(takes(&[1200; 53], &transmit(1200), 64));
        assert!(!takes(&[1200; 54], &transmit(1200), 64), "too long in all");

        let elsewhere = Transmit {
            destination: ([127, 0, 0, 1], 4434).into(),
            ..transmit(40)
        };
        let marked = Transmit {
            ecn: Some(EcnCodepoint::Ect0),
            ..transmit(40)
        };
        let from = Transmit {
            src_ip: Some([127, 0, 0, 1].into()),
            ..transmit(40)
        };
        let several = Transmit {
            segment_size: Some(20),
            ..transmit(40)
        };
        for other in [elsewhere, marked, from, several] {
            assert!(!takes(&[40], &other, 64), "{other:?}");
        }
    }
}
