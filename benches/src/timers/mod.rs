//! The timer queues side by side: one interface to drive them, and deadlines and wakers to feed
//! them.

mod queues;
mod workload;

pub use self::queues::{Floor, OURS, Queue, TimerQueue};
pub use self::workload::{Churn, Deadlines, Rotation, deadlines, fill, waker, wakers};
