//! The workloads, and what they have in common: executors that are started, drained and joined.

mod churn;
mod cluster;
mod idle;
mod message_queue;
mod re_entrancy;
mod reliable_udp;

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use glommio::{GlommioError, LocalExecutorBuilder, Placement};

use crate::check::control::Control;
use crate::check::fault::{Fault, Planter};
use crate::check::station::Station;
use crate::check::watch::Watch;
use crate::measure::process::CoreTime;

/// What can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// A broker and its clients over loopback TCP.
    MessageQueue,
    /// Selective repeat over a bad network of datagrams.
    ReliableUdp,
    /// Timers that act on each other from inside their callbacks.
    ReEntrancy,
    /// Bursts of equal deadlines.
    Cluster,
    /// Timers armed and cancelled at full speed.
    Churn,
    /// Hardly anything, for a long time, and rude interruptions.
    Idle,
}

impl Workload {
    pub(crate) const ALL: [Workload; 6] = [
        Workload::MessageQueue,
        Workload::ReliableUdp,
        Workload::ReEntrancy,
        Workload::Cluster,
        Workload::Churn,
        Workload::Idle,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Workload::MessageQueue => "message-queue",
            Workload::ReliableUdp => "reliable-udp",
            Workload::ReEntrancy => "re-entrancy",
            Workload::Cluster => "cluster",
            Workload::Churn => "churn",
            Workload::Idle => "idle",
        }
    }

    /// Starts the executors of this workload.
    pub(crate) fn start(self, plan: &Plan) -> Result<Vec<Crew>, GlommioError<()>> {
        match self {
            Workload::MessageQueue => message_queue::start(plan),
            Workload::ReliableUdp => reliable_udp::start(plan),
            Workload::ReEntrancy => re_entrancy::start(plan),
            Workload::Cluster => cluster::start(plan),
            Workload::Churn => churn::start(plan),
            Workload::Idle => idle::start(plan),
        }
    }
}

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
}

impl Plan {
    /// `count` times the load factor, at least `least`.
    pub(crate) fn scaled(&self, count: usize, least: usize) -> usize {
        ((count as f64 * self.load) as usize).max(least)
    }
}

/// One executor on its own thread.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) station: Arc<Station>,
    ended: Receiver<glommio::Result<(), ()>>,
    ending: Option<Ending>,
    core_time: CoreTime,
}

/// How an executor ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It returned, and its thread is gone.
    Clean,
    /// It could not be built, or something in it panicked.
    Failed(String),
}

impl Crew {
    /// Starts an executor that runs `work` with a witness of its own.
    pub(crate) fn start<F>(
        plan: &Plan,
        name: &str,
        work: impl FnOnce(Rc<Watch>) -> F + Send + 'static,
    ) -> Result<Crew, GlommioError<()>>
    where
        F: Future<Output = ()> + 'static,
    {
        let station = Arc::new(Station::new(name.to_owned()));
        plan.control.enlist(Arc::clone(&station));
        let handle = LocalExecutorBuilder::new(Placement::Unbound)
            .name(&format!("soak-{name}"))
            .spawn({
                let station = Arc::clone(&station);
                let control = Arc::clone(&plan.control);
                let planter = Planter::new(plan.fault, plan.seed);
                move || {
                    station.occupy();
                    work(Watch::new(station, control, planter))
                }
            })?;
        // Joining blocks without a limit, so a thread does it: an executor that hangs must not take
        // the verdict with it.
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            // The receiver goes away only when the run has given up on this executor.
            let _ = sender.send(handle.join());
        });
        Ok(Crew {
            station,
            ended,
            ending: None,
            core_time: CoreTime::default(),
        })
    }

    /// How many times longer than it ran the executor would have liked to run, since the last call:
    /// 1 if it had a core whenever it wanted one.
    pub(crate) fn contention(&mut self) -> f64 {
        let Some(now) = self.station.core_time() else {
            return 1.0;
        };
        let then = std::mem::replace(&mut self.core_time, now);
        let CoreTime { ran, waited } = now.since(then);
        contention(ran, waited)
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

fn contention(ran: Duration, waited: Duration) -> f64 {
    // A thread that hardly wanted to run says nothing about the machine.
    if waited < CONTENTION_LEAST {
        return 1.0;
    }
    let ran = ran.max(RAN_LEAST);
    (1.0 + waited.as_secs_f64() / ran.as_secs_f64()).min(CONTENTION_MOST)
}

/// An executor that runs for a millisecond in a second and waits for fifty is not fifty times slower: it
/// is now and then one turn of somebody else's late.
const RAN_LEAST: Duration = Duration::from_millis(100);
const CONTENTION_LEAST: Duration = Duration::from_millis(10);
const CONTENTION_MOST: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_compares_what_was_had_with_what_was_wanted() {
        let ms = Duration::from_millis;
        assert_eq!(contention(ms(500), ms(0)), 1.0);
        assert_eq!(contention(ms(500), ms(500)), 2.0);
        assert_eq!(contention(ms(1), ms(9)), 1.0, "too short to tell");
        assert_eq!(contention(ms(1), ms(50)), 1.5);
        assert_eq!(contention(ms(0), ms(60_000)), CONTENTION_MOST);
    }
}
