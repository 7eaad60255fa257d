//! What every task has in common, and what can be done to it without knowing its future.
//!
//! Everything here but [`TaskPtr::free`] and the word belongs to the owner thread.

#![allow(unsafe_code)]

use std::mem::offset_of;
use std::ptr::NonNull;
use std::task::{RawWakerVTable, Waker};

use super::cells::FREE_CELL_BYTES;
use super::state::{CLOSED, FUTURE, HANDLE, HOLDS, LIVE, OUTPUT, RUNNING, SCHEDULED, State, Word};
use crate::loom::{Cell, UnsafeCell};
use crate::mailbox::Link;
use crate::panic::{self, Payload};
use crate::sys::prefetch::prefetch;

/// The beginning of every task's allocation. The schedule and the stage follow it (`raw.rs`).
#[repr(C)]
pub(super) struct Header {
    /// References and remote wakes. Any thread.
    pub(super) word: Word,
    /// What knows the types of future and schedule. Never changes.
    pub(super) vtable: &'static VTable,
    /// Whom to wake when the task is over: the last waker that polled the join handle.
    awaiter: UnsafeCell<Option<Waker>>,
    /// The place of the task's remote wake in the queue of its owner.
    link: Link,
    /// The next one in a run queue (`lists.rs`).
    pub(super) next_runnable: Cell<Option<TaskPtr>>,
    /// In which of the executor's queues the task waits for its turn, and the number of the latest
    /// poll. 32 bits each, so that they share a word.
    queue: Cell<u32>,
    polled: Cell<u32>,
    /// Which cell of its chunk the task lies in, and never changes (`cells.rs`). Of a task that is
    /// marked as `LARGE`, its place in the executor's list of these (`lists.rs`).
    pub(super) place: Cell<u32>,
    /// A set of the marks below.
    marks: Cell<u8>,
    pub(super) state: State,
}

/// The task is in the executor's list of tasks. Not set in a cell that is free.
pub(super) const LISTED: u8 = 1 << 0;

/// The future borrows: its panic unwinds through those that it borrows from.
pub(super) const BORROWS: u8 = 1 << 1;

/// A poll has panicked. If `OUTPUT` is set as well, the stage holds the payload.
pub(super) const PANICKED: u8 = 1 << 2;

/// The task is an allocation of its own, and lies in no cell.
pub(super) const LARGE: u8 = 1 << 3;

/// The join handle has been polled, and has given nothing since.
pub(super) const AWAITED: u8 = 1 << 4;

// `listed_in` reads them in cells that are free.
const _: () = assert!(offset_of!(Header, marks) >= FREE_CELL_BYTES);

// What each sleeping task pays. A field more is a decision.
#[cfg(all(not(loom), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Header>() == 64, "the header has eight words");

/// The first part of every allocation with schedule `S`, whatever the future.
#[repr(C)]
pub(super) struct Front<S> {
    pub(super) header: Header,
    pub(super) schedule: S,
    #[cfg(feature = "debugging")]
    pub(super) trace: super::debugging::Trace,
}

/// The schedule of a task that was allocated with one of type `S`.
///
/// # Safety
/// The task's schedule is an `S`, and the caller's reference to the task outlives `'a`.
#[inline]
pub(super) unsafe fn schedule<'a, S>(task: TaskPtr) -> &'a S {
    let front: *const Front<S> = task.as_ptr().cast();
    // SAFETY: every allocation begins with the `Front` of its schedule; the schedule never changes.
    unsafe { &(*front).schedule }
}

/// What is known of the task.
///
/// # Safety
/// As for [`schedule`].
#[cfg(feature = "debugging")]
pub(super) unsafe fn trace<'a, S>(task: TaskPtr) -> &'a super::debugging::Trace {
    let front: *const Front<S> = task.as_ptr().cast();
    // SAFETY: every allocation begins with the `Front` of its schedule; its trace never moves, and what
    // changes in it is in cells.
    unsafe { &(*front).trace }
}

