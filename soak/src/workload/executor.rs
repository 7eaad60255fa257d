//! What the workloads have in common: executors that are started, drained and joined.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use glommio::{GlommioError, LocalExecutorBuilder, Placement};

use crate::check::checker::Checker;
use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::fault::{Fault, Planter};
use crate::check::probe::Workload;

/// The size of a run, and what its threads share.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) control: Arc<Control>,
    pub(crate) seed: u64,
    pub(crate) load: f64,
    pub(crate) cores: usize,
    pub(crate) clients: usize,
    pub(crate) duration: Duration,
    /// How many times slower than the reference machine this one is, at least 1.
    pub(crate) slowness: f64,
    pub(crate) fault: Option<Fault>,
    /// Where workloads have their files. Empty if none of them has any.
    pub(crate) files_in: PathBuf,
    /// In a simulation: where executors go, in place of threads.
    pub(crate) nodes: Option<Nodes>,
}

/// Executors that are to be nodes of a simulation.
#[cfg_attr(not(feature = "simulation"), allow(dead_code))]
#[derive(Clone, Default)]
pub(crate) struct Nodes {
    executors: Rc<RefCell<Vec<Node>>>,
    services: Rc<RefCell<Vec<Service>>>,
}

#[cfg_attr(not(feature = "simulation"), allow(dead_code))]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) main: Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>>>,
}

/// A node of several shards, which may lose its power.
#[cfg_attr(not(feature = "simulation"), allow(dead_code))]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    pub(crate) shards: usize,
    pub(crate) main: Box<dyn Fn() -> ShardMain>,
}

/// The life of a shard.
type ShardMain = Pin<Box<dyn Future<Output = glommio::Result<(), ()>>>>;

#[cfg(feature = "simulation")]
impl Nodes {
    /// All executors so far, in the order of their addresses.
    pub(crate) fn take(&self) -> Vec<Node> {
        self.executors.take()
    }

    /// Adds a service, whose address comes after those of all executors.
    pub(crate) fn add_service(&self, service: Service) {
        self.services.borrow_mut().push(service);
    }

    pub(crate) fn take_services(&self) -> Vec<Service> {
        self.services.take()
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.executors.borrow();
        f.debug_list()
            .entries(nodes.iter().map(|it| &it.name))
            .finish()
    }
}

impl Plan {
    /// `count` times the load factor, at least `least`.
    pub(crate) fn scaled(&self, count: usize, least: usize) -> usize {
        ((count as f64 * self.load) as usize).max(least)
    }

    /// The address of the executor that is started next, of which any port is free.
    pub(crate) fn address(&self) -> IpAddr {
        match &self.nodes {
            None => Ipv4Addr::LOCALHOST.into(),
            Some(nodes) => Ipv4Addr::new(10, 0, 0, nodes.executors.borrow().len() as u8 + 1).into(),
        }
    }
}

/// One executor on its own thread.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) stats: Arc<ExecutorStats>,
    ended: Receiver<glommio::Result<(), ()>>,
    ending: Option<Ending>,
}

/// How an executor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It returned, and its thread is gone.
    Clean,
    /// It could not be built, or something in it panicked.
    Failed(String),
}

impl Executor {
    /// Starts an executor of `workload` that runs `work` with a checker of its own.
    pub(crate) fn start<F>(
        plan: &Plan,
        workload: Workload,
        name: &str,
        work: impl FnOnce(Rc<Checker>) -> F + Send + 'static,
    ) -> Result<Executor, GlommioError<()>>
    where
        F: Future<Output = ()> + 'static,
    {
        let stats = Arc::new(ExecutorStats::new(workload, name.to_owned()));
        plan.control.enlist(Arc::clone(&stats));
        let main = {
            let stats = Arc::clone(&stats);
            let control = Arc::clone(&plan.control);
            let planter = Planter::new(plan.fault, plan.seed);
            move || {
                stats.begin_thread();
                work(Checker::new(stats, control, planter))
            }
        };
        if let Some(nodes) = &plan.nodes {
            nodes.executors.borrow_mut().push(Node {
                name: name.to_owned(),
                main: Box::new(move || Box::pin(main())),
            });
            // Its end is the simulation's to tell.
            let (_, ended) = mpsc::channel();
            return Ok(Executor {
                stats,
                ended,
                ending: None,
            });
        }
        let handle = LocalExecutorBuilder::new(Placement::Unbound)
            .name(&format!("soak-{name}"))
            .spawn(main)?;
        // Joining blocks without a limit, so a thread does it: an executor that hangs must not take
        // the verdict with it.
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            // The receiver goes away only when the run has given up on this executor.
            let _ = sender.send(handle.join());
        });
        Ok(Executor {
            stats,
            ended,
            ending: None,
        })
    }

    /// How the executor ended, waiting up to `limit`. `None`: it still runs.
    pub(crate) fn ending(&mut self, limit: Duration) -> Option<&Ending> {
        if self.ending.is_none() {
            self.ending = match self.ended.recv_timeout(limit) {
                Ok(Ok(())) => Some(Ending::Clean),
                Ok(Err(error)) => Some(Ending::Failed(error.to_string())),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    Some(Ending::Failed("its joiner panicked".to_owned()))
                }
            };
        }
        self.ending.as_ref()
    }
}
