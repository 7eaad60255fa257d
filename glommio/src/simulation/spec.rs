//! What is to be simulated.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use super::disk::Disk;
use super::fault::Fault;
use super::network::Network;
use super::recurring::Recurring;
use crate::simulated::generator;

/// Tells the generator of what is left out from that of all else.
const SWARM: u64 = 0x7377_6172_6D00_0000;

/// What a builder has been told.
pub(super) struct Spec {
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) plan: Vec<(Duration, Fault)>,
    pub(super) recurring: Vec<Recurring>,
    /// These and no other faults happen, whatever is planned or asked for.
    pub(super) only: Option<Vec<(Duration, Fault)>>,
    pub(super) disk: Disk,
    pub(super) network: Network,
    pub(super) random_task_order: bool,
    pub(super) swarm: bool,
    pub(super) on_start: Vec<OnStart>,
    pub(super) invariants: Vec<Invariant>,
    pub(super) descriptors_max: usize,
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
            recurring: Vec::new(),
            only: None,
            disk: Disk::default(),
            network: Network::default(),
            random_task_order: false,
            swarm: false,
            on_start: Vec::new(),
            invariants: Vec::new(),
            descriptors_max: usize::MAX,
            turns_max: 50_000,
            time_limit: Duration::from_secs(24 * 3600),
        }
    }
}

impl Spec {
    /// Leaves out some kinds of faults, as the seed has it.
    pub(super) fn leave_out(&mut self, seed: u64) {
        let mut rng = generator(seed, SWARM);
        self.network = mem::take(&mut self.network).with_less(&mut rng);
        self.disk = mem::take(&mut self.disk).with_less(&mut rng);
        self.recurring.retain(|_| rng.bool());
    }
}

/// Called with the name of a node that starts, and how often it has.
pub(super) type Hook = dyn FnMut(&str, u64);

pub(super) struct OnStart(pub(super) Box<Hook>);

/// What has to be true at any time.
pub(super) struct Invariant {
    pub(super) interval: Duration,
    /// When it is looked at next.
    pub(super) next: Duration,
    /// What is wrong.
    pub(super) check: Box<dyn FnMut() -> Option<String>>,
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
