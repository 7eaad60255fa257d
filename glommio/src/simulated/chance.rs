//! What the seed decides where in reality several threads and a kernel work at the same time.

use std::os::fd::RawFd;

use super::world::World;

/// Of so many attempts that are made at once, one is too early.
const ATTEMPTS: u32 = 16;

/// Of so many looks for wakes of other executors, one is too early.
const LOOKS: u32 = 4;

/// Of so many places for faults in the code of users one is active in a run.
const ACTIVE: u32 = 4;

impl World {
    /// Whether an attempt at a socket does not come before what it needs, which comes right after it: a wait for
    /// `events` of `poll(2)` would not last.
    pub(crate) fn is_tried_at_once(&self, fd: RawFd, events: i16) -> bool {
        // A buffer may have room without being said to be writable: then there is nothing to wait for.
        let is_too_early = self.draw(|rng| rng.u32(..ATTEMPTS) == 0)
            && self.socket(fd).is_some_and(|(_, socket)| {
                self.with_network(|network| network.readiness(socket)) & events != 0
            });
        !is_too_early
    }

    /// Whether an executor that looks for the wakes of others looks too early for those that are there.
    pub(crate) fn looks_too_early(&self) -> bool {
        self.draw(|rng| rng.u32(..LOOKS) == 0)
    }

    /// Which of `count` tasks runs next.
    pub(crate) fn draw_task(&self, count: usize) -> usize {
        self.draw(|rng| rng.usize(..count))
    }

    /// Whether a fault happens at a place in the code of a user: in some runs never, in others with that probability.
    pub(crate) fn is_buggified(&self, place: (&'static str, u32, u32), probability: f64) -> bool {
        let is_active = *(self.buggified.borrow_mut().entry(place))
            .or_insert_with(|| self.draw(|rng| rng.u32(..ACTIVE) == 0));
        is_active && !self.is_calm.get() && self.draw(fastrand::Rng::f64) < probability
    }

    /// A seed for a random number generator of the user's.
    pub(crate) fn draw_seed(&self) -> Option<u64> {
        Some(self.draw(|rng| rng.u64(..)))
    }

    /// Which of `count` branches of a `select!` is polled first.
    #[cfg(feature = "macros")]
    pub(crate) fn draw_branch(&self, count: usize) -> Option<usize> {
        Some(self.draw_task(count))
    }
}
