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
mod prelude;
mod queues;
#[cfg(feature = "quic")]
mod quic;
mod re_entrancy;
mod reliable_udp;
pub(crate) mod survival;

#[cfg(feature = "simulation")]
pub(crate) use executor::Nodes;
use executor::Starter;
pub(crate) use executor::{Executor, Plan};
use glommio::GlommioError;

use crate::check::probe::Workload;

/// Starts the executors of a workload.
pub(crate) fn start(workload: Workload, plan: &Plan) -> Result<Vec<Executor>, GlommioError<()>> {
    let mut starter = Starter {
        plan,
        workload,
        executors: Vec::new(),
    };
    match workload {
        Workload::MessageQueue => message_queue::start(&mut starter)?,
        Workload::ReliableUdp => reliable_udp::start(&mut starter)?,
        Workload::ReEntrancy => re_entrancy::start(&mut starter)?,
        Workload::Cluster => cluster::start(&mut starter)?,
        Workload::Churn => churn::start(&mut starter)?,
        Workload::Idle => idle::start(&mut starter)?,
        Workload::Queues => queues::start(&mut starter)?,
        Workload::Files => files::start(&mut starter)?,
        Workload::Greedy => greedy::start(&mut starter)?,
        Workload::Survival => survival::start(&mut starter)?,
        #[cfg(feature = "quic")]
        Workload::Quic => quic::start(&mut starter)?,
    }
    Ok(starter.executors)
}
