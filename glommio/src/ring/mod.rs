//! The door to the kernel for everything that completes: a ring takes submissions and gives completions.
//!
//! ```text
//!   Submission ──push──▶ Ring ──enter──▶ io_uring
//!                                        or a simulated one
//!   Completion ◀──reap──
//! ```
//!
//! [`Ring`] is one of its implementors, chosen when it is made: [`uring`] is the kernel's own, and
//! documents what each method does. The vocabulary is shared: what can be [asked](submission), which
//! [operations](features) there are, what is [said of their end](completion), and how long to
//! [wait](wait). No other module names the `io-uring` crate.

mod call;
mod completion;
mod door;
mod entry;
mod features;
#[cfg(feature = "simulation")]
mod simulated;
mod submission;
mod uring;
mod wait;

pub(crate) use call::Call;
pub(crate) use completion::{Completion, Outcome};
pub(crate) use door::Ring;
pub(crate) use features::{Feature, Features};
pub(crate) use submission::{CURRENT_POSITION, QueueFull, Submission};
pub(crate) use wait::{TimeoutCell, Wait};
