//! The functions behind a task's wakers: the only ones that other threads run.
//!
//! A waker is a counted reference. Each function begins by finding out where it is: on the owner's
//! thread, with the owner current, it may look at the state; anywhere else it knows the word and
//! the schedule, and nothing more.

#![allow(unsafe_code)]

use std::task::RawWaker;

use super::header::{self, Header, TaskPtr};
use super::runnable::{RemoteWake, Runnable, Schedule};
use super::state::{FUTURE, LIVE, RUNNING, Released, SCHEDULED};

/// # Safety
/// `data` is that of a waker which is alive.
pub(super) unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: promised by the caller.
    let task = unsafe { task(data) };
    task.header().word.retain();
    RawWaker::new(data, &task.header().vtable.waker)
}

/// # Safety
/// `data` is that of a waker which is alive, of a task with schedule `S`; the waker is used up.
pub(super) unsafe fn wake<S: Schedule>(data: *const ()) {
    // Not one step: a remote wake that took over the waker's reference could bring the owner to
    // free the task, and with it the schedule that is still sending.
    // SAFETY: promised by the caller, and `drop` comes last.
    unsafe {
        wake_by_ref::<S>(data);
        drop::<S>(data);
    }
}

/// # Safety
/// `data` is that of a waker which is alive, of a task with schedule `S`.
pub(super) unsafe fn wake_by_ref<S: Schedule>(data: *const ()) {
    // SAFETY: promised by the caller.
    unsafe { wake_task::<S>(task(data)) }
}

/// # Safety
/// `data` is that of a waker which is alive, of a task with schedule `S`; the waker is used up.
pub(super) unsafe fn drop<S: Schedule>(data: *const ()) {
    // SAFETY: promised by the caller; the schedule is used only until the reference is given up.
    let (task, schedule) = unsafe { (task(data), header::schedule::<S>(task(data))) };
    loop {
        // The state is the owner's to look at (invariant 1), and asked for there only.
        let is_idle = || !task.state().has(RUNNING);
        match task.header().word.release(|| schedule.is_owner(), is_idle) {
            Released::Shared => return,
            // SAFETY: the last reference is gone (invariant 4).
            Released::Last => return unsafe { task.free() },
            // The owner's side keeps the task, and only this thread could end that.
            Released::OnlyOwned => return task.abandon_if_unreachable(),
            // Again, for this thread still has its reference. A second remote wake is sent only if
            // the owner has delivered the first meanwhile; if the owner is gone, the
            // first comes back and stays the last.
            Released::Send => schedule.send(RemoteWake(task)),
        }
    }
}

/// Makes the owner schedule the task, from any thread.
///
/// # Safety
/// The caller holds a reference to the task, whose schedule is an `S`.
#[inline]
pub(super) unsafe fn wake_task<S: Schedule>(task: TaskPtr) {
    // SAFETY: promised by the caller.
    let schedule: &S = unsafe { header::schedule(task) };
    if schedule.is_owner() {
        // SAFETY: promised by the caller; this is the owner thread.
        unsafe { schedule_local::<S>(task) };
    } else if task.header().word.mark_woken() {
        schedule.send(RemoteWake(task));
    }
}

/// Schedules the task, unless it is scheduled already or over.
///
/// # Safety
/// As for [`wake_task`], on the owner thread with the owner current.
#[inline]
pub(super) unsafe fn schedule_local<S: Schedule>(task: TaskPtr) {
    let state = task.state();
    let flags = state.flags();
    if flags & (LIVE | SCHEDULED) != LIVE {
        return;
    }
    state.insert(SCHEDULED);
    #[cfg(feature = "debugging")]
    // SAFETY: promised by the caller.
    unsafe { header::trace::<S>(task) }.note("scheduled");
    // Woken while it is being polled: `run` schedules it after the poll, at the back.
    if flags & (RUNNING | FUTURE) != RUNNING | FUTURE {
        // SAFETY: promised by the caller.
        let schedule: &S = unsafe { header::schedule(task) };
        schedule.schedule(Runnable(task), false);
    }
}

/// # Safety
/// `data` is that of a waker of ours.
#[inline]
unsafe fn task(data: *const ()) -> TaskPtr {
    let header = data.cast_mut().cast::<Header>();
    // SAFETY: our wakers carry the address of their task.
    TaskPtr::new(unsafe { std::ptr::NonNull::new_unchecked(header) })
}
