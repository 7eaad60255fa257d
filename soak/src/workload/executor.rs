//! What the workloads have in common: executors that are started, drained and joined.

use std::cell::RefCell;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
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
use crate::check::probe::Workload;

/// The size of a run, and what its threads share.
pub(crate) struct Plan {
    pub(crate) control: Arc<Control>,
    pub(crate) seed: u64,
    pub(crate) load: f64,
    pub(crate) cores: usize,
    pub(crate) clients: usize,
    pub(crate) duration: Duration,
    /// How many times slower than the reference machine this one is, at least 1.
    pub(crate) slowness: f64,
    /// Where workloads have their files. Empty if none of them has any.
    pub(crate) files_in: PathBuf,
    /// In a simulation: where executors go, in place of threads.
    pub(crate) nodes: Option<Nodes>,
}

/// Executors that are to be nodes of a simulation.
#[cfg_attr(not(feature = "simulation"), allow(dead_code))]
#[derive(Clone, Default)]
pub(crate) struct Nodes {
    /// In the order of their addresses.
    pub(crate) executors: Rc<RefCell<Vec<Node>>>,
    /// Whose addresses come after those of all executors.
    pub(crate) services: Rc<RefCell<Vec<Service>>>,
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

/// A workload that starts its executors.
pub(crate) struct Starter<'a> {
    pub(super) plan: &'a Plan,
    pub(super) workload: Workload,
    pub(super) executors: Vec<Executor>,
}

pub(crate) type Started = Result<(), GlommioError<()>>;

impl Deref for Starter<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        self.plan
    }
}

impl Starter<'_> {
    /// Starts an executor that runs `work` with a checker of its own, and then waits for its timers.
    pub(super) fn start<F>(
        &mut self,
        name: &str,
        work: impl FnOnce(Rc<Checker>) -> F + Send + 'static,
    ) -> Started
    where
        F: Future<Output = ()> + 'static,
    {
        let stats = Arc::new(ExecutorStats::new(self.workload, name.to_owned()));
        self.control.enlist(Arc::clone(&stats));
        let main = {
            let stats = Arc::clone(&stats);
            let control = Arc::clone(&self.control);
            move || {
                stats.begin_thread();
                let checker = Checker::new(stats, control);
                let work = work(Rc::clone(&checker));
                async move {
                    work.await;
                    checker.settle().await;
                }
            }
        };
        // Joining blocks without a limit, so a thread does it: an executor that hangs must not take
        // the verdict with it. In a simulation, an end is the simulation's to tell.
        let (sender, ended) = mpsc::channel();
        if let Some(nodes) = &self.nodes {
            nodes.executors.borrow_mut().push(Node {
                name: name.to_owned(),
                main: Box::new(move || Box::pin(main())),
            });
        } else {
            let handle = LocalExecutorBuilder::new(Placement::Unbound)
                .name(&format!("soak-{name}"))
                .spawn(main)?;
            thread::spawn(move || {
                // The receiver goes away only when the run has given up on this executor.
                let _ = sender.send(handle.join());
            });
        }
        self.executors.push(Executor {
            stats,
            ended,
            ending: None,
        });
        Ok(())
    }
}

/// One executor on its own thread.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) stats: Arc<ExecutorStats>,
    ended: Receiver<glommio::Result<(), ()>>,
    ending: Option<Result<(), String>>,
}

impl Executor {
    /// How the executor ended, waiting up to `limit`. `None`: it still runs.
    pub(crate) fn ending(&mut self, limit: Duration) -> Option<&Result<(), String>> {
        if self.ending.is_none() {
            self.ending = match self.ended.recv_timeout(limit) {
                Ok(ended) => Some(ended.map_err(|error| error.to_string())),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Err("its joiner panicked".to_owned())),
            };
        }
        self.ending.as_ref()
    }
}
