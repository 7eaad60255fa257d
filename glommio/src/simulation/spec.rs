//! What is to be simulated.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use super::disk::Disk;
use super::fault::Fault;
use super::network::Network;

/// What a builder has been told.
pub(super) struct Spec {
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) plan: Vec<(Duration, Fault)>,
    pub(super) restarts: Vec<Restarts>,
    /// These and no other faults happen, whatever is planned or asked for.
    pub(super) only: Option<Vec<(Duration, Fault)>>,
    pub(super) disk: Disk,
    pub(super) network: Network,
    pub(super) random_task_order: bool,
    /// Turns in a row at the same time, in which no operation ends, after which a simulation is not waited for.
    pub(super) turns_max: u64,
    /// When clients have to have ended.
    pub(super) time_limit: Duration,
}

impl Default for Spec {
    fn default() -> Self {
        Spec {
            nodes: Vec::new(),
            plan: Vec::new(),
            restarts: Vec::new(),
            only: None,
            disk: Disk::default(),
            network: Network::default(),
            random_task_order: false,
            turns_max: 50_000,
            time_limit: Duration::from_secs(24 * 3600),
        }
    }
}

/// What is known of a node before it starts.
pub(super) struct NodeSpec {
    pub(super) name: String,
    pub(super) shards: usize,
    pub(super) main: Main,
    /// The simulation is over when all clients are.
    pub(super) is_client: bool,
}

/// Makes the future of a shard, whose output is how it has ended.
pub(super) type Main = Rc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>>>>>;

/// Power cuts at random times.
pub(super) struct Restarts {
    pub(super) node: String,
    pub(super) every: Range<Duration>,
    pub(super) off_for: Range<Duration>,
}
