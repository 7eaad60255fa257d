//! Setting the shares of task queues by what their work needs.
//!
//! A [`DeadlineQueue`] is a task queue for work with a deadline, such as a flush that must be done
//! before the next one is due. It compares what should be done by now with what is done, and sets
//! its own [`Shares`](crate::Shares): enough to be in time, and no more, so that the rest of the
//! thread is left to requests. The example is [there](DeadlineQueue#examples).
//!
//! For other rules implement [`SharesManager`](crate::SharesManager).

#![forbid(unsafe_code)]

mod deadline_queue;

pub use deadline_queue::{ControllerStatus, DeadlineQueue, DeadlineSource, PriorityBump};