/// The functions that know the task's types. All take a task whose memory is alive.
pub(super) struct VTable {
    /// The one vtable of this task's wakers: `will_wake` compares its address.
    pub(super) waker: RawWakerVTable,
    /// Any thread: makes the owner schedule the task, as a waker would.
    pub(super) wake: unsafe fn(TaskPtr),
    /// Owner: schedules the task.
    pub(super) schedule: unsafe fn(TaskPtr),
    /// Owner: see [`Runnable::run`](super::Runnable::run).
    pub(super) run: unsafe fn(TaskPtr) -> bool,
    /// Owner: destroys the future, which the stage must hold.
    pub(super) drop_future: unsafe fn(TaskPtr),
    /// Owner: destroys the output, which the stage must hold.
    pub(super) drop_output: unsafe fn(TaskPtr),
    /// Where the stage keeps the output, or the payload of a panic.
    pub(super) output: unsafe fn(TaskPtr) -> *mut (),
    /// The last reference: drops the schedule and frees the memory.
    pub(super) free: unsafe fn(TaskPtr),
    /// See [`trace`].
    #[cfg(feature = "debugging")]
    pub(super) trace: unsafe fn(TaskPtr) -> &'static super::debugging::Trace,
}

impl Header {
    /// Of a task in the cell of that index, or in none.
    pub(super) fn new(vtable: &'static VTable, cell: Option<u16>) -> Self {
        Self {
            word: Word::new(),
            vtable,
            awaiter: UnsafeCell::new(None),
            link: Link::new(),
            next_runnable: Cell::new(None),
            place: Cell::new(cell.unwrap_or_default().into()),
            marks: Cell::new(if cell.is_some() { 0 } else { LARGE }),
            queue: Cell::new(0),
            polled: Cell::new(0),
            state: State::new(),
        }
    }

    #[inline]
    pub(super) fn is_marked(&self, mark: u8) -> bool {
        self.marks.get() & mark != 0
    }

    #[inline]
    pub(super) fn mark(&self, mark: u8) {
        self.marks.set(self.marks.get() | mark);
    }

    #[inline]
    pub(super) fn unmark(&self, mark: u8) {
        self.marks.set(self.marks.get() & !mark);
    }

    #[inline]
    pub(super) fn queue(&self) -> usize {
        self.queue.get() as usize
    }

    pub(super) fn set_queue(&self, queue: usize) {
        let queue = u32::try_from(queue).expect("an executor has fewer than 2³² task queues");
        self.queue.set(queue);
    }

    #[inline]
    pub(super) fn number_poll(&self, number: u32) -> u32 {
        let before = self.polled.get();
        self.polled.set(number);
        before
    }

    /// Registers `waker` to be woken when the task is over.
    pub(super) fn set_awaiter(&self, waker: &Waker) {
        // SAFETY: owner thread (invariant 1); the reference ends with the statement, and
        // `will_wake` compares two pairs of pointers without calling anybody.
        let is_same = self.awaiter.with(|awaiter| unsafe {
            (*awaiter)
                .as_ref()
                .is_some_and(|awaiter| awaiter.will_wake(waker))
        });
        if !is_same {
            // Cloning and dropping wakers is user code, which may come back here: neither happens
            // while the slot is borrowed.
            drop(self.replace_awaiter(Some(waker.clone())));
        }
    }

    #[inline]
    pub(super) fn take_awaiter(&self) -> Option<Waker> {
        // The common task has nobody waiting at this moment.
        // SAFETY: owner thread (invariant 1); the reference ends with the statement.
        let is_none = self.awaiter.with(|awaiter| unsafe { (*awaiter).is_none() });
        if is_none {
            None
        } else {
            self.replace_awaiter(None)
        }
    }

    fn replace_awaiter(&self, waker: Option<Waker>) -> Option<Waker> {
        // SAFETY: owner thread (invariant 1); no reference into the slot is alive, since all of
        // them end before user code is called.
        self.awaiter
            .with_mut(|awaiter| unsafe { awaiter.replace(waker) })
    }
}

/// A task, as seen by those who hold a reference to it. Copying it counts nothing.
///
/// What has one holds a reference: a waker or a remote wake (counted in the word), or one of
/// [`HOLDS`]. The methods below, but for [`header`](Self::header) and [`free`](Self::free), are for
/// the owner thread.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct TaskPtr(NonNull<Header>);

impl TaskPtr {
    /// The task at `header`, which keeps the right to the whole allocation.
    pub(super) fn new(header: NonNull<Header>) -> Self {
        Self(header)
    }

    pub(super) fn as_non_null(self) -> NonNull<Header> {
        self.0
    }

    pub(super) fn as_ptr(self) -> *mut Header {
        self.0.as_ptr()
    }

