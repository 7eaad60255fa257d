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

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use glommio::simulation::Fault;

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

/// What code of nodes writes down, for the test that has made them.
struct Log<T>(Rc<RefCell<Vec<T>>>);

impl<T> Log<T> {
    fn new() -> Self {
        Log(Rc::default())
    }

    fn add(&self, item: T) {
        self.0.borrow_mut().push(item);
    }

    fn take(&self) -> Vec<T> {
        self.0.take()
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(Rc::clone(&self.0))
    }
}
