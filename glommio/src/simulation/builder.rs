//! What is to be simulated.

use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use super::disk::Disk;
use super::fault::Fault;
use super::network::Network;
use super::report::{Failure, FailureKind, Report};
use super::run::{Run, Until};
use super::spec::{Main, NodeSpec, Spec};

/// A number of nodes that run in one thread, in simulated time; see the [module](super).
///
/// # Examples
///
/// ```
/// use glommio::simulation::Simulation;
///
/// Simulation::builder().client("client", || async {}).run()?;
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
#[derive(Debug)]
pub struct Simulation(());

impl Simulation {
    /// A simulation without nodes.
    pub fn builder() -> SimulationBuilder {
        SimulationBuilder {
            seed: None,
            has_fixed_seed: false,
            spec: Spec::default(),
        }
    }
}

/// Configures a [`Simulation`].
///
/// # Examples
///
/// ```
/// use glommio::{simulation::{Fault, Simulation}, timer::sleep};
/// use std::time::Duration;
///
/// const SECOND: Duration = Duration::from_secs(1);
/// let pause = Fault::Pause { node: "server".into(), length: 60 * SECOND };
/// Simulation::builder()
///     .seed(7)
///     .node("server", 2, || async {
///         sleep(10 * SECOND).await;
///         // Two of the ten seconds had passed, and the rest went by while it stood still.
///         assert_eq!(glommio::simulation::elapsed(), 62 * SECOND);
///     })
///     .at(2 * SECOND, pause)
///     .run()?;
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
#[must_use = "nothing is simulated before `run`"]
pub struct SimulationBuilder {
    seed: Option<u64>,
    /// Another one is not taken.
    has_fixed_seed: bool,
    pub(super) spec: Spec,
}

/// What the `main` of a node may return: nothing, never, or a result whose error ends the simulation
/// with a [`Failure`].
pub trait NodeOutput {
    /// What is told of it; `None` if all went well.
    fn failure(self) -> Option<String>;
}

impl NodeOutput for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: fmt::Debug> NodeOutput for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

/// That of a loop without an end. Its type has no name yet, but functions have it.
impl NodeOutput for <fn() -> ! as Returns>::Type {
    fn failure(self) -> Option<String> {
        self
    }
}

/// A function type, and what it returns.
#[doc(hidden)]
pub trait Returns {
    type Type;
}

impl<T> Returns for fn() -> T {
    type Type = T;
}

impl SimulationBuilder {
    /// The seed that all chance is drawn from. Default: the number in the environment variable
    /// `GLOMMIO_SEED`, or a random one if that is not set.
    pub fn seed(mut self, seed: u64) -> Self {
        if !self.has_fixed_seed {
            self.seed = Some(seed);
        }
        self
    }

    /// With that seed, whatever is set.
    pub(super) fn with_fixed_seed(mut self, seed: u64) -> Self {
        (self.seed, self.has_fixed_seed) = (Some(seed), true);
        self
    }

    /// With that seed, whatever is set, and of the faults with these only.
    pub(super) fn replaying(mut self, seed: u64, faults: Vec<(Duration, Fault)>) -> Self {
        self.spec.only = Some(faults);
        self.with_fixed_seed(seed)
    }

    /// Adds a node with a number of executors, its shards, each of which runs the future that `main`
    /// returns. When it starts again after a [power cut](Fault::PowerCut) or a [kill](Fault::Kill), `main` is
    /// called again for each.
    ///
    /// A shard whose future ends goes on with the tasks that are left.
    pub fn node<M, F>(self, name: impl Into<String>, shards: usize, main: M) -> Self
    where
        M: Fn() -> F + 'static,
        F: Future<Output: NodeOutput> + 'static,
    {
        self.with_node(name.into(), shards, main, false)
    }

    /// Adds a node of one executor, whose end is waited for: [`run`](Self::run) is over when the futures
    /// of all clients have ended.
    pub fn client<M, F>(self, name: impl Into<String>, main: M) -> Self
    where
        M: Fn() -> F + 'static,
        F: Future<Output: NodeOutput> + 'static,
    {
        self.with_node(name.into(), 1, main, true)
    }

    fn with_node<M, F>(mut self, name: String, shards: usize, main: M, is_client: bool) -> Self
    where
        M: Fn() -> F + 'static,
        F: Future<Output: NodeOutput> + 'static,
    {
        let main: Main = Rc::new(move || {
            let future = main();
            Box::pin(async move { future.await.failure().map_or(Ok(()), Err) })
        });
        self.spec.nodes.push(NodeSpec {
            name,
            shards,
            main,
            is_client,
        });
        self
    }

