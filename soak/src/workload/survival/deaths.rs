//! How shards die: alone, or, in a simulation, all at once with the power of their node.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::measure::nanos;

/// See the module.
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
