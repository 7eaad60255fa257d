//! Many seeds, on all CPUs.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::builder::{Simulation, SimulationBuilder, environment_seed};
use super::minimise::Minimised;
use super::report::{Failure, Report};

impl Simulation {
    /// Runs a simulation with each of many seeds, on as many threads as there are CPUs, and tells what came of them:
    /// how many have failed, the shortest plan of faults that makes one fail, and what was never covered.
    ///
    /// `run` is called for each seed, with a builder that has it: it adds the nodes and all else, and runs it. What
    /// the nodes share with the test must be made anew in each call. With `GLOMMIO_SEED` in the environment,
    /// that seed alone is run.
    ///
    /// # Panics
    ///
    /// As `run`.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// let summary = Simulation::seeds(0..20, |simulation| {
    ///     simulation
    ///         .node("server", 1, || async { sleep(3600 * SECOND).await })
    ///         .restarts("server", SECOND..10 * SECOND, SECOND..5 * SECOND)
    ///         .run_for(60 * SECOND)
    /// });
    /// println!("{summary}");
    /// summary.assert_passed();
    /// assert_eq!(summary.coverage()["power cut"], 20, "seeds in which there was one");
    /// ```
    pub fn seeds(
        seeds: Range<u64>,
        run: impl Fn(SimulationBuilder) -> Result<Report, Failure> + Sync,
    ) -> Summary {
        let seeds = match environment_seed() {
            Ok(Some(seed)) => seed..seed.saturating_add(1),
            // What is wrong with it is told by the runs.
            _ => seeds,
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicU64::new(seeds.start);
        let work = || {
            let mut summary = Summary::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return summary;
                }
                summary.add(seed, run(Simulation::builder().with_fixed_seed(seed)));
            }
        };
        let mut summary = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let summaries = workers.into_iter().map(|it| match it.join() {
                Ok(summary) => summary,
                Err(payload) => resume_unwind(payload),
            });
            summaries.fold(Summary::default(), Summary::with)
        });
        summary.failed.sort_unstable();
        let best = summary.best.take();
        summary.shortest = best.map(|failure| Simulation::minimise_failure(*failure, &run));
        summary
    }
}

/// What came of [many seeds](Simulation::seeds).
///
/// # Examples
///
/// ```
/// use glommio::simulation::Simulation;
///
/// # std::panic::set_hook(Box::new(|_| {}));
/// let summary = Simulation::seeds(0..40, |simulation| {
///     simulation
///         .client("client", || async {
///             let is_rare = glommio::rng_seed() % 4 == 0;
///             glommio::sometimes!(is_rare, "the rare case");
///             glommio::sometimes!(false, "what never happens");
///             assert!(!is_rare, "a bug");
///         })
///         .run()
/// });
/// assert_eq!(summary.count(), 40);
/// assert!(!summary.failed_seeds().is_empty());
/// assert!(summary.shortest().is_some_and(|it| it.faults().is_empty()));
/// assert!(summary.coverage()["the rare case"] > 0);
/// assert_eq!(summary.never().collect::<Vec<_>>(), ["what never happens"]);
/// let passed = std::panic::catch_unwind(|| summary.assert_passed());
/// assert!(passed.is_err(), "it tells what has failed");
/// ```
#[derive(Debug, Default)]
pub struct Summary {
    count: u64,
    failed: Vec<u64>,
    /// That with the fewest faults.
    best: Option<Box<Failure>>,
    shortest: Option<Minimised>,
    coverage: BTreeMap<&'static str, u64>,
}

impl Summary {
    fn add(&mut self, seed: u64, run: Result<Report, Failure>) {
        self.count += 1;
        let coverage = match &run {
            Ok(report) => report.coverage(),
            Err(failure) => failure.coverage(),
        };
        for (name, count) in coverage {
            *self.coverage.entry(name).or_default() += u64::from(*count > 0);
        }
        if let Err(failure) = run {
            self.failed.push(seed);
            self.keep(Box::new(failure));
        }
    }

    fn with(mut self, other: Summary) -> Self {
        self.count += other.count;
        self.failed.extend(other.failed);
        for (name, count) in other.coverage {
            *self.coverage.entry(name).or_default() += count;
        }
        if let Some(failure) = other.best {
            self.keep(failure);
        }
        self
    }

    fn keep(&mut self, failure: Box<Failure>) {
        let length = |it: &Failure| (it.faults().len(), it.elapsed, it.seed);
        if (self.best.as_ref()).is_none_or(|best| length(&failure) < length(best)) {
            self.best = Some(failure);
        }
    }

    /// How many seeds have run.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those that have failed, in their order.
    pub fn failed_seeds(&self) -> &[u64] {
        &self.failed
    }

    /// The failure with the fewest faults, without those that it does not need.
    pub fn shortest(&self) -> Option<&Minimised> {
        self.shortest.as_ref()
    }

    /// In how many seeds each [`sometimes!`](crate::sometimes) was true and each kind of fault has happened, by
    /// name.
    pub fn coverage(&self) -> &BTreeMap<&'static str, u64> {
        &self.coverage
    }

    /// The names of each [`sometimes!`](crate::sometimes) that was reached and never true.
    pub fn never(&self) -> impl Iterator<Item = &'static str> {
        let never = self.coverage.iter().filter(|(_, count)| **count == 0);
        never.map(|(name, _)| *name)
    }

    /// Does nothing if all seeds have passed.
    ///
    /// # Panics
    ///
    /// Panics with all that is known if one has failed.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.failed.is_empty(), "{self}");
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shortest) = &self.shortest {
            writeln!(f, "{shortest}\n")?;
        }
        for (name, count) in &self.coverage {
            writeln!(f, "{name}: in {count} seeds")?;
        }
        write!(f, "{} seeds, {} failed", self.count, self.failed.len())?;
        for (place, seed) in self.failed.iter().take(10).enumerate() {
            write!(f, "{} {seed}", if place == 0 { ":" } else { "," })?;
        }
        match self.failed.len() > 10 {
            true => f.write_str(", ..."),
            false => Ok(()),
        }
    }
}
