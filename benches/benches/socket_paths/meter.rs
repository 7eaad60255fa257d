//! What a thread has done, and what that cost.

use std::time::{Duration, Instant};

use benches::thread::sleeps;
use support::process::thread_time;

/// How much goes through a connection, or many, in a run.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Warms up.
    pub unmeasured: u64,
    /// In all.
    pub total: u64,
}

/// Counts bytes, and looks at the clocks when the first part is through and when all is.
pub struct Meter {
    amount: Amount,
    bytes: u64,
    begin: Option<Reading>,
    end: Option<Reading>,
}

#[derive(Clone, Copy)]
struct Reading {
    bytes: u64,
    turns: u64,
    sleeps: u64,
    at: Instant,
    cpu: Duration,
}

/// What happened between the two looks.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Went through.
    pub bytes: f64,
    /// Waits of the server.
    pub turns: f64,
    /// How often the thread fell asleep.
    pub sleeps: f64,
    /// What passed.
    pub time: Duration,
    /// What the thread had of it.
    pub cpu: Duration,
}

impl Meter {
    pub fn new(amount: Amount) -> Self {
        Self {
            amount,
            bytes: 0,
            begin: None,
            end: None,
        }
    }

    /// So many bytes more, after so many waits in all.
    pub fn add(&mut self, bytes: usize, turns: u64) {
        self.bytes += bytes as u64;
        if self.begin.is_none() && self.bytes >= self.amount.unmeasured {
            self.begin = Some(self.read(turns));
        } else if self.end.is_none() && self.bytes >= self.amount.total {
            self.end = Some(self.read(turns));
        }
    }

    fn read(&self, turns: u64) -> Reading {
        Reading {
            bytes: self.bytes,
            turns,
            sleeps: sleeps(),
            at: Instant::now(),
            cpu: thread_time(),
        }
    }

    /// `None` if not all went through.
    pub fn measured(&self) -> Option<Measured> {
        let (begin, end) = (self.begin?, self.end?);
        Some(Measured {
            bytes: (end.bytes - begin.bytes) as f64,
            turns: (end.turns - begin.turns) as f64,
            sleeps: (end.sleeps - begin.sleeps) as f64,
            time: end.at - begin.at,
            cpu: end.cpu.saturating_sub(begin.cpu),
        })
    }
}
