//! The door for system calls, and for all else that threads and the kernel decide.
//!
//! ```text
//!   sys::socket::send(fd, buf) ──door!──▶ is `fd` a socket of a simulation? ──yes──▶ SimulatedSocket::send(buf)
//!                                              │ no
//!                                              ▼
//!                                            kernel
//! ```
//!
//! A function that calls the kernel begins with [`door`]. With the feature `simulation` that looks up what the call
//! is about: a descriptor, the node whose code runs on this thread, or the simulation. If that is of a
//! [simulation](crate::simulated), its method answers; what no simulation knows, such as an eventfd, goes to the
//! kernel also there. Without the feature nothing is left of it.
//!
//! A descriptor decides, and not the executor, as in one thread there are those of both. So this door is
//! no `enum` as that of the [ring](crate::ring).

use std::io;
use std::os::fd::RawFd;
use std::time::SystemTime;

use crate::clock;

/// `door!(socket(fd).send(buf))` returns what the simulated socket `fd` answers, if it is one, and
/// `door!(socket(fd) => value)` the value.
#[cfg(feature = "simulation")]
macro_rules! door {
    ($of:ident($($id:expr)?).$call:ident($($argument:expr),*)) => {
        if let Some(it) = $crate::simulated::$of($($id)?) {
            return it.$call($($argument),*);
        }
    };
    ($of:ident($($id:expr)?) => $value:expr) => {
        if $crate::simulated::$of($($id)?).is_some() {
            return $value;
        }
    };
}

#[cfg(not(feature = "simulation"))]
macro_rules! door {
    ($of:ident($($id:expr)?).$call:ident($($argument:expr),*)) => {
        if false {
            let _ = ($(&$id,)? $(&$argument,)*);
        }
    };
    ($of:ident($($id:expr)?) => $value:expr) => {
        if false {
            $(let _ = &$id;)?
            return $value;
        }
    };
}

pub(crate) use door;

/// Whether a simulation runs on this thread.
#[inline]
pub fn is_simulated() -> bool {
    door!(current() => true);
    false
}

/// Whether a descriptor is free; only the kernel knows, but in a simulation.
///
/// # Errors
///
/// `EMFILE` if not.
pub(crate) fn may_open() -> io::Result<()> {
    door!(node().may_open());
    Ok(())
}

/// What a simulation does not have, and the kernel must not be asked for from inside of one.
///
/// # Errors
///
/// Kind `Unsupported` in a simulation.
pub(crate) fn needs_kernel(what: &str) -> io::Result<()> {
    door!(node() => Err(missing(what)));
    Ok(())
}

/// The error that there is no `what` in a simulation.
pub(crate) fn missing(what: &str) -> io::Error {
    let text = format!("{what} cannot be had in a simulation");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// The descriptor `fd` is about to be closed: so is what it is in a simulation.
#[inline]
pub(crate) fn closing(fd: RawFd) {
    door!(current().forget(fd));
    super::unsent::closing(fd);
}

/// Whether an attempt at a socket is made at once, before a wait for `events` of `poll(2)`. In a simulation the seed
/// has some come too early, though the wait is over as soon as it begins.
#[inline]
pub(crate) fn is_tried_at_once(fd: RawFd, events: libc::c_short) -> bool {
    door!(current().is_tried_at_once(fd, events));
    true
}

/// Whether an executor that looks for the wakes of others looks too early for those that are there.
#[inline]
pub(crate) fn looks_too_early() -> bool {
    door!(current().looks_too_early());
    false
}

/// Whether the tasks of a queue run in an order that the seed decides.
#[inline]
pub(crate) fn is_task_order_random() -> bool {
    door!(current().has_random_task_order());
    false
}

/// Which of `count` tasks runs next.
#[inline]
pub(crate) fn draw_task(count: usize) -> usize {
    door!(current().draw_task(count));
    0
}

/// Which of `count` branches of a `select!` is polled first, if the seed decides.
#[cfg(feature = "macros")]
#[inline]
pub(crate) fn draw_branch(count: usize) -> Option<usize> {
    door!(current().draw_branch(count));
    None
}

/// Whether a fault is to happen at a place in the code of a user.
#[inline]
pub(crate) fn is_buggified(place: (&'static str, u32, u32), probability: f64) -> bool {
    door!(current().is_buggified(place, probability));
    false
}

/// Counts something that is to be true sometimes.
#[inline]
pub(crate) fn count_sometimes(name: &'static str, is_true: bool) {
    door!(current().count_sometimes(name, is_true));
}

/// A seed for a random number generator, if a simulation decides it.
pub(crate) fn draw_seed() -> Option<u64> {
    door!(current().draw_seed());
    None
}

/// The number of a descriptor as errors tell it: in a simulation that which the node sees.
pub(crate) fn number_of(fd: RawFd) -> RawFd {
    door!(current().number_of(fd));
    fd
}

/// The date by the clock of the executor that runs on this thread.
pub(crate) fn date() -> SystemTime {
    door!(current().date());
    clock::date()
}

/// The number of the next executor, where it is not one of the process.
pub(crate) fn next_executor_id() -> Option<usize> {
    door!(node().next_executor_id());
    None
}

/// Makes a call that blocks, of a function of this name: in a simulation some time later, as a thread of the node
/// would.
pub(crate) fn block(name: &str, call: Box<dyn FnOnce()>) {
    door!(current().block(name, call));
    call();
}
