//! An executor of a simulation, which takes turns with others on one thread.

use std::time::Instant;

use super::{LocalExecutor, current};
use crate::clock::Clock;
use crate::task::OtherTask;

impl LocalExecutor {
    /// Goes once through the loop, at the time `now` of its clock.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub(crate) fn have_turn(&self, now: Instant) {
        self.at(now, || self.core.pass(false, &|| false));
    }

    /// Whether it would do anything in a turn at the time `now` of its clock.
    pub(crate) fn has_work(&self, now: Instant) -> bool {
        !self.core.is_idle() || self.core.reactor().has_work(now)
    }

    /// The earliest deadline of its timers.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.core.reactor().next_deadline()
    }

    /// Wakes tasks that wait until nothing but the clock can go on. True if there are any.
    pub(crate) fn quiesce(&self, now: Instant) -> bool {
        let reactor = self.core.reactor();
        reactor.is_quiescing() && self.at(now, || reactor.quiesce())
    }

    /// Its node is about to end: operations in flight have happened by then, or not, or in
    /// part.
    pub(crate) fn lose_operations(&self) {
        self.core.reactor().lose_operations();
    }

    /// What its tasks wait for, a line each, which is known with the feature `debugging` alone.
    pub(crate) fn waiting(&self, now: Instant) -> Vec<String> {
        #[cfg(feature = "debugging")]
        return self.at(now, || {
            let tasks = self.core.dump().tasks.into_iter();
            tasks.map(|it| it.to_string()).collect()
        });
        #[cfg(not(feature = "debugging"))]
        {
            let _ = now;
            Vec::new()
        }
    }

    fn at<R>(&self, now: Instant, call: impl FnOnce() -> R) -> R {
        self.core.reactor().set_clock(Clock::Paused(now));
        let _entered = current::enter(std::rc::Rc::clone(&self.core));
        let _other_task = OtherTask::begin();
        call()
    }
}
