//! What a test does while nodes run: checks, and looks at how far they have come.

use std::time::Duration;

use super::builder::{NodeOutput, SimulationBuilder};
use super::fault::Fault;
#[cfg(doc)]
use super::report::FailureKind;
use super::spec::{Invariant, OnStart};

impl SimulationBuilder {
    /// Calls `hook` whenever a node starts, for the first time or again, before any of its code runs: with its name,
    /// and how often it has started.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// let starts = Rc::new(Cell::new(0));
    /// let most = Rc::clone(&starts);
    /// Simulation::builder()
    ///     .node("server", 2, || async { sleep(3600 * SECOND).await })
    ///     .restarts("server", 10 * SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///     .on_start(move |_node, count| most.set(count))
    ///     .run_for(600 * SECOND)?;
    /// assert!(starts.get() > 1);
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn on_start(mut self, hook: impl FnMut(&str, u64) + 'static) -> Self {
        self.spec.on_start.push(OnStart(Box::new(hook)));
        self
    }

    /// Calls `check` each time that `interval` of simulated time has passed, and at the end. The run ends with
    /// [`FailureKind::Invariant`] if it panics or returns an error.
    ///
    /// It looks at what the nodes share with the test, and sees the state of all of them at one moment. It changes
    /// nothing: a run with checks does the same as one without.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::{FailureKind, Simulation}, timer::sleep};
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// let leaders = Rc::new(Cell::new(0));
    /// let seen = Rc::clone(&leaders);
    /// let node = move || {
    ///     let leaders = Rc::clone(&leaders);
    ///     async move {
    ///         sleep(SECOND).await;
    ///         leaders.set(leaders.get() + 1); // without an election
    ///     }
    /// };
    /// let run = Simulation::builder()
    ///     .node("a", 1, node.clone())
    ///     .node("b", 1, node)
    ///     .invariant(SECOND / 10, move || assert!(seen.get() < 2, "two nodes lead"))
    ///     .run_for(10 * SECOND);
    /// let kind = run.unwrap_err().kind().clone();
    /// assert_eq!(kind, FailureKind::Invariant("two nodes lead".into()));
    /// ```
    pub fn invariant<O: NodeOutput>(
        mut self,
        interval: Duration,
        mut check: impl FnMut() -> O + 'static,
    ) -> Self {
        let check = Box::new(move || check().failure());
        self.spec.invariants.push(Invariant {
            interval,
            next: interval,
            check,
        });
        self
    }

    /// Has faults by chance come for `faults_for` only: then [everything works](Fault::Calm), and clients have to have ended
    /// `recovers_within` later. Finds what stays stuck after the last fault.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::{self, FailureKind, Simulation}, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// let run = Simulation::builder()
    ///     .node("server", 1, || async { sleep(3600 * SECOND).await })
    ///     .restarts("server", SECOND..10 * SECOND, SECOND..5 * SECOND)
    ///     .client("client", || async { sleep(61 * SECOND).await })
    ///     .recovers(60 * SECOND, 10 * SECOND)
    ///     .run()?;
    /// assert_eq!(run.elapsed(), 61 * SECOND);
    /// # Ok::<_, simulation::Failure>(())
    /// ```
    pub fn recovers(self, faults_for: Duration, recovers_within: Duration) -> Self {
        self.at(faults_for, Fault::Calm)
            .time_limit(faults_for + recovers_within)
    }
}