    /// Sets what the network between all nodes is like.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// use glommio::net::{TcpListener, TcpStream};
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const MILLISECOND: Duration = Duration::from_millis(1);
    /// Simulation::builder()
    ///     .network(|network| network.latency(MILLISECOND..50 * MILLISECOND).loss(0.01))
    ///     .node("server", 1, || async {
    ///         let listener = TcpListener::bind("0.0.0.0:7000")?;
    ///         let mut stream = listener.accept().await?;
    ///         stream.write_all(b"hello").await?;
    ///         stream.close().await
    ///     })
    ///     .client("client", || async {
    ///         sleep(Duration::from_secs(1)).await; // until the server listens
    ///         let mut stream = TcpStream::connect("server:7000").await?;
    ///         let mut text = String::new();
    ///         stream.read_to_string(&mut text).await?;
    ///         assert_eq!(text, "hello");
    ///         Ok::<_, std::io::Error>(())
    ///     })
    ///     .run()?;
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn network(mut self, set: impl FnOnce(Network) -> Network) -> Self {
        self.spec.network = set(self.spec.network);
        self
    }

    /// Sets what the disks of all nodes are like.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{io::BufferedFile, simulation::Simulation};
    ///
    /// Simulation::builder()
    ///     .disk(|disk| disk.lost_unsynced(true).torn_writes(true).full_at(1 << 20))
    ///     .client("client", || async {
    ///         let file = BufferedFile::create("/data").await?;
    ///         assert_eq!(file.write_at(vec![7; 2 << 20], 0).await?, 1 << 20);
    ///         let error = file.write_at(vec![7], 1 << 20).await.unwrap_err();
    ///         assert_eq!(error.raw_os_error(), Some(28), "ENOSPC");
    ///         file.close().await
    ///     })
    ///     .run()?;
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn disk(mut self, set: impl FnOnce(Disk) -> Disk) -> Self {
        self.spec.disk = set(self.spec.disk);
        self
    }

    /// How many descriptors each node may have, all its shards together: one more is `EMFILE`. The standard streams
    /// are among them. Default: any number.
    ///
    /// Behind each is one of the process all the same, whose limit (`ulimit -n`) simulations raise as far as they
    /// may. One that needs more ends with [`FailureKind::Setup`].
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{io::BufferedFile, simulation::Simulation};
    ///
    /// Simulation::builder()
    ///     .descriptors(4)
    ///     .client("client", || async {
    ///         let one = BufferedFile::create("/one").await?;
    ///         let error = BufferedFile::create("/two").await.unwrap_err();
    ///         assert_eq!(error.raw_os_error(), Some(24), "EMFILE");
    ///         one.close().await
    ///     })
    ///     .run()?;
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn descriptors(mut self, max: usize) -> Self {
        self.spec.descriptors_max = max;
        self
    }

    /// Whether the seed decides which task of a queue runs next, out of the first sixteen that can. Default
    /// false: tasks of one queue run in the order in which they were woken, as executors promise.
    ///
    /// A program that works only in that order is found this way. Timers that are due at the same time are
    /// still fired in the order of their arming, and locks and channels still serve the task that has
    /// waited longest; what a random order changes is when tasks run that have been woken.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{executor, simulation::Simulation, spawn_local};
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let forgets = |seed| {
    ///     let client = || async {
    ///         let answer = Rc::new(Cell::new(None));
    ///         let asked = Rc::clone(&answer);
    ///         let asking = async move {
    ///             executor().yield_now().await;
    ///             asked.set(Some(42));
    ///         };
    ///         spawn_local(asking).detach();
    ///         let taking = async move {
    ///             executor().yield_now().await;
    ///             answer.take() // after the task above, unless the order is another one
    ///         };
    ///         let found = spawn_local(taking).await;
    ///         found.map(drop).ok_or("it has not been asked yet")
    ///     };
    ///     Simulation::builder().seed(seed).random_task_order(true).client("client", client).run()
    /// };
    /// assert!((0..20).any(|seed| forgets(seed).is_err()));
    /// ```
    pub fn random_task_order(mut self, random: bool) -> Self {
        self.spec.random_task_order = random;
        self
    }

    /// The simulated time by which the futures of all clients have to have ended, with [`run`](Self::run):
    /// [`FailureKind::Unfinished`] says which have not. Default: a day.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::{FailureKind, Simulation}, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const MINUTE: Duration = Duration::from_secs(60);
    /// let asks_for_ever = || async { loop { sleep(MINUTE).await } };
    /// let run = Simulation::builder().client("client", asks_for_ever).time_limit(60 * MINUTE).run();
    /// assert_eq!(*run.unwrap_err().kind(), FailureKind::Unfinished(vec!["client".into()]));
    /// ```
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.spec.time_limit = limit;
        self
    }

    /// After how many turns of executors without the end of an operation, or 200 times as many with some, all
    /// at one moment of simulated time, the simulation ends with [`FailureKind::Busy`]. Default: 50,000.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{executor, simulation::{FailureKind, Simulation}};
    ///
    /// let yields = || async { loop { executor().yield_now().await } };
    /// let run = Simulation::builder().client("client", yields).busy_after(100).run();
    /// assert_eq!(*run.unwrap_err().kind(), FailureKind::Busy);
    /// ```
    pub fn busy_after(mut self, turns: u64) -> Self {
        self.spec.turns_max = turns;
        self
    }

    /// Has a fault happen at the time `at` of the simulation.
    pub fn at(mut self, at: Duration, fault: Fault) -> Self {
        self.spec.plan.push((at, fault));
        self
    }