    /// The link of the task's remote wake.
    pub(super) fn link(self) -> NonNull<Link> {
        // SAFETY: the holder's reference keeps the memory.
        unsafe { NonNull::new_unchecked(&raw mut (*self.as_ptr()).link) }
    }

    /// The task whose link that is.
    ///
    /// # Safety
    /// `link` came from [`link`](Self::link).
    pub(super) unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: the header begins so many bytes before, and the pointer may go there, since it
        // was made from one to the header.
        Self(unsafe { link.byte_sub(offset_of!(Header, link)) }.cast())
    }

    /// The task in the cell at `cell`, if it is in the list.
    ///
    /// # Safety
    /// A task has been in the cell, of the owner whose thread this is.
    pub(super) unsafe fn listed_in(cell: NonNull<u8>) -> Option<Self> {
        let header = cell.cast::<Header>();
        // SAFETY: (1) the marks stay where they are when the task is over, also in a free cell, which
        // is overwritten only before them. (2) Only this thread writes them. (3) No reference is made
        // to the rest, which is perhaps no header any more.
        let marks = unsafe { (*header.as_ptr()).marks.get() };
        (marks & LISTED != 0).then_some(Self(header))
    }

    /// The task's number.
    #[cfg(feature = "debugging")]
    pub(super) fn id(&self) -> u64 {
        self.trace().id
    }

    #[cfg(not(feature = "debugging"))]
    pub(super) fn id(&self) -> u64 {
        0
    }

    /// What is known of it.
    #[cfg(feature = "debugging")]
    pub(super) fn trace(&self) -> &super::debugging::Trace {
        // SAFETY: the holder's reference keeps the memory, for as long as `self` is borrowed; and the
        // function is that of the task's own schedule.
        unsafe { (self.header().vtable.trace)(*self) }
    }

    /// Asks the processor for the task's memory, which will soon be needed: header, schedule, and
    /// the beginning of most futures.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch::<3>(self.as_ptr().cast_const().cast());
    }

    #[inline]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the holder's reference keeps the memory; everything in it that changes is in
        // cells.
        unsafe { self.0.as_ref() }
    }

    #[inline]
    pub(super) fn state(&self) -> &State {
        &self.header().state
    }

    /// Asks the owner to schedule the task, from wherever we are.
    pub(super) fn wake(self) {
        // SAFETY: the holder's reference keeps the memory.
        unsafe { (self.header().vtable.wake)(self) }
    }

    /// No more polls: the future will be dropped when the scheduler reaches the task, or at the end
    /// of the poll in progress. No effect on a task that is over.
    #[inline]
    pub(super) fn cancel(self) {
        if self.state().flags() & (FUTURE | CLOSED) == FUTURE {
            self.state().insert(CLOSED);
            self.wake();
        }
    }

    /// As [`cancel`](Self::cancel), but the future is gone on return, unless it is being polled.
    pub(super) fn cancel_now(self) {
        self.cancel();
        // The executor hears of it when it runs the task that `cancel` scheduled.
        if self.state().flags() & (FUTURE | RUNNING) == FUTURE {
            self.close();
        }
    }

    /// The executor is about to die: drops future or output, unless the future is being polled.
    pub(super) fn shutdown(self) {
        let state = self.state();
        state.remove(LIVE);
        state.insert(CLOSED);
        if state.has(RUNNING) {
            // The poll in progress ends it.
        } else if state.has(FUTURE) {
            self.close();
        } else if state.has(OUTPUT) {
            self.drop_output();
        }
    }

    /// A `Runnable` of a task that is not to be polled: ends it. True if the executor did not know.
    #[cold]
    pub(super) fn run_closed(self) -> bool {
        let flags = self.state().flags();
        // First: what destructors do to the task from now on must not schedule it again.
        self.state().remove(LIVE);
        let _scheduled = Hold(self, SCHEDULED);
        if flags & (FUTURE | RUNNING) == FUTURE {
            self.close();
        }
        flags & LIVE != 0
    }

    /// Drops the future, then wakes the awaiter, also if the destructor panics.
    pub(super) fn close(self) {
        self.state().insert(CLOSED | RUNNING);
        let _finish = Finish(self);
        self.drop_future();
    }

    #[inline]
    pub(super) fn drop_future(self) {
        debug_assert!(self.state().has(FUTURE), "a future is dropped once");
        self.state().remove(FUTURE);
        // SAFETY: owner thread (invariant 1); the flag said that the stage holds the future, and
        // now no other thread looks (invariant 8).
        panic::fenced(|| unsafe { (self.header().vtable.drop_future)(self) });
    }

    pub(super) fn drop_output(self) {
        debug_assert!(self.state().has(OUTPUT), "an output is dropped once");
        if self.header().is_marked(PANICKED) {
            return panic::discard(self.take_panic());
        }
        self.state().remove(OUTPUT);
        // SAFETY: as above, for the output.
        panic::fenced(|| unsafe { (self.header().vtable.drop_output)(self) });
    }

    /// Keeps what the last poll has panicked with for the join handle, if there is one. The
    /// executor's reference keeps the task.
    pub(super) fn keep_panic(self, payload: Payload) {
        if !self.state().has(HANDLE) {
            return panic::discard(payload);
        }
        debug_assert!(
            !self.state().has(FUTURE | OUTPUT | RUNNING) && self.header().is_marked(PANICKED),
            "the future is dropped when its panic arrives here"
        );
        // SAFETY: (1) the executor's reference keeps the memory. (2) Neither future nor output is in
        // the stage, which has the size and the alignment for the pointer, one of its fields.
        unsafe {
            let stage = (self.header().vtable.output)(self);
            stage.cast::<Box<Payload>>().write(Box::new(payload));
        }
        self.state().insert(OUTPUT);
    }

    /// What [`keep_panic`](Self::keep_panic) has kept: `OUTPUT` and `PANICKED` are set.
    #[cold]
    pub(super) fn take_panic(self) -> Payload {
        assert!(self.state().has(OUTPUT) && self.header().is_marked(PANICKED));
        self.state().remove(OUTPUT);
        // SAFETY: (1) the handle, which the caller has or drops, keeps the memory. (2) `OUTPUT` and
        // `PANICKED` said that the stage holds the payload; now no other call takes it.
        *unsafe {
            let stage = (self.header().vtable.output)(self);
            stage.cast::<Box<Payload>>().read()
        }
    }

    /// Schedules the task for closing if nothing can ever wake, cancel or await it again.
    ///
    /// The condition comes true when the last waker goes, when the join handle goes, or when a poll
    /// ends; each of the three looks here or, for the poll, in `run`.
    pub(super) fn abandon_if_unreachable(self) {
        const REACHABLE: u8 = HANDLE | SCHEDULED | RUNNING | CLOSED;
        let header = self.header();
        if header.state.flags() & (LIVE | REACHABLE) == LIVE && header.word.is_only_owned() {
            header.state.insert(CLOSED);
            self.wake();
        }
    }

    /// Gives up one of [`HOLDS`], and with the last of them the owner's side of the task.
    #[inline]
    pub(super) fn release_hold(self, hold: u8) {
        let state = self.state();
        state.remove(hold);
        if !state.has(HOLDS) {
            debug_assert!(
                !state.has(FUTURE | OUTPUT),
                "the owner's side goes after future and output"
            );
            if self.header().word.release_owner() {
                // SAFETY: the last reference is gone (invariant 4).
                unsafe { self.free() };
            }
        }
    }

    /// Drops the schedule and frees the memory. Any thread.
    ///
    /// # Safety
    /// There is no reference to the task any more.
    pub(super) unsafe fn free(self) {
        // Under loom this read is also what shows that the owner's last write comes before it.
        #[cfg(any(debug_assertions, loom))]
        assert!(
            !self.state().has(FUTURE | OUTPUT | HOLDS),
            "what is freed is bare memory"
        );
        let free = self.header().vtable.free;
        // SAFETY: promised by the caller.
        unsafe { free(self) }
    }
}

/// Ends `RUNNING` for good, also when user code unwinds: the task is over, and the awaiter is
/// woken.
pub(super) struct Finish(pub(super) TaskPtr);

impl Drop for Finish {
    #[inline]
    fn drop(&mut self) {
        let awaiter = self.0.header().take_awaiter();
        self.0.release_hold(RUNNING);
        // Last, and out of the task's memory: a waker is user code that may poll the handle at
        // once, and that must find the task over.
        if let Some(awaiter) = awaiter {
            panic::contain(
                "the waker of a task that awaits another task panicked",
                || awaiter.wake(),
            );
        }
    }
}

/// Gives up a hold at the end of a scope, also when user code unwinds.
pub(super) struct Hold(pub(super) TaskPtr, pub(super) u8);

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        self.0.release_hold(self.1);
    }
}
