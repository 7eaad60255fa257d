//! What the seed decides where in reality several threads and a kernel work at the same time.
//!
//! Outside of a simulation, all is as without one.

use std::os::fd::RawFd;

use super::current::with_current;
use super::world::World;

/// Tasks that are looked at for the next one to run: enough for each order of those that a test has, and
/// few, as they are in a list.
pub(crate) const TASKS_SEEN: usize = 16;

/// Of so many attempts that are made at once, one is too early.
const ATTEMPTS: u32 = 16;

/// Of so many looks for wakes of other executors, one is too early.
const LOOKS: u32 = 4;

/// Whether an attempt at a socket comes before what it needs, which comes right after it: a wait for `events` of
/// `poll(2)` would not last.
#[inline]
pub(crate) fn attempt_is_too_early(fd: RawFd, events: i16) -> bool {
    let is_too_early = |world: &World| {
        // A buffer may have room without being said to be writable: then there is nothing to wait for.
        world.draw(|rng| rng.u32(..ATTEMPTS) == 0)
            && world.socket(fd).is_some_and(|(_, socket)| {
                world.with_network(|network| network.readiness(socket)) & events != 0
            })
    };
    with_current(is_too_early).unwrap_or(false)
}

/// Whether an executor that looks for the wakes of others looks too early for those that are there.
#[inline]
pub(crate) fn look_is_too_early() -> bool {
    with_current(|world| world.draw(|rng| rng.u32(..LOOKS) == 0)).unwrap_or(false)
}

/// Whether the tasks of a queue run in an order that the seed decides.
#[inline]
pub(crate) fn is_task_order_random() -> bool {
    with_current(|world| world.has_random_task_order()).unwrap_or(false)
}

/// Which of `count` tasks runs next.
pub(crate) fn draw_task(count: usize) -> usize {
    with_current(|world| world.draw(|rng| rng.usize(..count))).unwrap_or(0)
}
