//! The task's allocation, and the functions that know what is in it.
//!
//! ```text
//!   ┌────────────┬────────────┬──────────────────────┐
//!   │ Header     │ S          │ Stage                │
//!   │ (64 bytes) │ (schedule) │ F, then F::Output    │
//!   └────────────┴────────────┴──────────────────────┘
//! ```
//!
//! One piece of memory per task, from the executor's store of cells ([`super::cells`]) or, if it is
//! large, from the allocator. The schedule lies at an offset that does not depend on the future, so
//! that what a waker does is compiled once per kind of schedule.

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};
use std::pin::Pin;
use std::ptr::{self, NonNull};
use std::task::{Context, Poll, RawWakerVTable, Waker};

use super::cells::{CellStore, SizeClass, TaskCell};
use super::header::{Finish, Front, Header, PANICKED, TaskPtr, VTable, schedule};
use super::runnable::{Runnable, Schedule};
use super::state::{CLOSED, FUTURE, HANDLE, LIVE, OUTPUT, RUNNING, SCHEDULED};
use super::waker;
use crate::loom::UnsafeCell;
use crate::panic::{Fenced, Payload};

/// The whole allocation.
#[repr(C)]
struct Allocation<F: Future, S> {
    front: Front<S>,
    stage: UnsafeCell<Stage<F>>,
}

/// Which of them is there, if any, is said by `FUTURE` and `OUTPUT` in the state, and by `PANICKED`
/// among the marks: where the poll has panicked, what it panicked with is the output.
#[repr(C)]
union Stage<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<F::Output>,
    /// In a box, so that a small future needs no larger cell for it.
    panic: ManuallyDrop<Box<Payload>>,
}

/// Allocates a task in the state that [`State::new`](super::state::State::new) describes.
pub(super) fn allocate<F: Future, S: Schedule>(
    future: F,
    schedule: S,
    cells: &CellStore,
) -> TaskPtr {
    // First of all: a filter that panics leaves nothing behind.
    #[cfg(feature = "debugging")]
    let trace = super::debugging::Trace::begin(std::any::type_name::<F>());
    let (memory, cell) = match Raw::<F, S>::CLASS {
        Some(class) => {
            let cell = cells.allocate(class);
            (cell.memory.cast(), Some(cell.index))
        }
        None => {
            let memory = Box::leak(Box::<Allocation<F, S>>::new_uninit());
            (NonNull::from(memory).cast::<Allocation<F, S>>(), None)
        }
    };
    let allocation = memory.as_ptr();
    // Field by field: a struct literal would build a large future on the stack and copy it.
    // SAFETY: (1) each pointer is to a field of the allocation, which is ours alone, large enough
    // and aligned; the future is the first and only thing in the stage. (2) After the writes all of
    // it is initialised.
    unsafe {
        (&raw mut (*allocation).front.header).write(Header::new(&Raw::<F, S>::VTABLE, cell));
        (&raw mut (*allocation).front.schedule).write(schedule);
        #[cfg(feature = "debugging")]
        (&raw mut (*allocation).front.trace).write(trace);
        #[cfg(loom)]
        (&raw mut (*allocation).stage).write(UnsafeCell::new(Stage {
            future: ManuallyDrop::new(future),
        }));
        // At once, where the cell has nothing besides: wrapped, it would be copied for each wrapper
        // in code that is not optimised.
        #[cfg(not(loom))]
        (&raw mut (*allocation).stage).cast::<F>().write(future);
    }
    TaskPtr::new(memory.cast())
}

/// Ties the functions of one vtable to their types.
struct Raw<F, S>(PhantomData<(F, S)>);

impl<F: Future, S: Schedule> Raw<F, S> {
    /// The cells that tasks of these types lie in; large ones are allocations of their own.
    const CLASS: Option<SizeClass> = SizeClass::of(Layout::new::<Allocation<F, S>>());

