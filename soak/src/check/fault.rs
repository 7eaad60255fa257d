//! Planted defects: what a broken timer queue would do, so that anyone can see the checks catch it.
//!
//! They sit between the checks and the library. The model is told the truth; of some timers the
//! library is told something else, or their end is hidden from it. Nothing in the library changes.

use std::time::{Duration, Instant};

use clap::ValueEnum;
use support::generator::{Draw, Rng, stream};

use crate::check::invariants::Invariant;
use crate::clock;
use crate::measure::nanos;

/// A way to be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// Some timers fire before their deadline.
    Early,
    /// Some timers never fire.
    Lost,
    /// Some timers fire a second time, or although they were cancelled.
    Twice,
    /// Some timers' futures are never dropped.
    Leak,
}

impl Fault {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Fault::Early => "early",
            Fault::Lost => "lost",
            Fault::Twice => "twice",
            Fault::Leak => "leak",
        }
    }

    /// The invariants that it breaks: any one of them is a catch, and no other is.
    pub(crate) fn breaks(self) -> &'static [Invariant] {
        match self {
            Fault::Early => &[Invariant::NothingEarly],
            Fault::Lost => &[Invariant::NothingLost],
            Fault::Twice => &[Invariant::NothingTwice, Invariant::CancelsHold],
            Fault::Leak => &[Invariant::LiveTimers],
        }
    }
}

/// Decides which timers are struck.
#[derive(Debug)]
pub(crate) struct Planter {
    fault: Option<Fault>,
    rng: Rng,
}

impl Planter {
    pub(crate) fn new(fault: Option<Fault>, seed: u64) -> Self {
        Planter {
            fault,
            rng: stream(seed, FAULT_STREAM),
        }
    }

    /// Whether the timer at hand is struck by `fault`.
    pub(crate) fn strikes(&mut self, fault: Fault) -> bool {
        self.fault == Some(fault) && self.rng.chance(1, ONE_IN)
    }

    /// The deadline that the library is told of a timer that should fire at `deadline`.
    pub(crate) fn told(&mut self, deadline: Instant) -> Instant {
        if self.strikes(Fault::Early) {
            let ahead = deadline.saturating_duration_since(clock::now());
            return deadline - Duration::from_nanos(self.rng.u64(..nanos(ahead).max(1)));
        }
        if self.strikes(Fault::Lost) {
            return deadline + LOST_FOR;
        }
        deadline
    }
}

/// Rare enough that a run with a defect is a run all the same.
const ONE_IN: u64 = 200;

/// Longer than any workload waits for a timer, and short enough that executors end which do.
const LOST_FOR: Duration = Duration::from_secs(15);

/// Apart from every message and workload that draws from the same seed.
const FAULT_STREAM: u64 = u64::MAX - 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_fault_every_deadline_is_told_as_it_is() {
        let mut planter = Planter::new(None, 1);
        let deadline = clock::now() + Duration::from_secs(1);
        for _ in 0..10_000 {
            assert_eq!(planter.told(deadline), deadline);
            assert!(!planter.strikes(Fault::Leak));
        }
    }

    #[test]
    fn a_fault_strikes_some_and_only_in_its_own_way() {
        let deadline = clock::now() + Duration::from_secs(3_600);
        let told = |fault| {
            let mut planter = Planter::new(Some(fault), 1);
            let told: Vec<_> = (0..10_000).map(|_| planter.told(deadline)).collect();
            let earlier = told.iter().filter(|&&told| told < deadline).count();
            let later = told.iter().filter(|&&told| told > deadline).count();
            (earlier > 20, later > 20, earlier + later < 200)
        };
        assert_eq!(told(Fault::Early), (true, false, true));
        assert_eq!(told(Fault::Lost), (false, true, true));
        assert_eq!(told(Fault::Twice), (false, false, true));
        assert_eq!(told(Fault::Leak), (false, false, true));
    }
}
