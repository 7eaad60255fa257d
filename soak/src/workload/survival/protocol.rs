//! What clients and service say to each other: frames of one size, answered in their order.

use std::sync::Mutex;

use crate::workload::prelude::*;

/// What a client asks for, or the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Which is to be stored.
    pub(super) number: u64,
    /// The client; in an answer, which life of which shard it comes from: no two have the same.
    pub(super) from: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The number is to be stored.
    Store,
    /// The shard also computes for a while, and is overloaded if many ask for that.
    Compute,
    /// It hands the connection to another shard, once it has answered.
    Move,
    /// It dies, when the number is stored and has not been confirmed,
    DieUnheard,
    /// or when it has been.
    DieConfirmed,
    /// The number is stored for good;
    Stored,
    /// the shard was overloaded, and has done nothing.
    Refused,
}

#[rustfmt::skip]
const WHATS: [What; 7] = {
    use What::{Compute, DieConfirmed, DieUnheard, Move, Refused, Store, Stored};
    [Store, Compute, Move, DieUnheard, DieConfirmed, Stored, Refused]
};

impl Frame {
    pub(super) fn encode(self) -> [u8; 16] {
        let (from, what) = (u128::from(self.from), self.what as u128);
        (u128::from(self.number) | from << 64 | what << 96).to_le_bytes()
    }

    pub(super) fn decode(bytes: [u8; 16]) -> io::Result<Frame> {
        let frame = u128::from_le_bytes(bytes);
        let what = WHATS.get((frame >> 96) as usize).copied();
        Ok(Frame {
            number: frame as u64,
            from: (frame >> 64) as u32,
            what: what.ok_or_else(|| io::Error::other("this is no frame"))?,
        })
    }
}

/// How shards die: alone, or, in a simulation, all at once with the power of their node.
#[derive(Clone, Debug, Default)]
pub(super) struct Deaths {
    /// Cuts the power.
    cut: Option<fn()>,
    /// When it was last cut.
    last: Arc<Mutex<Option<Instant>>>,
}

impl Deaths {
    #[cfg(feature = "simulation")]
    pub(super) fn by_power_cuts(cut: fn()) -> Self {
        let (cut, last) = (Some(cut), Arc::default());
        Deaths { cut, last }
    }

    /// Cuts the power. False if shards die alone.
    pub(super) fn cut_power(&self) -> bool {
        let Some(cut) = self.cut else {
            return false;
        };
        *lock(&self.last) = Some(clock::now());
        cut();
        true
    }

    /// Whether shards die by power cuts.
    pub(super) fn are_power_cuts(&self) -> bool {
        self.cut.is_some()
    }

    /// Whether a power cut explains that the service has been silent, or not there, since `began`.
    pub(super) fn explain_silence(&self, began: Instant) -> bool {
        lock(&self.last).is_some_and(|last| began <= last + STARTING)
    }
}

/// From a power cut on, until all shards listen again.
const STARTING: Duration = Duration::from_millis(100);