    const VTABLE: VTable = VTable {
        waker: RawWakerVTable::new(
            waker::clone,
            waker::wake::<S>,
            waker::wake_by_ref::<S>,
            waker::drop::<S>,
        ),
        wake: waker::wake_task::<S>,
        schedule: waker::schedule_local::<S>,
        run: Self::run,
        drop_future: Self::drop_future,
        drop_output: Self::drop_output,
        output: Self::output,
        free: Self::free,
        #[cfg(feature = "debugging")]
        trace: super::header::trace::<S>,
    };

    /// See [`Runnable::run`].
    ///
    /// # Safety
    /// Owner thread; the task was allocated with `F` and `S`, and the caller gives up a `Runnable`.
    unsafe fn run(task: TaskPtr) -> bool {
        let state = task.state();
        let flags = state.flags();
        debug_assert!(flags & SCHEDULED != 0, "a Runnable is a scheduled task");
        if flags & (LIVE | FUTURE | CLOSED | RUNNING) != LIVE | FUTURE {
            return task.run_closed();
        }
        state.remove(SCHEDULED);
        state.insert(RUNNING);
        let finish = Finish(task);
        #[cfg(feature = "debugging")]
        Self::note(task, "polled");

        if let Some(class) = Self::CLASS {
            // Should the task end with this poll.
            Self::cell(task).prefetch_chunk(class);
        }
        // SAFETY: `FUTURE` was set and `RUNNING` was not.
        let polled = unsafe { Self::poll(task) };

        let flags = state.flags();
        match polled {
            Poll::Ready(output) => {
                #[cfg(feature = "debugging")]
                Self::note(task, "ready");
                // A future whose destructor panics may have an output of the same kind.
                let output = Fenced::new(output);
                // Over, whatever the destructors do to it.
                if mem::needs_drop::<F>() {
                    state.remove(LIVE | SCHEDULED);
                    task.drop_future();
                } else {
                    state.remove(LIVE | SCHEDULED | FUTURE);
                }
                if state.has(HANDLE) && flags & CLOSED == 0 {
                    let stage = Self::stage(task).cast::<F::Output>();
                    // SAFETY: the future is gone, nobody looks at the stage while neither `FUTURE`
                    // nor `OUTPUT` is set, and a union is aligned for each of its fields.
                    unsafe { stage.write(output.into_inner()) };
                    state.insert(OUTPUT);
                } else {
                    // Before anybody hears that the task is over: an output may borrow as its
                    // future does.
                    drop(output);
                }
                drop(finish);
            }
            Poll::Pending if flags & CLOSED == 0 && !Self::is_abandoned(task, flags) => {
                mem::forget(finish);
                state.remove(RUNNING);
                if flags & SCHEDULED != 0 {
                    // SAFETY: the task has an `S`, and is registered while it is live (invariant
                    // 2).
                    let schedule: &S = unsafe { schedule(task) };
                    schedule.schedule(Runnable(task), true);
                }
                return false;
            }
            Poll::Pending => {
                state.remove(LIVE | SCHEDULED);
                state.insert(CLOSED);
                task.drop_future();
                drop(finish);
            }
        }
        flags & LIVE != 0
    }

    /// Whether, after a poll that ended with these flags, nothing can ever schedule the task again.
    fn is_abandoned(task: TaskPtr, flags: u8) -> bool {
        flags & (HANDLE | SCHEDULED) == 0 && task.header().word.is_only_owned()
    }

