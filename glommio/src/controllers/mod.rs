//! Setting the shares of task queues by what their work needs.

#![forbid(unsafe_code)]

mod deadline_queue;

pub use deadline_queue::{ControllerStatus, DeadlineQueue, DeadlineSource, PriorityBump};
