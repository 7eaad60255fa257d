//! The fewest faults with which a simulation still fails.

use std::fmt;
use std::mem;
use std::time::Duration;

use super::builder::{Simulation, SimulationBuilder};
use super::fault::Fault;
use super::report::{Failure, Report};

/// Runs after which what is left counts as the fewest.
const RUNS_MAX: usize = 1000;

impl Simulation {
    /// Runs a simulation; if it fails, runs it again with fewer and fewer of the faults that have happened, to
    /// find the fewest with which it fails in the same way: the same kind of failure, on the same node.
    ///
    /// `run` is called for each run. It gets a builder, which knows the seed and which faults are to
    /// happen, adds the nodes and all else, and runs it. What the nodes share with the test must be made
    /// anew in each call.
    ///
    /// The faults are those that [`at`](SimulationBuilder::at), [`inject`](super::inject) and chance
    /// ([`restarts`](SimulationBuilder::restarts) and the like) have made happen, each at the time at which it happened in the first run.
    /// Loss and latency of the network and errors of disks are no faults in this sense, and stay.
    ///
    /// The search is delta debugging (Zeller and Hildebrandt, 2002). No fault that is left can be left out by
    /// itself, unless a thousand runs were not enough. A panic message is printed for each run that panics.
    ///
    /// # Errors
    ///
    /// If the first run has failed: how, and with which faults.
    ///
    /// # Panics
    ///
    /// As [`run`](SimulationBuilder::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// let minimised = Simulation::minimise(|simulation| {
    ///     let starts = Rc::new(Cell::new(0));
    ///     simulation
    ///         .node("server", 1, move || {
    ///             starts.set(starts.get() + 1);
    ///             let starts = starts.get();
    ///             async move {
    ///                 sleep(SECOND).await;
    ///                 assert!(starts < 3, "it has started for the third time");
    ///                 std::future::pending::<()>().await;
    ///             }
    ///         })
    ///         .restarts("server", SECOND / 2..10 * SECOND, SECOND / 10..SECOND / 5)
    ///         .run_for(3600 * SECOND)
    /// })
    /// .unwrap_err();
    /// assert_eq!(minimised.faults().len(), 2, "two power cuts suffice");
    /// ```
    pub fn minimise(
        mut run: impl FnMut(SimulationBuilder) -> Result<Report, Failure>,
    ) -> Result<Report, Minimised> {
        let first = match run(Simulation::builder()) {
            Ok(report) => return Ok(report),
            Err(failure) => failure,
        };
        Err(Self::minimise_failure(first, run))
    }

    /// The same, with how the first run has failed.
    pub(super) fn minimise_failure(
        first: Failure,
        mut run: impl FnMut(SimulationBuilder) -> Result<Report, Failure>,
    ) -> Minimised {
        // Without the calm at the end, faults go on that were to be over.
        let is_calm = |(_, fault): &(_, Fault)| *fault == Fault::Calm;
        let (calm, all): (Vec<_>, Vec<_>) = first.faults().iter().cloned().partition(is_calm);
        let is_seed_set = first.is_seed_set;
        let mut minimised = Minimised {
            of: all.len(),
            faults: all.clone(),
            failure: Box::new(first),
            runs: 1,
        };
        fewest(all, |faults| {
            if minimised.runs == RUNS_MAX {
                return false;
            }
            minimised.runs += 1;
            let seed = minimised.failure.seed();
            let faults = [faults, &calm].concat();
            match run(Simulation::builder().replaying(seed, faults.clone())) {
                Err(failure) if failure.is_as(&minimised.failure) => {
                    minimised.faults = faults;
                    *minimised.failure = Failure {
                        is_seed_set,
                        ..failure
                    };
                    true
                }
                _ => false,
            }
        });
        minimised
    }
}

impl Failure {
    /// Whether it is of the same kind, and on the same node. Messages may have numbers in them.
    fn is_as(&self, other: &Failure) -> bool {
        mem::discriminant(&self.kind) == mem::discriminant(&other.kind) && self.node == other.node
    }
}

/// Calls `fails` with less and less of `all`, which fails: each time with what has failed last, without a
/// part of it.
fn fewest<T: Clone>(all: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) {
    if all.is_empty() || fails(&[]) {
        return;
    }
    let (mut left, mut parts) = (all, 2);
    while left.len() > 1 {
        let size = left.len().div_ceil(parts);
        let without = |start: usize| {
            let end = left.len().min(start + size);
            [&left[..start], &left[end..]].concat()
        };
        let mut smaller = (0..left.len()).step_by(size).map(without);
        match smaller.find(|it| fails(it)) {
            Some(it) => {
                drop(smaller);
                left = it;
                parts = (parts - 1).max(2);
            }
            None if size == 1 => return,
            None => parts = (2 * parts).min(left.len()),
        }
    }
}

/// A failure, and the fewest faults that were found to suffice for it; see [`Simulation::minimise`].
///
/// # Examples
///
/// ```
/// use glommio::{simulation::Simulation, timer::sleep};
/// use std::time::Duration;
///
/// let minimised = Simulation::minimise(|simulation| {
///     let main = || async {
///         sleep(Duration::from_secs(1)).await;
///         panic!("with and without power cuts")
///     };
///     let often = Duration::from_millis(100)..Duration::from_millis(900);
///     simulation.client("client", main).node("server", 1, std::future::pending::<()>)
///         .restarts("server", often.clone(), often)
///         .run()
/// })
/// .unwrap_err();
/// assert!(minimised.of() >= 1 && minimised.runs() == 2);
/// assert!(minimised.faults().is_empty(), "none is needed");
/// assert!(minimised.failure().faults().is_empty());
/// println!("{minimised}");
/// ```
#[derive(Clone, Debug)]
pub struct Minimised {
    failure: Box<Failure>,
    faults: Vec<(Duration, Fault)>,
    of: usize,
    runs: usize,
}

impl Minimised {
    /// The failure with these faults only. Its seed is that of the first run.
    pub fn failure(&self) -> &Failure {
        &self.failure
    }

    /// The faults, each with the simulated time at which it happens. Given to
    /// [`at`](SimulationBuilder::at), with the same seed, they make the simulation fail in the same way.
    pub fn faults(&self) -> &[(Duration, Fault)] {
        &self.faults
    }

    /// How many had happened in the first run.
    pub fn of(&self) -> usize {
        self.of
    }

    /// How many runs it took.
    pub fn runs(&self) -> usize {
        self.runs
    }
}

impl fmt::Display for Minimised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Minimised {
            failure,
            faults,
            of,
            runs,
        } = self;
        writeln!(f, "{failure}")?;
        let count = faults.len();
        write!(f, "{count} of {of} faults suffice, found in {runs} runs")?;
        for (at, fault) in faults {
            write!(f, "\n{:>14.6} s {fault}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

impl std::error::Error for Minimised {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.failure)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::fewest;

    proptest! {
        /// What is needed is found, and nothing else, however it is spread.
        #[test]
        fn what_is_needed_is_left(count in 0_usize..60, needed in prop::collection::btree_set(0_usize..60, 0..6)) {
            let needed: BTreeSet<_> = needed.into_iter().filter(|it| *it < count).collect();
            let mut last: Vec<usize> = (0..count).collect();
            let mut runs = 0;
            fewest(last.clone(), |some| {
                runs += 1;
                let fails = needed.iter().all(|it| some.contains(it));
                if fails {
                    last = some.to_vec();
                }
                fails
            });
            prop_assert_eq!(last, needed.into_iter().collect::<Vec<_>>());
            prop_assert!(runs <= 4 * 60 * 7);
        }
    }
}