    /// Polls the future; if that panics, closes the task.
    ///
    /// # Safety
    /// As for `run`; `FUTURE` and `RUNNING` are set, and the latter by the caller.
    #[inline]
    unsafe fn poll(task: TaskPtr) -> Poll<F::Output> {
        let data = task.as_ptr().cast_const().cast();
        // SAFETY: (1) the vtable is the task's own. (2) The waker is not dropped, and so gives up
        // no reference; it is only lent to the poll, during which `RUNNING` keeps the task.
        let waker = ManuallyDrop::new(unsafe { Waker::new(data, &task.header().vtable.waker) });
        let panicked = Panicked(task);
        let stage: *mut F = Self::stage(task).cast();
        // SAFETY: (1) `FUTURE`: the stage holds the future. (2) `RUNNING`: no other reference to it
        // exists, for nobody else polls or drops it while the flag is set. (3) It stays where it is
        // until it is dropped there: pinned.
        let future = unsafe { Pin::new_unchecked(&mut *stage) };
        #[cfg(feature = "debugging")]
        let _polling = {
            let is_listed = task.header().is_marked(super::header::LISTED);
            let unlisted = (!is_listed).then(|| task.as_non_null().cast());
            // SAFETY: (1) `RUNNING` keeps the memory. (2) Its schedule is an `S`.
            unsafe { super::header::trace::<S>(task) }.begin_poll(unlisted)
        };
        let polled = future.poll(&mut Context::from_waker(&waker));
        mem::forget(panicked);
        polled
    }

    /// # Safety
    /// Owner thread; the stage holds the future, which is not looked at again.
    unsafe fn drop_future(task: TaskPtr) {
        #[cfg(feature = "debugging")]
        Self::note(task, "over");
        // SAFETY: promised by the caller.
        unsafe { ptr::drop_in_place(Self::stage(task).cast::<F>()) }
    }

    /// # Safety
    /// Owner thread; the stage holds the output, which is not looked at again.
    unsafe fn drop_output(task: TaskPtr) {
        // SAFETY: promised by the caller.
        unsafe { ptr::drop_in_place(Self::stage(task).cast::<F::Output>()) }
    }

    /// # Safety
    /// Owner thread.
    unsafe fn output(task: TaskPtr) -> *mut () {
        Self::stage(task).cast()
    }

    /// # Safety
    /// There is no reference to the task any more.
    unsafe fn free(task: TaskPtr) {
        let allocation: *mut Allocation<F, S> = task.as_ptr().cast();
        let Some(class) = Self::CLASS else {
            // SAFETY: `allocate` leaked this box, and nothing can reach it any more (invariant 4).
            // What dropping it drops besides the schedule is an empty awaiter slot; a
            // union drops nothing, and neither future nor output is there (invariant
            // 3).
            return drop(unsafe { Box::from_raw(allocation) });
        };
        let cell = Self::cell(task);
        // SAFETY: the memory is alive, and the schedule is an `S`.
        let is_owner = unsafe { schedule::<S>(task) }.is_owner();
        // SAFETY: (1) as above, for the dropping. (2) `allocate` took this cell from the store of
        // the owner that the schedule names. Where that is current, its store is alive.
        unsafe {
            allocation.drop_in_place();
            cell.free(class, is_owner);
        }
    }

    /// The cell of a task that has a [`CLASS`](Self::CLASS).
    #[inline]
    fn cell(task: TaskPtr) -> TaskCell {
        TaskCell {
            memory: task.as_non_null().cast(),
            index: task.header().place.get() as u16,
        }
    }

    /// Logs what happens to a task that the caller holds a reference to.
    #[cfg(feature = "debugging")]
    fn note(task: TaskPtr, event: &'static str) {
        // SAFETY: (1) the caller's reference keeps the memory. (2) Its schedule is an `S`, as this
        // is a function of its vtable.
        unsafe { super::header::trace::<S>(task) }.note(event);
    }

    /// Where the stage is. Owner thread.
    ///
    /// The pointer outlives the cell's accessor: loom is told that this thread writes here now, and
    /// the flags see to it that no other does until the caller is done.
    #[inline]
    fn stage(task: TaskPtr) -> *mut Stage<F> {
        let allocation: *const Allocation<F, S> = task.as_ptr().cast();
        // SAFETY: the caller's reference keeps the memory, and the reference made here is to a
        // cell.
        unsafe { (*allocation).stage.with_mut(|stage| stage) }
    }
}

/// Closes the task whose poll unwinds past it.
struct Panicked(TaskPtr);

impl Drop for Panicked {
    fn drop(&mut self) {
        self.0.header().mark(PANICKED);
        self.0.state().remove(LIVE | SCHEDULED);
        self.0.state().insert(CLOSED);
        self.0.drop_future();
    }
}
