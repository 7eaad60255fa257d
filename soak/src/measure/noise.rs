//! What the machine does to all timers: a plain thread that sleeps, beside the run.
//!
//! The thread wants to wake at each millisecond and notes by how much it was overslept. On an idle
//! machine that is some 60 µs (the default timer slack); on a crowded one it is what the scheduler
//! makes a thread wait for a core, which no runtime can better. Lateness is judged relative to it.
//!
//! Beside it stands a measure of speed, since a slow processor makes every callback longer without
//! making a sleep late.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use support::generator::stream;
use support::process::thread_time;
use support::quantiles::{Histogram, histogram};

use crate::measure::lag::{Lags, Spans};

/// By how much the thread was overslept. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Noise(Arc<Lags>);

impl Noise {
    pub(crate) fn start() -> io::Result<Self> {
        let overslept = Arc::<Lags>::default();
        let wanted = Arc::downgrade(&overslept);
        let thread = thread::Builder::new().name("soak-noise".to_owned());
        thread.spawn(move || {
            let mut due = Instant::now();
            while let Some(overslept) = wanted.upgrade() {
                // Not from the end of the sleep before: every millisecond counts, also those overslept.
                due += SLEEP;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                overslept.record(due, Instant::now());
            }
        })?;
        Ok(Noise(overslept))
    }

    /// Takes by how much sleeps that ended before `until` were overslept, and not taken yet,
    /// without the time for which the process was stopped.
    pub(crate) fn take(&self, stalls: &Spans, until: Instant) -> Histogram<u64> {
        self.0.take(&[stalls], until).unwrap_or_else(histogram)
    }
}

/// How many times slower than the reference machine this one is at work like ours, at least 1: in
/// processor time, so that it is the same however many others want the processor.
pub(crate) fn slowness() -> f64 {
    let times = (0..5).map(time_of_reference_work);
    let fastest = times.min().unwrap_or(Duration::MAX);
    fastest.div_duration_f64(REFERENCE).max(1.0)
}

/// Random insertions into and removals from a sorted set: pointer chasing, comparisons, allocation.
fn time_of_reference_work(round: u64) -> Duration {
    let mut rng = stream(round, 0);
    let mut set = BTreeSet::new();
    let began = thread_time();
    for _ in 0..20_000 {
        set.insert(rng.u64(..));
        if set.len() > 5_000 {
            set.pop_first();
        }
    }
    black_box(&set);
    thread_time().saturating_sub(began)
}

/// From one deadline to the next.
pub(crate) const SLEEP: Duration = Duration::from_millis(1);

/// The reference work in a release build on a current server core.
const REFERENCE: Duration = Duration::from_micros(2_500);
