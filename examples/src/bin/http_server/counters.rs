//! What an executor counts, for `main` to read.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one executor, on cache lines that no other executor writes to.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
}

impl Counters {
    pub fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}

/// All executors together.
#[derive(Debug, Default)]
pub struct Total {
    connections: u64,
    requests: u64,
    failures: u64,
}

/// Sums up `executors`.
pub fn total(executors: &[Arc<Counters>]) -> Total {
    let sum = |counter: fn(&Counters) -> &AtomicU64| {
        let counters = executors.iter().map(|executor| counter(executor));
        counters
            .map(|counter| counter.load(Ordering::Relaxed))
            .sum()
    };
    Total {
        connections: sum(|executor| &executor.connections),
        requests: sum(|executor| &executor.requests),
        failures: sum(|executor| &executor.failures),
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} requests on {} connections, of which {} ended in an error,",
            self.requests, self.connections, self.failures
        )
    }
}
