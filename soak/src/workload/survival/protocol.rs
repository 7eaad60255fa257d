//! What clients and service say to each other: frames of one size, answered in their order.

use std::sync::atomic::AtomicU64;

use crate::workload::prelude::*;

/// Asks the service to store a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) client: u32,
    pub(super) number: u64,
    pub(super) extra: Extra,
}

/// What else the shard does that serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extra {
    Nothing,
    /// It computes for a while, and is overloaded if many ask for that.
    Compute,
    /// It hands the connection to another shard, once it has answered.
    Move,
    /// It dies, when the number is stored and has not been confirmed,
    DieUnheard,
    /// or when it has been.
    DieConfirmed,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) number: u64,
    /// Which life of which shard it comes from: no two have the same.
    pub(super) life: u32,
    /// The number is stored for good; else the shard was overloaded, and has done nothing.
    pub(super) is_stored: bool,
}

pub(super) type Frame = [u8; 16];

const EXTRAS: [Extra; 5] = [
    Extra::Nothing,
    Extra::Compute,
    Extra::Move,
    Extra::DieUnheard,
    Extra::DieConfirmed,
];

impl Request {
    pub(super) fn encode(self) -> Frame {
        frame(self.number, self.client, self.extra as u32)
    }

    /// `None`: this is no request.
    pub(super) fn decode(bytes: Frame) -> Option<Request> {
        let (number, client, extra) = parts(bytes);
        Some(Request {
            client,
            number,
            extra: *EXTRAS.get(extra as usize)?,
        })
    }
}

impl Answer {
    pub(super) fn encode(self) -> Frame {
        frame(self.number, self.life, self.is_stored.into())
    }

    pub(super) fn decode(bytes: Frame) -> Answer {
        let (number, life, is_stored) = parts(bytes);
        Answer {
            number,
            life,
            is_stored: is_stored != 0,
        }
    }
}

fn frame(number: u64, first: u32, second: u32) -> Frame {
    let frame = u128::from(number) | u128::from(first) << 64 | u128::from(second) << 96;
    frame.to_le_bytes()
}

fn parts(frame: Frame) -> (u64, u32, u32) {
    let frame = u128::from_le_bytes(frame);
    (frame as u64, (frame >> 64) as u32, (frame >> 96) as u32)
}

/// How shards die: alone, or, in a simulation, all at once with the power of their node.
#[derive(Clone, Debug, Default)]
pub(super) struct Deaths(Option<PowerCuts>);

#[derive(Clone, Debug)]
struct PowerCuts {
    cut: fn(),
    elapsed: fn() -> Duration,
    /// When power was last cut.
    last_ns: Arc<AtomicU64>,
}

impl Deaths {
    /// By calls of `cut`, at the time that `elapsed` says.
    #[cfg(feature = "simulation")]
    pub(super) fn by_power_cuts(cut: fn(), elapsed: fn() -> Duration) -> Self {
        Deaths(Some(PowerCuts {
            cut,
            elapsed,
            last_ns: Arc::default(),
        }))
    }

    /// Cuts the power. False if shards die alone.
    pub(super) fn cut_power(&self) -> bool {
        let Some(cuts) = &self.0 else {
            return false;
        };
        cuts.last_ns
            .store(nanos((cuts.elapsed)()), Ordering::Relaxed);
        (cuts.cut)();
        true
    }

    /// Whether shards die by power cuts.
    pub(super) fn are_power_cuts(&self) -> bool {
        self.0.is_some()
    }

    /// The time, if shards die by power cuts.
    pub(super) fn elapsed(&self) -> Duration {
        self.0
            .as_ref()
            .map_or(Duration::ZERO, |cuts| (cuts.elapsed)())
    }

    /// Whether a power cut explains that the service has been silent, or not there, since `began`.
    pub(super) fn explain_silence(&self, began: Duration) -> bool {
        self.0.as_ref().is_some_and(|cuts| {
            let last_ns = cuts.last_ns.load(Ordering::Relaxed);
            last_ns > 0 && nanos(began) <= last_ns + nanos(STARTING)
        })
    }
}

/// From a power cut on, until all shards listen again.
const STARTING: Duration = Duration::from_millis(100);
