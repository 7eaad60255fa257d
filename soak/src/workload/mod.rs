//! The workloads.

pub(crate) mod alarms;
mod churn;
mod cluster;
mod executor;
pub(crate) mod files;
mod greedy;
mod idle;
mod message_queue;
mod ping;
mod queues;
#[cfg(feature = "quic")]
mod quic;
mod re_entrancy;
mod reliable_udp;
pub(crate) mod survival;

use glommio::GlommioError;

pub(crate) use executor::{Ending, Executor, Plan};
#[cfg(feature = "simulation")]
pub(crate) use executor::{Nodes, Service};

use crate::check::probe::Workload;

/// Starts the executors of a workload.
pub(crate) fn start(workload: Workload, plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    match workload {
        Workload::MessageQueue => message_queue::start(plan),
        Workload::ReliableUdp => reliable_udp::start(plan),
        Workload::ReEntrancy => re_entrancy::start(plan),
        Workload::Cluster => cluster::start(plan),
        Workload::Churn => churn::start(plan),
        Workload::Idle => idle::start(plan),
        Workload::Queues => queues::start(plan),
        Workload::Files => files::start(plan),
        Workload::Greedy => greedy::start(plan),
        Workload::Survival => survival::start(plan),
        #[cfg(feature = "quic")]
        Workload::Quic => quic::start(plan),
    }
}
