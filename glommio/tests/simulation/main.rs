//! Nodes of several executors in one thread and in simulated time, as a seed decides.

#[macro_use(run_test)]
extern crate glommio_macros;

mod chance;
#[path = "../common/mod.rs"]
mod common;
mod descriptors;
mod differences;
mod ends;
mod executors;
mod failures;
mod faults;
mod files;
mod hooks;
mod recurring;
mod repeat;
mod seed;
mod sockets;

use glommio::simulation::Fault;

use crate::common::prelude::*;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn power_cut(node: &str, off_for: Duration) -> Fault {
    let node = node.into();
    Fault::PowerCut { node, off_for }
}

fn pause(node: &str, length: Duration) -> Fault {
    let node = node.into();
    Fault::Pause { node, length }
}
