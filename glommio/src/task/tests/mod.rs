//! The task cell against that of async-task, its memory by itself, and models of what threads do to
//! it. What a task does in an executor is tested in `glommio/tests/task` and `executor`.

#[cfg(not(any(loom, task_cells_boxed)))]
mod cells;
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
