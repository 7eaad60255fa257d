//! The door to the kernel for everything that completes: a ring takes submissions and gives completions.
//!
//! ```text
//!   Submission ──push──▶ Ring ──enter──▶ io_uring, or epoll and threads, or a simulation
//!   Completion ◀──reap──
//! ```
//!
//! [`Ring`] is one of its implementors, [chosen](choice) when it is made: [`uring`] is the kernel's own, and
//! documents what each method does; [`epoll`] takes its place where it is missing or forbidden. Each
//! reads the [operation](operation) of a submission. The vocabulary is shared: what can be [asked](submission), which
//! [operations](features) there are, what is [said of their end](completion), and how long to
//! [wait](wait). No other module names the `io-uring` crate.

#[cfg(feature = "debugging")]
mod asked;
mod call;
mod choice;
mod completion;
mod door;
mod epoll;
mod features;
mod operation;
#[cfg(feature = "simulation")]
mod simulated;
mod submission;
#[cfg(test)]
mod tests;
mod uring;
mod wait;

#[cfg(feature = "debugging")]
pub(crate) use asked::Asked;
pub(crate) use call::Call;
pub use choice::Driver;
pub(crate) use completion::{Completion, Outcome};
pub(crate) use door::Ring;
pub(crate) use features::{Feature, Features};
pub(crate) use submission::{CURRENT_POSITION, QueueFull, Submission};
pub(crate) use wait::{TimeoutCell, Wait};
