//! What the machine does to everybody's timers: a plain thread that sleeps, beside the run.
//!
//! The thread asks the kernel for a millisecond and notes by how much it was overslept. On an idle
//! machine that is some 60 µs (the default timer slack); on a crowded one it is what the scheduler
//! makes a thread wait for a core, which no runtime can better. Lateness is judged relative to it.
//!
//! Beside it stands a measure of speed, since a slow processor makes every callback longer without
//! making a sleep late.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::control::nanos;
use crate::rng::Rng;
use crate::station::new_histogram;

/// The sleeping thread. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Noise {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Noise {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            is_stopped: AtomicBool::new(false),
            overslept: Mutex::new(new_histogram()),
        });
        let thread = thread::Builder::new()
            .name("soak-noise".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.sleep_until_stopped()
            })?;
        Ok(Noise {
            shared,
            thread: Some(thread),
        })
    }

    /// How much sleeps were overslept by, up to now.
    pub(crate) fn level(&self) -> Level {
        let overslept = self
            .shared
            .overslept
            .lock()
            .expect("no panic happens under this lock");
        Level {
            samples: overslept.len(),
            p50: Duration::from_nanos(overslept.value_at_quantile(0.5)),
            p999: Duration::from_nanos(overslept.value_at_quantile(0.999)),
            max: Duration::from_nanos(overslept.max()),
        }
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to report but a panic of its own, which is on the terminal already.
            let _ = thread.join();
        }
    }
}

/// The noise of a run so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    pub(crate) samples: u64,
    pub(crate) p50: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

#[derive(Debug)]
struct Shared {
    is_stopped: AtomicBool,
    overslept: Mutex<Histogram<u64>>,
}

impl Shared {
    fn sleep_until_stopped(&self) {
        while !self.is_stopped.load(Ordering::Relaxed) {
            let began = Instant::now();
            thread::sleep(SLEEP);
            let overslept = began.elapsed().saturating_sub(SLEEP);
            self.overslept
                .lock()
                .expect("no panic happens under this lock")
                .saturating_record(nanos(overslept));
        }
    }
}

/// How many times slower than the reference machine this one is at work like ours, at least 1.
pub(crate) fn slowness() -> f64 {
    let fastest = (0..5)
        .map(time_of_reference_work)
        .min()
        .expect("there are five rounds");
    (fastest.as_secs_f64() / REFERENCE.as_secs_f64()).max(1.0)
}

/// Random insertions into and removals from a sorted set: pointer chasing, comparisons, allocation.
fn time_of_reference_work(round: u64) -> Duration {
    let mut rng = Rng::new(round, 0);
    let mut set = BTreeSet::new();
    let began = Instant::now();
    for _ in 0..20_000 {
        set.insert(rng.next_u64());
        if set.len() > 5_000 {
            set.pop_first();
        }
    }
    black_box(&set);
    began.elapsed()
}

const SLEEP: Duration = Duration::from_millis(1);

/// The reference work in a release build on a current server core.
const REFERENCE: Duration = Duration::from_micros(2_500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_millisecond_is_never_undersleept_and_samples_come() {
        let noise = Noise::start().expect("a thread can be started");
        let deadline = Instant::now() + Duration::from_secs(10);
        while noise.level().samples < 5 && Instant::now() < deadline {
            thread::yield_now();
        }
        let level = noise.level();
        assert!(level.samples >= 5, "{level:?}");
        assert!(level.max >= level.p50, "{level:?}");
    }

    #[test]
    fn no_machine_is_faster_than_the_reference() {
        assert!(slowness() >= 1.0);
    }
}
