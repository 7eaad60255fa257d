//! What can be asked of the kernel: one type per operation.
//!
//! ```text
//!                       submit                              poll
//!   Read { fd, buffer } ──────▶ in-flight table, kernel ──────────▶ io::Result<Output>
//!     arguments and memory        owned until reaped        complete(self, outcome)
//! ```
//!
//! An operation is a value that owns its arguments and the memory that the kernel reads or writes
//! for it. It builds its submission, which borrows from it, and turns itself and what the kernel
//! said into its result. An operation on a file owns a share in its descriptor, too, so that the
//! number stands for no other file before the operation is over. There are two kinds, by who takes
//! the result:
//!
//! - An [`Op`] completes once, for the task that holds its [`OpHandle`](super::OpHandle), a future
//!   of its output.
//! - A [`SinkOp`] completes once or many times, and each completion goes to a [`Sink`] that may
//!   serve several tasks. It points to no memory.
//!
//! To add an operation: a constructor of [`Submission`] that borrows what the kernel touches; a
//! struct in the file of its area here, with one of the two traits; `reactor.submit(MyOp { ..
//! }).await`. Nothing else knows it: the in-flight table keeps operations of any type, up to a size
//! that it checks when it is compiled.
//!
//! What becomes of an operation whose handle is dropped:
//!
//! | when | [`OnDrop::Cancel`] | [`OnDrop::Finish`] |
//! |---|---|---|
//! | not handed over yet | dropped; the kernel hears nothing | handed over all the same |
//! | in the kernel | cancelled, if it can be; its end is awaited | its end is awaited |
//! | completed | completed as if it were awaited, and the output dropped | the same |
//!
//! In the second case, too, the end is followed by [`Op::complete`] and the drop of the output. So
//! an output that owns what the kernel has made, an [`OwnedFd`], undoes it: a file that was opened
//! for a future that is gone is closed. Such code runs with nothing borrowed, and may come back to
//! the reactor.

mod file;
mod path;
mod poll;
mod socket;
mod splice;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub(crate) use file::{
    Bytes, CURRENT_POSITION, Close, INLINE_BYTES, MAX_TRANSFER_BYTES, Open, Read, Write, Written,
};
pub(crate) use path::{
    Allocate, HardLink, MakeDirectory, Rename, StatxAt, StatxOf, Symlink, Sync, Truncate, Unlink,
};
pub(crate) use poll::{PollMany, PollOnce};
pub(crate) use socket::{AcceptOne, Connect};
pub(crate) use splice::FillPipe;

use crate::ring::{Feature, Outcome, Submission};
use crate::sys::descriptor::Descriptor;

/// An operation that completes once, for one task.
///
/// Its value stays where it is, and is not looked at, from the call of
/// [`submission`](Self::submission) until the kernel has completed it. So the submission may borrow
/// from the fields of the struct itself.
pub(crate) trait Op: 'static {
    /// The result, with the memory that goes back to the caller. What the operation has made
    /// belongs to it, so that dropping it is enough to undo that.
    type Output;

    /// What becomes of it when its handle is dropped.
    const ON_DROP: OnDrop = OnDrop::Cancel;

    /// Whether a thread that sleeps meanwhile waits for a device, as the kernel's statistics have it:
    /// true of files, not of sockets.
    const WAITS_FOR_DEVICE: bool = true;

    /// What the kernel has to have for it. Without, a blocking thread does it.
    const FEATURE: Option<Feature> = None;

    /// What [`submission`](Self::submission) gives, if that borrows nothing from the operation. Such an
    /// operation may move while the kernel works on it, and a small one takes no memory of its
    /// own.
    const PLAIN: Option<fn(&Self) -> Submission<'static>> = None;

    /// What the kernel is asked. Called again if the ring was full.
    fn submission(&mut self) -> Submission<'_>;

    /// The kernel is done with it: the share in a descriptor that is not needed any more. It is let
    /// go of with nothing borrowed, before the result is taken, if that ever happens.
    fn release(&mut self) -> Option<Descriptor> {
        None
    }

    /// The kernel is done with it: the result.
    ///
    /// # Errors
    ///
    /// What the kernel said, as a rule: then the memory is dropped. An operation that gives it back
    /// after an error has both in its output.
    fn complete(self, outcome: Outcome) -> io::Result<Self::Output>
    where
        Self: Sized;
}

/// What becomes of an operation when its handle is dropped before it has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDrop {
    /// It is given up: what the kernel has not got is forgotten, the rest is cancelled.
    Cancel,
    /// It is carried out to its end: a close, for instance.
    Finish,
}

/// An operation whose completions go to a [`Sink`]; given up when its handle is dropped.
pub(crate) trait SinkOp: 'static {
    /// What a completion says.
    type Item: FromOutcome;

    /// What the kernel is asked. Called again if the ring was full.
    fn submission(&self) -> Submission<'static>;
}

/// Receives completions in place of a waiting task: of an operation that serves several tasks, or
/// whose result has to be looked after although none waits.
pub(crate) trait Sink: 'static {
    /// What the completions of its operations say.
    type Item: FromOutcome;

    /// Takes a completion of the operation; the last one unless it `has_more`. Called with nothing
    /// borrowed, in the order of the completions, also after the operation was given up; what
    /// the item brings, such as a descriptor, is the sink's from here on.
    fn complete(&self, item: Self::Item, has_more: bool);
}

/// A [`Sink`] of any item.
pub(super) trait OutcomeSink {
    fn complete(&self, outcome: Outcome);
}

impl<S: Sink> OutcomeSink for S {
    fn complete(&self, outcome: Outcome) {
        Sink::complete(self, S::Item::from_outcome(outcome), outcome.has_more());
    }
}

/// The result of an operation, read from what the kernel said. Each outcome is read once.
pub(crate) trait FromOutcome {
    fn from_outcome(outcome: Outcome) -> Self;
}

/// A number: of bytes, of events, or 0.
impl FromOutcome for io::Result<u32> {
    fn from_outcome(outcome: Outcome) -> Self {
        outcome.result()
    }
}

/// A descriptor that the kernel has opened for the operation. For the operations of that kind
/// alone.
impl FromOutcome for io::Result<OwnedFd> {
    fn from_outcome(outcome: Outcome) -> Self {
        outcome.result()?;
        #[allow(unsafe_code, reason = "a descriptor comes out of the ring as a number")]
        // SAFETY: what operations of this kind complete with, unless it is negative, is a
        // descriptor that the kernel has just opened for them; and an outcome is read once
        // (trait).
        Ok(unsafe { OwnedFd::from_raw_fd(outcome.raw) })
    }
}
