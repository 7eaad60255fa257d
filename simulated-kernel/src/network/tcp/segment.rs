//! What two ends exchange.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Segment {
    pub(in super::super) seq: u64,
    pub(in super::super) ack: Option<u64>,
    pub(in super::super) flags: Flags,
    /// Bytes that the sender of the segment takes beyond `ack`.
    pub(in super::super) window: u64,
    /// The largest payload that the sender takes; in segments with SYN.
    pub(in super::super) mss: u32,
    pub(in super::super) data: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Flags {
    None,
    Syn,
    Fin,
    Rst,
}

impl Segment {
    /// How many sequence numbers the segment takes.
    pub(super) fn len(&self) -> u64 {
        self.data.len() as u64 + u64::from(matches!(self.flags, Flags::Syn | Flags::Fin))
    }

    /// Takes the data from `at` on, with a FIN if there is one, into a segment of its own.
    pub(in super::super) fn split_off(&mut self, at: usize) -> Segment {
        let rest = Segment {
            seq: self.seq + at as u64,
            data: self.data.split_off(at),
            ..*self
        };
        self.flags = Flags::None;
        rest
    }

    /// The reset that answers this segment where no connection is, none if it is a reset itself.
    pub(in super::super) fn refusal(&self) -> Option<Segment> {
        if self.flags == Flags::Rst {
            return None;
        }
        let (seq, ack) = match self.ack {
            Some(ack) => (ack, None),
            None => (0, Some(self.seq + self.len())),
        };
        Some(Segment {
            seq,
            ack,
            flags: Flags::Rst,
            window: 0,
            mss: 0,
            data: Vec::new(),
        })
    }
}