    /// Runs the simulation until the futures of all [clients](Self::client) have ended; without clients,
    /// until nothing can happen any more.
    ///
    /// # Errors
    ///
    /// See [`FailureKind`].
    ///
    /// # Panics
    ///
    /// Panics if an executor or a simulation is running on this thread.
    pub fn run(self) -> Result<Report, Failure> {
        let limit = self.spec.time_limit;
        self.run_to(Until::ClientsEnd { limit })
    }

    /// Runs the simulation for `length` of simulated time, by which the futures of clients have to have ended.
    ///
    /// # Errors
    ///
    /// See [`FailureKind`].
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::time::Duration;
    ///
    /// let hour = Duration::from_secs(3600);
    /// let report = Simulation::builder()
    ///     .node("sleeper", 1, || sleep(Duration::from_secs(60)))
    ///     .run_for(hour)?;
    /// assert!(report.elapsed() >= hour);
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn run_for(self, length: Duration) -> Result<Report, Failure> {
        self.run_to(Until::At(length))
    }

    /// Runs the simulation until `is_reached` is true, which is called after each turn of an executor, and so sees each
    /// step. It may [inject](super::inject) faults. Clients need not have ended by then.
    ///
    /// # Errors
    ///
    /// [`FailureKind::NotReached`] if it is not true within the [limit](Self::time_limit); see [`FailureKind`].
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// let count = Rc::new(Cell::new(0));
    /// let seen = Rc::clone(&count);
    /// let ticks = move || {
    ///     let count = Rc::clone(&count);
    ///     async move {
    ///         loop {
    ///             sleep(SECOND).await;
    ///             count.set(count.get() + 1);
    ///         }
    ///     }
    /// };
    /// let run = Simulation::builder().node("clock", 1, ticks).run_until(move || seen.get() == 5)?;
    /// assert_eq!(run.elapsed(), 5 * SECOND);
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn run_until(self, is_reached: impl FnMut() -> bool + 'static) -> Result<Report, Failure> {
        let limit = self.spec.time_limit;
        let is_reached = Box::new(is_reached);
        self.run_to(Until::Reached { is_reached, limit })
    }

    fn run_to(self, end: Until) -> Result<Report, Failure> {
        let seed = match (self.seed, environment_seed()) {
            (Some(seed), _) | (None, Ok(Some(seed))) => seed,
            (None, Ok(None)) => fastrand::u64(..),
            (None, Err(text)) => return Err(Failure::before_start(text)),
        };
        if let Err(text) = self.check() {
            return Err(Failure::before_start(text));
        }
        let is_set = self.seed.is_some() && !self.has_fixed_seed;
        let failed = Run::new(self.spec, seed).run(end);
        failed.map_err(|failure| Failure {
            is_seed_set: is_set,
            ..failure
        })
    }

    /// What is wrong with it.
    fn check(&self) -> Result<(), String> {
        for (number, node) in self.spec.nodes.iter().enumerate() {
            if self.spec.nodes[..number]
                .iter()
                .any(|it| it.name == node.name)
            {
                return Err(format!("there are two nodes called {:?}", node.name));
            }
            if node.shards == 0 {
                return Err(format!(
                    "node {:?} has no shard: give it at least one",
                    node.name
                ));
            }
        }
        self.spec.disk.check()?;
        self.spec.network.check()?;
        if self.spec.invariants.iter().any(|it| it.interval.is_zero()) {
            return Err(
                "an invariant is checked each time that more than nothing has passed".into(),
            );
        }
        for it in &self.spec.recurring {
            it.check()?;
        }
        let named = (self.spec.plan.iter().flat_map(|(_, fault)| fault.nodes()))
            .chain((self.spec.recurring.iter()).filter_map(|it| it.node.as_deref()));
        for name in named {
            if !self.spec.nodes.iter().any(|it| it.name == name) {
                return Err(format!("there is no node {name:?}"));
            }
        }
        let mut planned = self.spec.plan.iter();
        planned.try_for_each(|(_, fault)| fault.check())
    }
}

/// The seed that the environment asks for, if it does.
pub(super) fn environment_seed() -> Result<Option<u64>, String> {
    match std::env::var("GLOMMIO_SEED") {
        Ok(text) => match text.parse() {
            Ok(seed) => Ok(Some(seed)),
            Err(_) => Err(format!(
                "GLOMMIO_SEED is {text:?}, which is no number below 2^64"
            )),
        },
        Err(_) => Ok(None),
    }
}

impl Failure {
    fn before_start(text: String) -> Self {
        Failure {
            kind: FailureKind::Setup(text),
            node: None,
            seed: None,
            is_seed_set: false,
            elapsed: Duration::ZERO,
            digest: 0,
            seen: Box::default(),
        }
    }
}

impl fmt::Debug for SimulationBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self
            .spec
            .nodes
            .iter()
            .map(|it| (&it.name, it.shards))
            .collect();
        f.debug_struct("SimulationBuilder")
            .field("seed", &self.seed)
            .field("nodes", &nodes)
            .field("plan", &self.spec.plan)
            .finish_non_exhaustive()
    }
}
