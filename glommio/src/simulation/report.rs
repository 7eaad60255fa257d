//! What came of a simulation.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::fault::Fault;

/// What a simulation that did not fail tells of itself.
///
/// # Examples
///
/// ```
/// use glommio::{simulation::Simulation, timer::sleep};
/// use std::time::Duration;
///
/// let run = || Simulation::builder().seed(7).client("client", || sleep(Duration::from_secs(60))).run();
/// let report = run()?;
/// assert_eq!((report.seed(), report.elapsed()), (7, Duration::from_secs(60)));
/// assert!(report.events() > 0);
/// assert_eq!(report.digest(), run()?.digest());
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub(super) seed: u64,
    pub(super) elapsed: Duration,
    pub(super) digest: u64,
    pub(super) events: u64,
    pub(super) coverage: BTreeMap<&'static str, u64>,
}

impl Report {
    /// The seed that all chance was drawn from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The simulated time that has passed.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// A number that is the same for each run of the same program with the same seed, and another one,
    /// most likely, if anything went another way.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How many events the digest covers.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// How often each [`sometimes!`](crate::sometimes) that was reached was true, and how often each kind of fault
    /// has happened, by name.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::simulation::Simulation;
    ///
    /// let main = || async { glommio::sometimes!(glommio::rng_seed() % 2 == 0, "an even number") };
    /// let report = Simulation::builder().client("client", main).run()?;
    /// assert!(report.coverage()["an even number"] <= 1);
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn coverage(&self) -> &BTreeMap<&'static str, u64> {
        &self.coverage
    }
}

/// How a simulation has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Code of a node has panicked, with this message.
    Panic(String),
    /// The `main` of a node has returned this error.
    Error(String),
    /// Nothing can happen any more, and a client is not over: all that runs waits for something that
    /// does not come.
    NothingLeft,
    /// The futures of these clients have not ended within the [limit](super::SimulationBuilder::time_limit),
    /// or the [length](super::SimulationBuilder::run_for) of the run.
    Unfinished(Vec<String>),
    /// Tasks of a node have run for [very many turns](super::SimulationBuilder::busy_after) without waiting for
    /// anything, so that time could not go on: a loop that looks at the clock or at a flag, most likely.
    Busy,
    /// An [invariant](super::SimulationBuilder::invariant) did not hold: its message.
    Invariant(String),
    /// What was [waited for](super::SimulationBuilder::run_until) had not come within the
    /// [limit](super::SimulationBuilder::time_limit).
    NotReached,
    /// What was asked for cannot be done: a node that there is not, a number out of range, an executor that
    /// the system has no resources for.
    Setup(String),
}

/// A simulation that has failed: how, when, and what happened before.
///
/// # Examples
///
/// ```
/// use glommio::simulation::{FailureKind, Simulation};
/// use std::time::Duration;
///
/// # std::panic::set_hook(Box::new(|_| {}));
/// let fails = || Simulation::builder().seed(7).client("client", || async { panic!("a bug") }).run();
/// let failure = fails().unwrap_err();
/// assert_eq!(*failure.kind(), FailureKind::Panic("a bug".into()));
/// assert_eq!((failure.node(), failure.seed()), (Some("client"), 7));
/// assert_eq!(failure.elapsed(), Duration::ZERO);
/// assert!(failure.events().len() <= 200);
/// assert!(failure.faults().is_empty()); // no power was cut
/// assert_eq!(failure.digest(), fails().unwrap_err().digest());
/// ```
#[derive(Clone)]
pub struct Failure {
    pub(super) kind: FailureKind,
    pub(super) node: Option<String>,
    /// None if it failed before the simulation began.
    pub(super) seed: Option<u64>,
    /// The program has set it, whatever the environment says.
    pub(super) is_seed_set: bool,
    pub(super) elapsed: Duration,
    pub(super) digest: u64,
    pub(super) seen: Box<Seen>,
}

/// What a failure tells beside its kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) events: Vec<String>,
    pub(super) faults: Vec<(Duration, Fault)>,
    pub(super) waiting: Vec<String>,
    pub(super) coverage: BTreeMap<&'static str, u64>,
}

impl Failure {
    /// How it has failed.
    pub fn kind(&self) -> &FailureKind {
        &self.kind
    }

    /// The node whose code has failed, if one has.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// The seed with which it fails again; 0 if it failed before the simulation began.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The simulated time at which it failed.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// As [`Report::digest`], of what has happened until then.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// The latest events, up to 200 of them, a line each.
    pub fn events(&self) -> &[String] {
        &self.seen.events
    }

    /// What the tasks of all nodes waited for when a run ended that could not go on or had not ended: with
    /// the feature `debugging`, a line each; empty without it.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::simulation::{FailureKind, Simulation};
    ///
    /// let run = Simulation::builder().client("client", std::future::pending::<()>).run();
    /// let failure = run.unwrap_err();
    /// assert_eq!(*failure.kind(), FailureKind::NothingLeft);
    /// for task in failure.waiting() {
    ///     println!("{task}");
    /// }
    /// ```
    pub fn waiting(&self) -> &[String] {
        &self.seen.waiting
    }

    /// As [`Report::coverage`], of what has happened until then.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::simulation::Simulation;
    ///
    /// let main = || async {
    ///     glommio::sometimes!(true, "it fails");
    ///     Err::<(), _>("as planned")
    /// };
    /// let failure = Simulation::builder().client("client", main).run().unwrap_err();
    /// assert_eq!(failure.coverage()["it fails"], 1);
    /// ```
    pub fn coverage(&self) -> &BTreeMap<&'static str, u64> {
        &self.seen.coverage
    }

    /// The faults that had happened, each with its simulated time.
    pub fn faults(&self) -> &[(Duration, Fault)] {
        &self.seen.faults
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::Panic(message) => write!(f, "panicked: {message}"),
            FailureKind::Error(error) => write!(f, "failed: {error}"),
            FailureKind::NothingLeft => f.write_str(
                "nothing can happen any more: all tasks wait for something that does not come",
            ),
            FailureKind::Unfinished(clients) => {
                write!(
                    f,
                    "is over, and clients have not ended: {}",
                    clients.join(", ")
                )
            }
            FailureKind::Busy => f.write_str(
                "tasks ran for very many turns without waiting, so that time could not go on",
            ),
            FailureKind::Invariant(text) => write!(f, "breaks an invariant: {text}"),
            FailureKind::NotReached => f.write_str("is over before what was waited for"),
            FailureKind::Setup(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.seen.events {
            writeln!(f, "{event}")?;
        }
        for task in &self.seen.waiting {
            writeln!(f, "{task}")?;
        }
        let seconds = self.elapsed.as_secs_f64();
        let node = self.node.as_deref().unwrap_or("the simulation");
        write!(f, "after {seconds:.6} s, {node} {}", self.kind)?;
        match self.seed {
            Some(seed) if self.is_seed_set => write!(f, "\nto repeat this: .seed({seed})"),
            Some(seed) => write!(f, "\nto repeat this: GLOMMIO_SEED={seed}"),
            None => Ok(()),
        }
    }
}

/// As [`Display`](fmt::Display): what a test prints that unwraps a result tells how to repeat it, too.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
