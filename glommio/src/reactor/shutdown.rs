//! The end of a reactor: nothing is closed before the kernel has let go of all memory.

use std::time::{Duration, Instant};

use super::{Reactor, deadline_after};
use crate::ring::Wait;

/// How long a drain goes on in silence.
const SILENT: Duration = Duration::from_secs(1);

impl Reactor {
    /// Cancels everything in flight and reaps until nothing is. Requests that a device already works
    /// on cannot be cancelled: they are waited for, with a line in the log once a second.
    pub(crate) fn shutdown(&self) {
        self.is_closing.set(true);
        self.blocking.close();
        let keys = self.in_flight.borrow().keys();
        for key in keys {
            let given_up = self.in_flight.borrow_mut().abandon(key);
            drop(given_up);
        }
        while self.in_flight.borrow().len() > 0 {
            self.flush();
            let patience = deadline_after(Instant::now(), SILENT);
            self.enter(Wait::Until(patience));
            self.reap();
            let left = self.in_flight.borrow().len();
            if left > 0 && Instant::now() >= patience {
                tracing::warn!("dropping an executor: waiting for {left} operations in the kernel");
            }
        }
    }
}
