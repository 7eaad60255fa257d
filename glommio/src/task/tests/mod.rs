//! Behaviours of a task, one file each, on an executor that is as small as one can be.
//!
//! The names of the files are those of async-task's tests, whose list of behaviours this is.

#[cfg(not(loom))]
mod biased;
#[cfg(not(loom))]
mod cancel;
#[cfg(not(any(loom, task_cells_boxed)))]
mod cells;
#[cfg(not(loom))]
mod executor;
#[cfg(not(loom))]
mod join;
#[cfg(loom)]
mod loom_biased;
#[cfg(loom)]
mod loom_cell;
#[cfg(loom)]
mod loom_cells;
#[cfg(loom)]
mod loom_world;
#[cfg(not(loom))]
mod oracle;
#[cfg(not(loom))]
mod panic;
#[cfg(not(loom))]
mod ready;
#[cfg(not(loom))]
mod teardown;
#[cfg(not(loom))]
mod waker_foreign;
#[cfg(not(loom))]
mod waker_panic;
#[cfg(not(loom))]
mod waker_pending;
#[cfg(not(loom))]
mod waker_ready;
